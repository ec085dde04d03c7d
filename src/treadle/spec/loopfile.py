"""The loop file: a loop in YAML, section by section as the canvas draws it. What it leaves out is off, but never guards or budgets.

The sections are the stages. A section that is there is a node of the canvas; `canvas` keeps only where things lie. The reader
and the writer, which keeps comments and order, are in `spec.loopyaml`.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Annotated, Any, Literal

from msgspec import Meta, field

from treadle.core.errors import ConfigurationError, InputError
from treadle.core.settings import Guards, with_guards
from treadle.core.values import Value
from treadle.kernel.leases import parse as parse_capability
from treadle.kernel.states import AGENT_TRANSITIONS, AgentStateName

from .commandline import CHILD_ROUNDS, CommandLineChild
from .definitions import GATE_NAME, LEAST_RATIO, LEAST_WINDOW

FORMAT = 1
DURATION = r"^(\d+(\.\d+)?h)?(\d+(\.\d+)?m)?(\d+(\.\d+)?s)?$"

Count = Annotated[int, Meta(ge=1, le=1_000_000_000)]
Usd = Annotated[Decimal, Meta(description="US dollars, above 0")]
Duration = Annotated[str, Meta(pattern=DURATION, description="90s, 10m, 2h")]
Line = Annotated[str, Meta(max_length=2_000)]
Text = Annotated[str, Meta(max_length=200_000)]
Percent = Annotated[int, Meta(ge=1, le=99)]


class Finding(Value, frozen=True, kw_only=True):
    """Something wrong in a loop file: where, and what to do. Lines and columns count from 1."""

    line: int
    column: int
    path: str
    message: str


class LoopFileError(InputError):
    """The loop file cannot be used."""

    def __init__(self, name: str, findings: tuple[Finding, ...]) -> None:
        self.name, self.findings = name, findings
        super().__init__("\n".join(f"{name}:{one.line}:{one.column}: {one.message}" for one in findings))


class Control(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits. Those that are left out have their defaults; a guard is off only where it is set to 0."""

    max_rounds: Annotated[Count | None, Meta(description="rounds of acting and checking; 10 where nothing is said")] = (
        None
    )
    max_turns: Annotated[Count | None, Meta(description="model calls of act, over all rounds")] = None
    max_turns_per_act: Annotated[Count | None, Meta(description="execution turns of one round's act")] = None
    max_cost: Usd | None = None
    max_time: Annotated[Duration | None, Meta(description="active time, everything together")] = None
    max_tokens: Annotated[Count | None, Meta(description="input and output together")] = None
    warn_at: Annotated[
        tuple[Percent, ...] | None, Meta(description="per cent of the turns at which the model is told to wrap up")
    ] = None
    guards: Annotated[
        dict[Line, Annotated[int, Meta(ge=0)]], Meta(description="thresholds of guards by name, such as repeat: 6")
    ] = field(default_factory=dict[str, int])
    lessons: Annotated[
        Literal["off", "recall", "on"] | None,
        Meta(description="what accepted runs have taught: on (told and learnt), recall (told), off"),
    ] = None
    must_change: Annotated[bool, Meta(description="accept nothing without a change in the workspace")] = False
    plan: Annotated[
        bool, Meta(description="the padlock before executing: change nothing before a person has approved the plan")
    ] = False


