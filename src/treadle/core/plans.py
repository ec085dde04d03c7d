"""A plan as it is written down: ordered steps, what each waits for, and the call that verifies it. Read strictly."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any, cast

import msgspec

from .errors import PlanRefused
from .values import Value

MOST_STEPS, MOST_TITLE, MOST_ID, MOST_CHECK = 50, 200, 40, 2000
MOST_CHARACTERS = 16_000  # of the whole plan as JSON: it goes into every request
COMMAND_TOOL = "run_command"


class StepCheck(Value, frozen=True, kw_only=True):
    """The call that verifies a step: of this tool, with at least these arguments. Its success makes the step done."""

    tool: str
    args: dict[str, Any] = {}  # noqa: RUF012 - msgspec copies it


class PlanStep(Value, frozen=True, kw_only=True):
    """One step. Without `check` its last call must have succeeded before it is done."""

    id: str
    title: str
    check: StepCheck | None = None
    after: tuple[str, ...] = ()  # steps that must be done before


_encode = msgspec.json.Encoder(order="deterministic").encode


def plan_digest(steps: tuple[PlanStep, ...]) -> str:
    """What an approval is bound to: every step with its check and order, none of its progress."""
    return blake2b(_encode(steps), digest_size=8).hexdigest() if steps else ""


def read_steps(value: Any) -> tuple[PlanStep, ...]:
    """The steps of a plan. PlanRefused, with the path of what is wrong.

    A step is `{title, id?, check?, after?}` or its title alone; `check` is a command, a tool's name, or `{tool, args?}`.
    A step without an id is known by its number.
    """
    if not isinstance(value, list | tuple):
        raise PlanRefused("steps", "must be a list of steps")
    rows = cast("list[Any]", value)
    if not rows:
        raise PlanRefused("steps", "is empty: a plan has at least one step")
    if len(rows) > MOST_STEPS:
        raise PlanRefused("steps", f"has {len(rows)} steps, at most {MOST_STEPS} are read; put small ones together")
    steps = tuple(_step(f"steps[{number}]", row, str(number + 1)) for number, row in enumerate(rows))
    _check_order(steps)
    if (size := len(_encode(steps))) > MOST_CHARACTERS:
        raise PlanRefused("steps", f"come to {size:,} characters, at most {MOST_CHARACTERS:,} are kept; say it shorter")
    return steps


def _step(path: str, row: Any, number: str) -> PlanStep:
    if not isinstance(row, str | dict):
        raise PlanRefused(path, "must be an object with a title")
    fields = cast("dict[str, Any]", {"title": row} if isinstance(row, str) else row)
    if unknown := sorted(str(name) for name in fields.keys() - {"id", "title", "check", "after"}):
        raise PlanRefused(f"{path}.{unknown[0]:.40}", "is no part of a step; there are title, check, after, id")
    title = _text(f"{path}.title", fields.get("title"), MOST_TITLE)
    given = fields.get("id")
    # A number is an id as good as its digits; True is none.
    name = str(given) if type(given) is int else given
    return PlanStep(
        id=number if given is None else _text(f"{path}.id", name, MOST_ID),
        title=title,
        check=None if fields.get("check") is None else _check(f"{path}.check", fields["check"]),
        after=_after(f"{path}.after", fields.get("after")),
    )


def _text(path: str, value: Any, most: int) -> str:
    if not isinstance(value, str) or not value.strip():
        raise PlanRefused(path, "is missing" if value is None else "must be text that is not empty")
    text = " ".join(value.split())
    if len(text) > most:
        raise PlanRefused(path, f"has {len(text):,} characters, at most {most:,} are kept")
    if not text.isprintable():
        raise PlanRefused(path, "holds characters that cannot be printed")
    return text


def _check(path: str, value: Any) -> StepCheck:
    if isinstance(value, str):
        if not value.strip() or len(value) > MOST_CHECK:
            raise PlanRefused(path, f"must be a command or a tool's name, of 1 to {MOST_CHECK:,} characters")
        return StepCheck(tool=value.strip())
    fields = cast("dict[str, Any]", value)
    if not isinstance(value, dict) or fields.keys() - {"tool", "args"}:
        raise PlanRefused(path, "must be a command, a tool's name, or an object of tool and args")
    args: Any = fields.get("args") or {}
    if not isinstance(args, dict):
        raise PlanRefused(f"{path}.args", "must be an object")
    return StepCheck(tool=_text(f"{path}.tool", fields.get("tool"), MOST_CHECK), args=cast("dict[str, Any]", args))


def _after(path: str, value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list | tuple):
        raise PlanRefused(path, "must be a list of ids of steps")
    names = [str(one) if type(one) is int else one for one in cast("list[Any]", value)]
    return tuple(dict.fromkeys(_text(f"{path}[{number}]", name, MOST_ID) for number, name in enumerate(names)))


def _check_order(steps: tuple[PlanStep, ...]) -> None:
    """Ids are unique, what is waited for exists, and nothing waits for itself."""
    known: dict[str, PlanStep] = {}
    for number, step in enumerate(steps):
        if step.id in known:
            raise PlanRefused(f"steps[{number}].id", f"{step.id!r} is the id of an earlier step")
        known[step.id] = step
    for number, step in enumerate(steps):
        if missing := [name for name in step.after if name not in known]:
            raise PlanRefused(f"steps[{number}].after", f"there is no step {missing[0]!r}")
    left = dict(known)
    while ready := [name for name, step in left.items() if not any(other in left for other in step.after)]:
        for name in ready:
            del left[name]
    if left:
        raise PlanRefused("steps", f"wait for one another: {', '.join(left)}")


def check_words(check: StepCheck) -> str:
    """A check as it is spoken of: the command itself, or the tool with its arguments."""
    if check.tool == COMMAND_TOOL and set(check.args) == {"command"}:
        return str(check.args["command"])
    if not check.args:
        return check.tool
    return f"{check.tool} {_encode(check.args).decode()}"


def verifies(check: StepCheck, tool: str, args: Any) -> bool:
    """Whether a call is the one that the check names. A check of one word or line may also be a command that is run."""
    given = cast("dict[str, Any]", args) if isinstance(args, dict) else {}
    if tool == check.tool:
        return all(name in given and given[name] == value for name, value in check.args.items())
    command = given.get("command")
    return not check.args and tool == COMMAND_TOOL and isinstance(command, str) and command.strip() == check.tool
