"""Failed tool calls: their class by cause, their hint, what is repeated and what is refused (AG-09)."""

from __future__ import annotations

import ast
import errno
import subprocess
from pathlib import Path
from typing import Any

import pytest

import treadle
from support.driving import DONE, FEE, PLAN, in_runtime, scripted
from support.machine import Machine, call, finish
from treadle import Agent, Loop, accept, tool
from treadle.core.errors import ToolError
from treadle.core.messages import ToolResult, ToolsFinished
from treadle.kernel import actions as act
from treadle.kernel.tool_errors import CLASSES, classified, hint_for, is_allowed, of_exit_code, of_text
from treadle.testing import Turn


class _Response:
    status_code = 429


class _HttpError(Exception):
    response = _Response()


class _ValidationError(ValueError):
    pass


_ValidationError.__name__ = "ValidationError"


@pytest.mark.req("AG-09")
@pytest.mark.parametrize(
    ("error", "kind", "transient"),
    [
        (FileNotFoundError(errno.ENOENT, "no"), "not-found", False),
        (FileNotFoundError("timed out"), "not-found", False),
        (PermissionError("not found"), "permission", False),
        (OSError(errno.EROFS, "no"), "permission", False),
        (OSError(errno.ELOOP, "no"), "safety", False),
        (OSError(errno.EBUSY, "no"), "conflict", True),
        (OSError(errno.EISDIR, "no"), "argument", False),
        (OSError(errno.ENOSPC, "no"), "execution", False),
        (ConnectionResetError(errno.ECONNRESET, "no"), "execution", True),
        (ConnectionError("no such host"), "execution", True),
        (TimeoutError("permission denied"), "timeout", True),
        (subprocess.TimeoutExpired("x", 1), "timeout", True),
        (subprocess.CalledProcessError(127, "x"), "not-found", False),
        (subprocess.CalledProcessError(126, "x"), "permission", False),
        (subprocess.CalledProcessError(124, "x"), "timeout", False),
        (subprocess.CalledProcessError(1, "x"), "execution", False),
        (_HttpError("forbidden"), "rate-limit", True),
        (_ValidationError("x"), "argument", False),
        (OSError("merge conflict"), "conflict", False),
        (ToolError("safety", "timed out"), "safety", False),
    ],
)
def test_a_failure_has_its_class_by_typed_cause_and_by_words_last(error: Exception, kind: str, transient: bool) -> None:
    found = classified(error)
    assert found is not None
    assert (found.kind, found.transient) == (kind, transient)


def test_what_has_no_typed_cause_is_a_fault_of_the_tools_own_code() -> None:
    assert classified(ValueError("no such file")) is None
    assert classified(AttributeError("timeout")) is None


@pytest.mark.req("AG-09")
@pytest.mark.parametrize(
    ("text", "kind", "transient"),
    [
        ("429 Too Many Requests", "rate-limit", True),
        ("the request timed out", "timeout", True),
        ("path is outside the workspace", "safety", False),
        ("Access denied", "permission", False),
        ("ENOENT: no such file", "not-found", False),
        ("file already exists", "conflict", False),
        ("missing required argument: path", "argument", False),
        ("connection refused", "execution", True),
        ("boom", "execution", False),
    ],
)
def test_words_tell_where_nothing_else_does(text: str, kind: str, transient: bool) -> None:
    assert of_text(text) == (kind, transient)


def test_exit_codes_that_say_nothing_by_themselves_have_no_class() -> None:
    assert of_exit_code(1) is None
    assert of_exit_code(127) == ("not-found", False)


@pytest.mark.req("AG-09")
@pytest.mark.parametrize(
    "hint",
    [
        "Run it with sudo.",
        "chmod 777 the folder",
        "use git commit --no-verify",
        "Skip the failing test.",
        "disable the sandbox",
    ],
)
def test_a_hint_never_suggests_more_rights_or_a_weaker_check(hint: str) -> None:
    assert not is_allowed(hint)
    assert hint_for(ToolError("permission", "no", hint=hint), repeatable=True) == CLASSES["permission"].hint


@pytest.mark.req("AG-09")
def test_no_hint_of_ours_does_and_each_class_has_one() -> None:
    hints = [(file, hint) for file in Path(treadle.__file__).parent.rglob("*.py") for hint in _hints(file)]
    assert len(hints) >= 30
    assert [(file.name, hint) for file, hint in hints if not is_allowed(hint)] == []
    assert all(is_allowed(one.hint) and one.hint for one in CLASSES.values())