class Foundation(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The model that everything stands on. Keys are never in a loop file."""

    model: Annotated[Line | None, Meta(description="provider:model")] = None
    base_url: Annotated[Line | None, Meta(description="an endpoint that speaks the provider's API")] = None
    price: Annotated[
        Line | None, Meta(description="USD per million tokens: input,output[,cache read[,cache write]]")
    ] = None
    escalate_to: Annotated[
        tuple[Line, ...],
        Meta(description="models that follow when this one fails, spins or is rejected: provider:model[=IN/OUT]"),
    ] = ()
    escalate_after: Annotated[
        Annotated[int, Meta(ge=0, le=1_000_000)] | None,
        Meta(description="rejections in a row until the next model; 0: not for that"),
    ] = None
    instructions: Annotated[Text, Meta(description="added to the static system prompt")] = ""
    window: Annotated[
        Annotated[int, Meta(ge=LEAST_WINDOW, le=100_000_000)] | None,
        Meta(description="tokens that the model reads at once, where that is not known"),
    ] = None
    compact: Annotated[
        Literal["off", "micro", "auto", "full"] | None,
        Meta(
            description="how deep a conversation that fills the window is compacted at most; full where nothing is said"
        ),
    ] = None
    compact_at: Annotated[
        Annotated[float, Meta(ge=LEAST_RATIO, le=1)] | None,
        Meta(description="the share of the window at which that is due; 0.8 where nothing is said"),
    ] = None


class Perceive(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A map of the workspace before planning. Without this section there is none."""

    budget: Annotated[
        Count | None, Meta(description="tokens of the map; as the model's window allows where nothing is said")
    ] = None


class ChildFile(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A child that the agent may fork. What its model leaves out is as in foundation; without check and judge it is done when it ends."""

    about: Annotated[str, Meta(min_length=1, max_length=2_000, description="what it is for, in a line for the agent")]
    instructions: Annotated[Text, Meta(description="added to its static system prompt")] = ""
    model: Annotated[Line | None, Meta(description="provider:model")] = None
    base_url: Annotated[Line | None, Meta(description="an endpoint that speaks the provider's API")] = None
    price: Annotated[Line | None, Meta(description="USD per million tokens, as in foundation")] = None
    check: Annotated[Line | None, Meta(description="a command that accepts with exit code 0")] = None
    judge: Annotated[Line | None, Meta(description="a model that judges, as provider:model")] = None
    answers: Annotated[
        Literal["person", "agent"] | None, Meta(description="who answers what it asks: a person, or its parent's agent")
    ] = None
    allow: Annotated[
        tuple[Line, ...] | None, Meta(description="capabilities that it has; never more than its parent")
    ] = None
    isolate: Annotated[bool, Meta(description="in a git worktree of its own, merged when it is accepted")] = False
    max_rounds: Count | None = None
    max_turns: Count | None = None
    max_cost: Usd | None = None
    max_time: Annotated[Duration | None, Meta(description="active time")] = None


class Act(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who acts, and what it may touch."""

    agent_command: Annotated[
        Line | None, Meta(description="a coding agent or script that acts instead of the model")
    ] = None
    protect: Annotated[tuple[Line, ...], Meta(description="paths that it may not write, as globs")] = ()
    sandbox: Annotated[bool, Meta(description="run its commands in a sandbox")] = False
    isolate: Annotated[bool, Meta(description="act in a git worktree on a branch of its own, starting at HEAD")] = False
    on_accept: Annotated[
        Literal["merge", "branch"] | None, Meta(description="what becomes of accepted work that is isolated")
    ] = None
    mcp: Annotated[tuple[Line, ...], Meta(description="MCP servers, as NAME=COMMAND or NAME=URL")] = ()
    skills: Annotated[tuple[Line, ...], Meta(description="folders of skills, instead of the workspace's own")] = ()
    allow: Annotated[
        tuple[Line, ...] | None,
        Meta(description="capabilities that it has, such as fs.write:src/**; all else is closed"),
    ] = None
    may_ask: Annotated[tuple[Line, ...], Meta(description="capabilities that a person may grant besides")] = ()
    on_invalid: Annotated[
        Literal["stop_batch", "run_valid"] | None, Meta(description="what becomes of a batch with an invalid call")
    ] = None
    children: Annotated[dict[Line, ChildFile], Meta(description="loops that the agent may fork, by name")] = field(
        default_factory=dict[str, ChildFile]
    )


class Verify(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who accepts: a command, a model, or, where neither is named, a person."""

    check: Annotated[Line | None, Meta(description="a command that accepts with exit code 0")] = None
    timeout: Annotated[Duration | None, Meta(description="how long the check may take")] = None
    judge: Annotated[Line | None, Meta(description="a model that judges, as provider:model")] = None
    gates: Annotated[
        dict[Line, Line], Meta(description="commands by name that each round must pass before it is checked")
    ] = field(default_factory=dict[str, str])


class Spot(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a node lies."""

    x: float
    y: float


class Edge(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A way between two states. Only those of the one table are legal (AG-02). `kind`: the class of error that takes it."""

    source: AgentStateName = field(name="from")
    target: AgentStateName = field(name="to")
    kind: Annotated[Line, Meta(description="of an edge into error_recovery: the class of error")] = ""


class Canvas(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How it is drawn; it changes nothing of what runs."""

    nodes: dict[Line, Spot] = field(default_factory=dict[str, Spot])
    edges: tuple[Edge, ...] = ()


class LoopFile(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A loop as a file."""

    treadle: Annotated[Literal[1], Meta(description="the version of this format")]
    name: Annotated[str, Meta(min_length=1, max_length=100)] = "loop"
    task: Annotated[Text, Meta(description="what is to be done, where the command line does not say it")] = ""
    control: Control = Control()
    foundation: Foundation = Foundation()
    perceive: Perceive | None = None
    act: Act = Act()
    verify: Verify = Verify()
    canvas: Canvas = Canvas()


def contradictions(file: LoopFile) -> list[tuple[str, str]]:
    """(path, what is wrong) of what every single key allows but not all together."""
    found: list[tuple[str, str]] = []
    try:
        with_guards(Guards(), file.control.guards)
    except ConfigurationError as error:
        found.append(("control.guards", str(error)))
    found += _of_act(file)
    if file.verify.check and file.verify.judge:
        found.append(("verify.judge", "both check and judge are given: one of them decides. Leave one out."))
    cost = file.control.max_cost
    if cost is not None and (not cost.is_finite() or cost <= 0):
        found.append(("control.max_cost", f"must be above 0, not {cost}."))
    for path, text in (("control.max_time", file.control.max_time), ("verify.timeout", file.verify.timeout)):
        if text is not None and not any(digit in text for digit in "123456789"):
            found.append((path, f"{text!r} is no duration above 0. Examples: 90s, 10m, 2h."))
    for name in ("check", "judge"):
        value = getattr(file.verify, name)
        if value is not None and not value.strip():
            found.append((f"verify.{name}", "is empty."))
    for index, edge in enumerate(file.canvas.edges):
        if edge.target not in AGENT_TRANSITIONS[edge.source]:
            found.append((f"canvas.edges.{index}", illegal(edge.source, edge.target)))
    return found


def _of_act(file: LoopFile) -> list[tuple[str, str]]:
    found = _of_a_command(file) if file.act.agent_command else []
    if file.act.on_accept and not file.act.isolate:
        found.append(("act.on_accept", "goes with isolate: true; without it act works in the workspace itself."))
    for name, child in file.act.children.items():
        found += [(f"act.children.{name}{key}", words) for key, words in _of_a_child(name, child)]
    return found


def _of_a_command(file: LoopFile) -> list[tuple[str, str]]:
    """What goes with a model alone."""
    said = (
        (
            file.foundation.escalate_to,
            "foundation.escalate_to",
            "a command acts, and it has no ladder of models. Leave one out.",
        ),
        (
            file.foundation.model,
            "act.agent_command",
            "both a command and foundation.model are given: one of them acts. Leave one out.",
        ),
        (
            file.control.plan,
            "control.plan",
            "a command acts, and it cannot be held back until a plan is approved. Leave one out.",
        ),
        (file.act.children, "act.children", "a command acts, and it cannot fork children. Leave one out."),
    )
    return [(path, words) for given, path, words in said if given]


def _of_a_child(name: str, child: ChildFile) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    if not re.fullmatch(GATE_NAME, name):
        found.append(("", "is no name of a child: up to 40 letters, digits, dots, dashes and underscores."))
    if child.check and child.judge:
        found.append((".judge", "both check and judge are given: one of them decides. Leave one out."))
    if child.max_cost is not None and (not child.max_cost.is_finite() or child.max_cost <= 0):
        found.append((".max_cost", f"must be above 0, not {child.max_cost}."))
    if child.max_time is not None and not any(digit in child.max_time for digit in "123456789"):
        found.append((".max_time", f"{child.max_time!r} is no duration above 0. Examples: 90s, 10m, 2h."))
    for capability in child.allow or ():
        try:
            parse_capability(capability)
        except InputError as error:
            found.append((".allow", str(error)))
    return found


def _child(file: ChildFile) -> CommandLineChild:
    return CommandLineChild(
        about=file.about,
        instructions=file.instructions,
        model=file.model or "",
        base_url=file.base_url,
        price=file.price,
        check=file.check or "",
        judge=file.judge or "",
        answers=file.answers or "person",
        allow=file.allow,
        isolate=file.isolate,
        max_rounds=file.max_rounds or CHILD_ROUNDS,
        max_turns=file.max_turns,
        max_cost_usd=file.max_cost,
        max_time_s=seconds(file.max_time) if file.max_time else None,
    )


def illegal(source: AgentStateName, target: AgentStateName) -> str:
    """Why the table has no such edge."""
    ways = sorted(AGENT_TRANSITIONS[source])
    where = f"It leads to {', '.join(ways)}." if ways else "It is an end: nothing leads out of it."
    return f"{source} does not lead to {target}. {where}"


def seconds(text: str) -> float:
    """A duration of the file in seconds. InputError for what is none."""
    match = re.fullmatch(DURATION, text, re.ASCII)
    parts = [float((part or "0").rstrip("hms")) for part in match.groups()[::2]] if match else [0.0]
    found = sum(part * unit for part, unit in zip(parts, (3600, 60, 1), strict=False))
    if found <= 0:
        raise InputError(f"{text!r} is no duration above 0. Examples: 90s, 10m, 2h, 1h30m.")
    return found


def flags(file: LoopFile) -> dict[str, Any]:
    """What it says, by the names of the flags of `treadle run`; a flag that is typed wins."""
    control, foundation, act, verify = file.control, file.foundation, file.act, file.verify
    found: dict[str, Any] = {
        "check": verify.check,
        "judge": verify.judge,
        "model": foundation.model,
        "base_url": foundation.base_url,
        "price": foundation.price,
        "agent_command": act.agent_command,
        "protect": list(act.protect) or None,
        "sandbox": act.sandbox or None,
        "isolate": act.isolate or None,
        "on_accept": act.on_accept,
        "mcp": list(act.mcp) or None,
        "skills": list(act.skills) or None,
        "allow": None if act.allow is None else list(act.allow),
        "may_ask": list(act.may_ask) or None,
        "map_budget": _map_budget(file),
        "max_rounds": control.max_rounds,
        "max_turns": control.max_turns,
        "max_cost": control.max_cost,
        "max_time": control.max_time,
        "guard": control.guards or None,
        "gate": dict(verify.gates) or None,
        "lessons": control.lessons,
        "must_change": control.must_change or None,
        "plan": control.plan or None,
        "window": foundation.window,
        "compact": foundation.compact,
        "compact_at": foundation.compact_at,
        "escalate_to": list(foundation.escalate_to) or None,
        "escalate_after": foundation.escalate_after,
    }
    return {name: value for name, value in found.items() if value is not None}


def _map_budget(file: LoopFile) -> int | None:
    """What is not on the canvas is off: no Perceive, no map. A command that acts looks for itself."""
    if file.act.agent_command:
        return None
    return 0 if file.perceive is None else file.perceive.budget


def beyond_flags(file: LoopFile) -> dict[str, Any]:
    """What no flag says, by the names of CommandLineLoop."""
    found: dict[str, Any] = {
        "name": file.name,
        "instructions": file.foundation.instructions or None,
        "check_timeout_s": seconds(file.verify.timeout) if file.verify.timeout else None,
        "max_turns_per_act": file.control.max_turns_per_act,
        "max_tokens": file.control.max_tokens,
        "warn_at": file.control.warn_at,
        "on_invalid": file.act.on_invalid,
        "children": {name: _child(one) for name, one in file.act.children.items()} or None,
    }
    return {name: value for name, value in found.items() if value is not None}
