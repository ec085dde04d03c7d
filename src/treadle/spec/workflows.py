"""A workflow as an engineer writes it down: tasks over plain async functions, loops, gates, and what depends on what."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal, TypedDict, TypeVar, cast

from treadle.core.errors import DefinitionError
from treadle.ports.callback import Verdict
from treadle.ports.task import LoopTaskContext, TaskContext, TaskRef

from .definitions import Loop, check_cost, check_guards

T = TypeVar("T")
After = Sequence[TaskRef[Any] | str]
ConditionFunction = Callable[[TaskContext], Awaitable[bool]]
_KEY = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,99}")


def whole(name: str, value: object, least: int) -> None:
    """DefinitionError unless it is None or a whole number; True is none."""
    if value is not None and (type(value) is not int or value < least):
        raise DefinitionError(f"{name} must be a whole number of at least {least}, not {value!r}.")


def seconds(name: str, value: object, *, zero: bool = False) -> None:
    """DefinitionError unless it is None or a finite span."""
    if value is None:
        return
    span = isinstance(value, int | float) and not isinstance(value, bool) and value < float("inf")
    if not span or not (value >= 0 if zero else value > 0):  # type: ignore[operator]
        raise DefinitionError(f"{name} must be a span in seconds {'from' if zero else 'above'} 0, not {value!r}.")


class Decided(TypedDict):
    """The output of an approval: who approved, and what they said."""

    decision: str
    actor: str
    text: str
    at_us: int


@dataclass(frozen=True, kw_only=True)
class Retry:
    """How often a task is tried, and how long it waits in between; a server's own retry-after is never undercut (TC-20)."""

    attempts: int = 1
    delay_s: float = 1.0
    backoff: Literal["fixed", "exponential"] = "exponential"
    max_delay_s: float | None = 300.0
    jitter: float = 0.1  # share of the delay that chance may add
    when: Callable[[Exception], bool] | None = None  # None: every exception

    def __post_init__(self) -> None:
        whole("attempts", self.attempts, 1)
        seconds("delay_s", self.delay_s, zero=True)
        seconds("max_delay_s", self.max_delay_s, zero=True)
        if self.backoff not in ("fixed", "exponential"):
            raise DefinitionError(f"backoff is fixed or exponential, not {self.backoff!r}.")
        if isinstance(self.jitter, bool) or not 0 <= self.jitter <= 1:
            raise DefinitionError(f"jitter is a share between 0 and 1, not {self.jitter!r}.")


ONCE = Retry()


@dataclass(frozen=True, kw_only=True)
class Asks:
    """Declares that a task asks people (`ctx.interaction`); with `actors`, only these may answer."""

    actors: Sequence[str] = ()


@dataclass(frozen=True)
class Task(TaskRef[T]):
    """One async function, run once its dependencies are done."""

    key: str
    perform: Callable[[TaskContext], Awaitable[T]]
    after: After = ()
    retry: Retry = ONCE
    timeout_s: float | None = None
    condition: ConditionFunction | None = None
    interaction: Asks | None = None

    def __post_init__(self) -> None:
        _node(self.key, self.after, self.timeout_s)
        _function(self.key, "perform", self.perform)


@dataclass(frozen=True)
class LoopTask(TaskRef[T]):
    """Rounds over two async functions: attempt produces a candidate, check accepts or rejects it with feedback."""

    key: str
    attempt: Callable[[LoopTaskContext, str | None], Awaitable[T]]
    check: Callable[[LoopTaskContext, T], Awaitable[Verdict]]
    max_rounds: int
    after: After = ()
    timeout_s: float | None = None  # of a round: attempt and check together
    interaction: Asks | None = None
    condition: ConditionFunction | None = None

    def __post_init__(self) -> None:
        _node(self.key, self.after, self.timeout_s)
        whole(f"{self.key}: max_rounds", self.max_rounds, 1)
        _function(self.key, "attempt", self.attempt)
        _function(self.key, "check", self.check)


@dataclass(frozen=True)
class RunTask(TaskRef[Any]):
    """A Loop or another Workflow as a task: an execution of its own inside this one. Its output is the task's.

    `input` is the value that it gets, or an async function of the context that makes it.
    """

    key: str
    what: Loop | Workflow
    input: Any = None
    after: After = ()
    retry: Retry = ONCE
    timeout_s: float | None = None
    condition: ConditionFunction | None = None

    def __post_init__(self) -> None:
        _node(self.key, self.after, self.timeout_s)
        what = cast("object", self.what)
        if not isinstance(what, Loop | Workflow):
            raise DefinitionError(f"{self.key}: only a Loop or a Workflow can be run, not {what!r:.100}.")

    async def perform(self, ctx: TaskContext) -> Any:
        """Runs it."""
        value = self.input
        if callable(value):
            value = await cast("Callable[[TaskContext], Awaitable[Any]]", value)(ctx)
        return (await ctx.run(self.what, value, key="run")).output


@dataclass(frozen=True)
class ApprovalTask(TaskRef[Decided]):
    """A gate: a person approves, or rejects, which ends the workflow as rejected. With `actors`, only these may."""

    key: str
    prompt: str
    after: After = ()
    actors: Sequence[str] = ()
    condition: ConditionFunction | None = None

    def __post_init__(self) -> None:
        _node(self.key, self.after, None)
        if not self.prompt.strip():
            raise DefinitionError(f"{self.key}: say what is to be approved.")