def _hints(file: Path) -> list[str]:
    found: list[str] = []
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.keyword) and node.arg == "hint":
            found += [
                part.value
                for part in ast.walk(node.value)
                if isinstance(part, ast.Constant) and isinstance(part.value, str)
            ]
    return found


# ---- what the engine repeats


def _run(tmp_path: Path, function: Any, *turns: Turn) -> Any:
    """The results that one loop's tool calls had."""
    seen: list[ToolResult] = []

    async def test(runtime: Any) -> None:
        loop = Loop(
            name="t", act=Agent(model=scripted(PLAN, *turns, DONE), tools=(function,)), evaluate=lambda c, o: accept()
        )
        session = await runtime.start(loop, "the task")
        await session.run()
        for record in await runtime.ledger.records(session.execution_id):
            if record.kind == "tools.finished":
                from treadle.core.codec import decode

                event = decode(record.kind, record.version, record.body)
                assert isinstance(event, ToolsFinished)
                seen.extend(event.results)
        await session.close()

    in_runtime("memory:", tmp_path, test)
    return seen[:-1]


@pytest.mark.req("AG-09")
@pytest.mark.parametrize(("kind", "runs"), [("read", 2), ("idempotent", 2), ("mutating", 1)])
def test_a_transient_failure_is_repeated_once_only_where_that_is_harmless(tmp_path: Path, kind: Any, runs: int) -> None:
    ran: list[int] = []

    @tool(kind=kind, name="flaky")
    def flaky() -> str:
        """Fails."""
        ran.append(1)
        raise TimeoutError("too slow")

    (result,) = _run(tmp_path, flaky, Turn(calls=[("flaky", {})], usage=FEE))
    assert len(ran) == runs
    assert (result.status, result.error, result.transient) == ("error", "timeout", True)
    assert ("look before you repeat" in result.content) == (kind == "mutating")


@pytest.mark.req("AG-09")
def test_a_deterministic_failure_is_not_repeated_and_the_same_call_is_refused_with_what_it_was_told(
    tmp_path: Path,
) -> None:
    ran: list[str] = []

    @tool(kind="read", name="open_it")
    def open_it(path: str) -> str:
        """Fails."""
        ran.append(path)
        raise FileNotFoundError(errno.ENOENT, "No such file", path)

    turn = Turn(calls=[("open_it", {"path": "a"})], usage=FEE)
    other = Turn(calls=[("open_it", {"path": "b"})], usage=FEE)
    first, again, another = _run(tmp_path, open_it, turn, turn, other)
    assert ran == ["a", "b"]
    assert (first.status, first.error) == ("error", "not-found")
    assert (again.status, again.error) == ("not-run", "not-found")
    assert "has failed before" in again.content
    assert "No such file" in again.content
    assert another.status == "error"


@pytest.mark.req("AG-09")
def test_after_something_may_have_changed_it_may_be_tried_again() -> None:
    failing = call("open", fails=True)
    machine = _Failing(
        turns=["plan", [failing], [failing], [call("make", "mutating")], [failing], [finish()]], verdicts=[True]
    )
    assert machine.start().rest().code == "accepted"
    assert machine.ran == ["open", "make", "open"]


@pytest.mark.req("AG-09")
def test_in_a_batch_only_the_call_that_failed_before_is_refused() -> None:
    failing = call("open", fails=True)
    batch = [call("look", id="l1"), failing, call("look", id="l2")]
    machine = _Failing(turns=["plan", [failing], batch, [finish()]], verdicts=[True])
    assert machine.start().rest().code == "accepted"
    assert machine.ran == ["open", "look", "look"]


class _Failing(Machine):
    """Reads that fail for a reason that does not pass."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.ran: list[str] = []

    def outcome(self, action: act.Action) -> Any:
        if not isinstance(action, act.RunTools):
            return super().outcome(action)
        self.ran += [one.name for one in action.calls]
        results = tuple(
            ToolResult(id=one.id, content="no", status="error", error="not-found", mark="m")
            if isinstance(one.args, dict) and "fails" in one.args
            else ToolResult(id=one.id, content="ok", mark="n")
            for one in action.calls
        )
        return ToolsFinished(parent=self.state.agent.leaf or 0, results=results, us=1)
