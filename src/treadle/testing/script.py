"""What a scripted model says: turns and faults, and which of them comes next."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

from treadle.core.errors import ConfigurationError, InvalidUsage
from treadle.core.usage import Usage

Order = Literal["history", "arrival"]
Call = tuple[str, Mapping[str, Any] | str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A good response. Arguments may be a string: broken JSON, for instance. No usage: it is counted from the texts."""

    text: str = ""
    calls: Sequence[Call] = ()
    usage: Usage | None = None
    finish: str = ""  # empty: tool_calls where there are calls, stop otherwise


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A bad one. `bill`: it is charged all the same, `usage` or what the request alone comes to.

    `delay_s` before the answer; `hang`: none, ever; `close_early`: the connection breaks off, in the middle of a `turn`
    where one is given and before anything was sent otherwise.
    """

    status: int = 500
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: Any = None
    close_early: bool = False
    bill: bool = False
    delay_s: float = 0.0
    hang: bool = False
    usage: Usage | None = None
    turn: Turn | None = None


Step = Turn | Fault
Script = Callable[[dict[str, Any]], Step] | Sequence[Step] | str | os.PathLike[str]


class Director:
    """Says which step answers a request. Any thread may ask.

    A callable decides by itself, from the request's body. A list goes by `history`: the k-th turn answers a
    conversation that holds k-1 responses, whoever asks and however often, so a resumed run gets the turn that it lacks;
    each fault comes up once, before the turn that it stands before. By `arrival` the n-th request gets the n-th step.
    Where a list is over, every further request is refused with a 400.
    """

    def __init__(self, script: Script, *, order: Order = "history") -> None:
        self._decide = script if callable(script) else None
        self._order = order
        self._steps = [] if callable(script) else list(_steps(script))
        self._asked = 0
        self._shown: set[int] = set()
        self._lock = threading.Lock()

    def next(self, responses: int, body: Callable[[], dict[str, Any]]) -> Step:
        """The answer to a request whose conversation holds so many responses of the model."""
        if self._decide is not None:
            return self._decide(body())
        with self._lock:
            self._asked += 1
            return self._by_arrival() if self._order == "arrival" else self._by_history(responses)

    def _by_arrival(self) -> Step:
        return self._steps[self._asked - 1] if self._asked <= len(self._steps) else self._over(len(self._steps))

    def _by_history(self, responses: int) -> Step:
        turns = 0
        for index, step in enumerate(self._steps):
            if isinstance(step, Turn):
                if turns == responses:
                    return step
                turns += 1
            elif turns == responses and index not in self._shown:
                self._shown.add(index)
                return step
        return self._over(turns)

    def _over(self, length: int) -> Fault:
        error = {"message": f"The script is over: it has {length} steps.", "type": "script", "code": "script_over"}
        return Fault(status=400, body={"error": error})


def turn_usage(turn: Turn, prompt_bytes: int) -> Usage:
    """The usage that a turn names, or a token for every four bytes."""
    if turn.usage is not None:
        return turn.usage
    written = len(turn.text) + sum(len(name) + len(args_text(args)) for name, args in turn.calls)
    return Usage(input_tokens=max(1, prompt_bytes // 4), output_tokens=max(1, written // 4))


def fault_usage(fault: Fault, prompt_bytes: int) -> Usage:
    """What a billed fault costs."""
    if fault.usage is not None:
        return fault.usage
    return turn_usage(fault.turn, prompt_bytes) if fault.turn else Usage(input_tokens=max(1, prompt_bytes // 4))


def args_text(args: Mapping[str, Any] | str) -> str:
    """A call's arguments as the JSON that goes over the wire."""
    return args if isinstance(args, str) else json.dumps(dict(args), separators=(",", ":"))


def _steps(script: Sequence[Step] | str | os.PathLike[str]) -> Iterable[Step]:
    if not isinstance(script, (str, os.PathLike)):
        return script
    try:
        rows: Any = json.loads(Path(script).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"The script {os.fspath(script)} cannot be read: {error}") from error
    if not isinstance(rows, list):
        raise ConfigurationError(f"The script {os.fspath(script)} is no JSON list of turns and faults")
    return [step_from_json(row, where=f"step {number}") for number, row in enumerate(cast("list[Any]", rows), 1)]


def step_from_json(row: Any, *, where: str) -> Step:
    """A turn `{"text", "calls": [[name, args], …], "usage", "finish"}`, or a fault: it has a `status` or a bad habit.

    ConfigurationError, naming `where`, for anything else.
    """
    try:
        fields = dict(cast("Mapping[str, Any]", row))
        if isinstance(fields.get("usage"), dict):
            fields["usage"] = Usage(**fields["usage"]).checked()
        if fields.keys() & {"status", "hang", "close_early", "body", "delay_s", "bill", "turn"}:
            if fields.get("turn") is not None:
                fields["turn"] = step_from_json(fields["turn"], where=f"the turn of {where}")
            return Fault(**fields)
        fields["calls"] = [(str(name), args) for name, args in fields.get("calls", ())]
        return Turn(**fields)
    except (TypeError, ValueError, InvalidUsage) as error:
        raise ConfigurationError(f"{where} is neither a turn nor a fault: {error}") from error
