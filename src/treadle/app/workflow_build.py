"""A workflow's definition becomes what its machine and its effects need. Everything is checked here, before anything starts."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, cast

import msgspec

from treadle.core import workflow_events as ev
from treadle.core.errors import DefinitionError, InputError, InvalidOutput, ProviderError
from treadle.core.strict_json import to_json
from treadle.core.usage import Usage
from treadle.effects.tasks import Callbacks
from treadle.ports.clock import Clock
from treadle.settings import Settings
from treadle.spec.definitions import Loop
from treadle.spec.workflows import AnyTask, ApprovalTask, Budget, LoopTask, PauseTask, RunTask, Task, Workflow, keys_of

from .build import build
from .identity import LONGEST, digest, stored
from .inputs import dump_input


@dataclass(frozen=True, slots=True)
class BuiltWorkflow:
    """What one workflow runs with."""

    settings: ev.WorkflowSettings
    callbacks: dict[str, Callbacks]
    fingerprint: dict[str, str]
    price: Callable[[Usage], Decimal] | None


def build_workflow(workflow: Workflow, settings: Settings, clock: Clock, *, store: str) -> BuiltWorkflow:
    """`store` is the address of the store. ConfigurationError and DefinitionError say what is wrong and where."""
    price = None
    if workflow.price is not None:
        from treadle.models.prices import parse_price

        price = parse_price(workflow.price).cost
    budget = budget_settings(workflow.budget)
    capped = budget.max_cost_usd is not None
    fingerprint = {"version": workflow.version if len(workflow.version) <= LONGEST else digest(workflow.version)}
    for task in workflow.tasks:
        fingerprint[f"task {task.key}"] = stored(_task_parts(task, settings, clock, store=store, capped=capped))
    return BuiltWorkflow(
        settings=ev.WorkflowSettings(
            name=workflow.name,
            version=workflow.version,
            tasks=tuple(_settings(task) for task in workflow.tasks),
            concurrency=workflow.concurrency,
            on_error=workflow.on_error,
            budget=budget,
            priced=price is not None,
        ),
        callbacks={task.key: _callbacks(task) for task in workflow.tasks},
        fingerprint=fingerprint,
        price=price,
    )


def _us(seconds: float | None) -> int | None:
    return None if seconds is None else int(seconds * 1_000_000)


def budget_settings(budget: Budget) -> ev.BudgetSettings:
    """The limits as the machine knows them."""
    limits: dict[str, Any] = {**vars(budget), "max_duration_us": _us(budget.max_time_s)}
    del limits["max_time_s"]
    return ev.BudgetSettings(**limits)


def _settings(task: AnyTask) -> ev.TaskSettings:
    settings = ev.TaskSettings(key=task.key, after=keys_of(task.after), conditional=task.condition is not None)
    match task:
        case LoopTask():
            return msgspec.structs.replace(
                settings,
                kind="loop",
                max_rounds=task.max_rounds,
                timeout_us=_us(task.timeout_s),
                interactive=task.interaction is not None,
                actors=tuple(task.interaction.actors) if task.interaction else (),
            )
        case ApprovalTask():
            return msgspec.structs.replace(settings, kind="approval", prompt=task.prompt, actors=tuple(task.actors))
        case PauseTask():
            return msgspec.structs.replace(
                settings, kind="pause", prompt=task.prompt, actors=tuple(task.actors), for_us=_us(task.for_s)
            )
        case Task() | RunTask():
            interaction = task.interaction if isinstance(task, Task) else None
            return msgspec.structs.replace(
                settings,
                retry=ev.RetrySettings(
                    attempts=task.retry.attempts,
                    delay_us=_us(task.retry.delay_s) or 0,
                    backoff=task.retry.backoff,
                    max_delay_us=_us(task.retry.max_delay_s),
                    jitter=task.retry.jitter,
                ),
                timeout_us=_us(task.timeout_s),
                interactive=interaction is not None,
                actors=tuple(interaction.actors) if interaction else (),
            )


def _callbacks(task: AnyTask) -> Callbacks:
    match task:
        case LoopTask():
            return Callbacks(attempt=task.attempt, check=task.check, condition=task.condition)
        case Task() | RunTask():
            return Callbacks(perform=task.perform, condition=task.condition, retry_when=task.retry.when)
        case _:
            return Callbacks(condition=task.condition)


# ---- fingerprint: what a stored execution must not meet changed (FR-25); never limits, retries, timeouts or prices


def _task_parts(task: AnyTask, settings: Settings, clock: Clock, *, store: str, capped: bool) -> dict[str, Any]:
    parts: dict[str, Any] = {"kind": type(task).__name__, "after": sorted(keys_of(task.after))}
    parts["condition"] = _name(task.condition)
    match task:
        case LoopTask():
            parts |= {"attempt": _name(task.attempt), "check": _name(task.check)}
            parts["asks"] = task.interaction is not None
        case RunTask():
            parts["input"] = _input(task)
            parts["runs"] = inner_fingerprint(task.key, task.what, settings, clock, store=store, capped=capped)
        case Task():
            parts |= {"perform": _name(task.perform), "asks": task.interaction is not None}
        case ApprovalTask():
            parts["prompt"] = task.prompt
        case PauseTask():
            parts["prompt"] = task.prompt
    return parts


def _input(task: RunTask) -> str:
    """What it is given, as far as that stands in the definition. DefinitionError where it cannot be taken."""
    if callable(task.input):
        return _name(task.input)
    try:
        return dump_input(task.what, task.input)[0] if isinstance(task.what, Loop) else to_json(task.input, "input")
    except (InputError, InvalidOutput) as error:
        raise DefinitionError(f"{task.key}: {error}") from error


def inner_fingerprint(
    key: str, what: Loop | Workflow, settings: Settings, clock: Clock, *, store: str, capped: bool
) -> dict[str, str]:
    """Of what a task runs. DefinitionError where a limit on cost meets a model without a price."""
    if isinstance(what, Workflow):
        return build_workflow(what, settings, clock, store=store).fingerprint
    built = build(what, settings, clock, store=store)
    if capped and built.unpriced:
        raise DefinitionError(
            f"{key}: the price of {built.unpriced} is unknown, and the workflow has max_cost_usd. Give the agent a price."
        )
    return built.fingerprint


def _name(function: object) -> str:
    """Without its module: a script that is run is `__main__`, and one that is imported is not."""
    if function is None:
        return ""
    return function.__qualname__ if inspect.isroutine(function) else type(function).__qualname__


# ---- what a callback's exception says of a provider


def provider_fault(now_us: Callable[[], int]) -> Callable[[BaseException], ProviderError | None]:
    """Finds a provider's fault in an exception, its causes and its groups: our own, or any HTTP error of a client library (TC-24)."""

    def find(error: BaseException) -> ProviderError | None:
        for link in _chain(error):
            if isinstance(link, ProviderError):
                return link
            response: Any = getattr(link, "response", None)
            status: Any = getattr(link, "status_code", None) or getattr(response, "status_code", None)
            if type(status) is int and status >= 400:
                from treadle.models.failures import http_failure
                from treadle.models.service import Service

                headers: Any = getattr(link, "headers", None) or getattr(response, "headers", None) or {}
                body: Any = getattr(link, "body", None) or _said(response) or str(link)
                return http_failure(status, dict(headers), body, Service(name="the provider"), now_us=now_us())
        return None

    return find


def _said(response: Any) -> Any:
    """What an HTTP library has read of the answer; some providers say there when they go on."""
    try:
        return response.json()
    except (AttributeError, ValueError, RuntimeError):  # no answer, no JSON, or not read yet
        return None


def _chain(error: BaseException) -> Iterator[BaseException]:
    waiting: list[BaseException] = [error]
    seen: set[int] = set()
    while waiting and len(seen) < 50:
        link = waiting.pop(0)
        if id(link) in seen:
            continue
        seen.add(id(link))
        yield link
        if isinstance(link, BaseExceptionGroup):
            waiting.extend(cast("BaseExceptionGroup[BaseException]", link).exceptions)
        waiting.extend(one for one in (link.__cause__, link.__context__) if one is not None)
