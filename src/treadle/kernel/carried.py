"""What a loop carries along besides its counters: effects it was seen to have, skills, scoped rules (FR-13 to FR-15). O(1) in turns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from treadle.core.messages import Prompted, ToolCall, ToolResult
from treadle.core.values import Value, replace

from .leases import Lease, initial, without_scope

ACTIVATE = "activate_skill"
MOST_EFFECTS = 256
LONGEST_TARGET = 160  # characters; with the above a frame stays well below 64 KB
SKILL, RULE = "skill:", "rule:"


class Mount(Value, frozen=True, kw_only=True):
    """Where a skill's body is: the call that asked for it (empty: it was mounted again) and the message that holds it."""

    call_id: str
    message: int


class Carried(Value, frozen=True, kw_only=True):
    """Effects are `kind target`, in the order in which each was first seen."""

    leases: tuple[Lease, ...] = ()
    effects: tuple[str, ...] = ()
    skills: dict[str, Mount] = {}  # noqa: RUF012 - msgspec copies it
    rules: dict[str, int] = {}  # noqa: RUF012 - scoped rule -> the message that holds it


def started(granted: tuple[str, ...]) -> Carried:
    """What a loop has from the start."""
    return Carried(leases=initial(granted)) if granted else Carried()


def turn_over(carried: Carried) -> Carried:
    """Leases of the turn end with its batch of calls."""
    leases = without_scope(carried.leases, "turn") if carried.leases else carried.leases
    return carried if leases is carried.leases else replace(carried, leases=leases)


def after_results(
    carried: Carried, calls: Iterable[ToolCall], results: Iterable[ToolResult], seq: int, *, act: bool
) -> Carried:
    """Effects of the calls, failed ones included, and the skills that act has activated."""
    for call, result in zip(calls, results, strict=False):
        if result.effects:
            carried = with_effects(carried, result.effects)
        if act and call.name == ACTIVATE and result.status == "ok" and isinstance(call.args, dict):
            name = call.args.get("name")
            if isinstance(name, str) and name not in carried.skills:
                carried = replace(carried, skills=carried.skills | {name: Mount(call_id=call.id, message=seq)})
    return carried


def changed_something(result: ToolResult) -> bool:
    """Whether a call changed the workspace or the world outside, as far as its tool says."""
    outside = result.status == "ok" and any(effect.startswith("external.mutation") for effect in result.effects)
    return outside or bool(result.changed)


def after_prompt(carried: Carried, event: Prompted, seq: int) -> Carried:
    """Skills and rules that a message of ours holds."""
    if not event.mounts:
        return carried
    skills = {one.removeprefix(SKILL): Mount(call_id="", message=seq) for one in event.mounts if one.startswith(SKILL)}
    rules = {one.removeprefix(RULE): seq for one in event.mounts if one.startswith(RULE)}
    return replace(carried, skills=carried.skills | skills, rules=carried.rules | rules)


def after_act(carried: Carried, changed: Iterable[str], deleted: Iterable[str]) -> Carried:
    """What the workspace says of an act, whatever its tools declared."""
    gone = set(deleted)
    if (leases := without_scope(carried.leases, "turn", "step")) is not carried.leases:
        carried = replace(carried, leases=leases)
    return with_effects(carried, tuple(f"fs.{'delete' if path in gone else 'write'} {path}" for path in changed))


def with_effects(carried: Carried, seen: Iterable[str]) -> Carried:
    """With each effect once."""
    effects = carried.effects
    for effect in seen:
        short = effect if len(effect) <= LONGEST_TARGET else f"{effect[: LONGEST_TARGET - 3]}..."
        if short in effects or _covered(short, effects):
            continue
        effects = (*effects, short)
        if len(effects) > MOST_EFFECTS:
            effects = collapsed(effects)
    return carried if effects is carried.effects else replace(carried, effects=effects)


def collapsed(effects: tuple[str, ...]) -> tuple[str, ...]:
    """Fewer: the folder with the most entries of one kind becomes one entry, `folder/**`."""
    folders = Counter(_folder(effect) for effect in effects)
    (best, count), *_ = folders.most_common(1)
    if count < 2:
        best = f"{effects[0].partition(' ')[0]} **"
    kind = best.partition(" ")[0]
    prefix = best.removesuffix("**")
    left = tuple(e for e in effects if not (e.startswith(prefix) and e.partition(" ")[0] == kind))
    return (*left, best)


def _folder(effect: str) -> str:
    """The entry that would stand for it and for its neighbours; what has no folder has its kind."""
    kind, _, target = effect.partition(" ")
    head, slash, _ = target.removesuffix("/**").rpartition("/")
    return f"{kind} {head}{slash}**" if slash else f"{kind} **"


def _covered(effect: str, effects: tuple[str, ...]) -> bool:
    kind, _, target = effect.partition(" ")
    if f"{kind} **" in effects:
        return True
    while "/" in target:
        target = target.rpartition("/")[0]
        if f"{kind} {target}/**" in effects:
            return True
    return False