@dataclass(frozen=True)
class PauseTask(TaskRef[None]):
    """A gate that ends by itself after `for_s` seconds, or, without, when a person approves."""

    key: str
    for_s: float | None = None
    prompt: str = ""
    after: After = ()
    actors: Sequence[str] = ()
    condition: ConditionFunction | None = None

    def __post_init__(self) -> None:
        _node(self.key, self.after, None)
        seconds(f"{self.key}: for_s", self.for_s)


AnyTask = Task[Any] | LoopTask[Any] | RunTask | ApprovalTask | PauseTask


@dataclass(frozen=True, kw_only=True)
class Budget:
    """Limits of the whole workflow, over all its tasks, resumes and children (TC-21).

    `max_time_s` is active time: waiting does not count, and what runs side by side counts once. Like the others it is asked
    before each phase; `timeout_s` ends one that is running.
    """

    max_attempts: int | None = None
    max_requests: int | None = None
    max_input_tokens: int | None = None
    max_output_tokens: int | None = None
    max_cache_read_tokens: int | None = None
    max_cache_write_tokens: int | None = None
    max_tokens: int | None = None
    max_cost_usd: Decimal | None = None
    max_time_s: float | None = None

    def __post_init__(self) -> None:
        seconds("max_time_s", self.max_time_s)
        for name, value in vars(self).items():
            if name not in ("max_cost_usd", "max_time_s"):
                whole(name, value, 1)
        check_cost("max_cost_usd", self.max_cost_usd)


@dataclass(frozen=True, kw_only=True)
class OnQuota:
    """What happens when a provider's quota is used up: the execution pauses, durably (TC-24).

    `max_wait_s` is how long a known reset is waited for in this process; None: as long as it takes. With "continue" the task
    finds the conversation so far in `ctx.quota`, with "restart" it does not.
    """

    max_wait_s: float | None = 0.0
    conversation: Literal["continue", "restart"] = "continue"

    def __post_init__(self) -> None:
        seconds("max_wait_s", self.max_wait_s, zero=True)
        if self.conversation not in ("continue", "restart"):
            raise DefinitionError(f"conversation is continue or restart, not {self.conversation!r}.")


@dataclass(frozen=True)
class Workflow:
    """Tasks with dependencies, as one durable execution. Tasks run as soon as they may, `concurrency` at a time.

    `on_error` "stop" aborts what runs when a task fails; "continue" lets everything go on that does not depend on it.
    `price` (USD per million tokens: input,output[,cache read[,cache write]]) prices reported usage that has no cost.
    `guards` are thresholds by name for the loops that run inside it; a loop's own come on top.
    Change `version` when stored executions must not go on with this definition.
    """

    name: str
    tasks: Sequence[AnyTask]
    version: str = "1"
    concurrency: int = 4
    on_error: Literal["stop", "continue"] = "stop"
    budget: Budget = field(default_factory=Budget)
    on_quota: OnQuota = field(default_factory=OnQuota)
    price: str | None = None
    guards: Mapping[str, int] = field(default_factory=dict[str, int])

    def __post_init__(self) -> None:
        check_guards(self.guards)
        if not self.name.strip() or not self.version.strip():
            raise DefinitionError("A workflow needs a name and a version.")
        if not self.tasks:
            raise DefinitionError(f"{self.name}: there are no tasks.")
        whole("concurrency", self.concurrency, 1)
        if self.on_error not in ("stop", "continue"):
            raise DefinitionError(f"on_error is stop or continue, not {self.on_error!r}.")
        _graph(self)


def keys_of(after: After) -> tuple[str, ...]:
    """The keys of dependencies, each once."""
    return tuple(dict.fromkeys(one if isinstance(one, str) else one.key for one in after))


def _graph(workflow: Workflow) -> None:
    after: dict[str, tuple[str, ...]] = {}
    for task in workflow.tasks:
        if not isinstance(cast("object", task), TaskRef):
            raise DefinitionError(
                f"{workflow.name}: a task is a Task, LoopTask, RunTask, ApprovalTask or PauseTask, not {task!r:.100}."
            )
        if task.key in after:
            raise DefinitionError(f"{workflow.name}: two tasks have the key {task.key!r}.")
        after[task.key] = keys_of(task.after)
    for key, dependencies in after.items():
        if unknown := [one for one in dependencies if one not in after]:
            raise DefinitionError(f"{workflow.name}: {key} depends on {unknown[0]!r}, which is no task of it.")
    left = {key: set(dependencies) for key, dependencies in after.items()}
    dependents: dict[str, list[str]] = {}
    for key, dependencies in after.items():
        for one in dependencies:
            dependents.setdefault(one, []).append(key)
    free = [key for key, dependencies in left.items() if not dependencies]
    while free:
        key = free.pop()
        del left[key]
        for one in dependents.get(key, ()):
            left[one].discard(key)
            if not left[one]:
                free.append(one)
    if left:
        raise DefinitionError(f"{workflow.name}: these tasks depend on one another in a circle: {', '.join(left)}.")


def _node(key: object, after: object, timeout_s: float | None) -> None:
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        raise DefinitionError(f"A task's key has 1 to 100 letters, digits, - or _, not {key!r:.120}.")
    if isinstance(after, str):
        raise DefinitionError(f"{key}: after is a sequence of tasks; write after=({after!r},).")
    seconds(f"{key}: timeout_s", timeout_s)


def _function(key: str, name: str, function: object) -> None:
    if not callable(function):
        raise DefinitionError(f"{key}: {name} must be an async function, not {function!r:.100}.")
