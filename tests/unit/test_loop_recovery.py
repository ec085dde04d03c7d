"""`on_loop_recovery`: what a person's own function makes of the last rejected and the accepted iteration (FR-19)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.driving import DONE, FEE, PLAN, a_loop, in_runtime, scripted
from treadle import accept, reject
from treadle.app.runtime import Runtime
from treadle.kernel.lesson_state import GateRecovery
from treadle.kernel.states import LoopState
from treadle.memory.lessons import from_gate
from treadle.ports.callback import Iteration
from treadle.testing import Turn

AGAIN = Turn(calls=[("finish", {"summary": "did it better"})], usage=FEE)


async def lessons_of(runtime: Runtime, learn: Any, verdicts: list[Any], **changes: Any) -> list[str]:
    """Texts of what one loop taught."""
    left = iter(verdicts)
    loop = a_loop(
        scripted(PLAN, DONE, *[AGAIN] * len(verdicts)),
        lambda ctx, output: next(left),
        on_loop_recovery=learn,
        **changes,
    )
    session = await runtime.start(loop, "Do it.")
    document = await session.run()
    await session.close()
    assert document["status"] in ("done", "failed")
    assert runtime.lessons is not None
    return [one.text for one in await runtime.lessons.all()]


@pytest.mark.req("FR-19")
def test_it_is_given_the_last_rejected_and_the_accepted_iteration(tmp_path: Path) -> None:
    seen: list[tuple[Iteration, Iteration]] = []

    async def learn(rejected: Iteration, accepted: Iteration) -> list[str]:
        seen.append((rejected, accepted))
        return ["one thing", "another"]

    async def test(runtime: Runtime) -> None:
        verdicts = [reject("first"), reject("not yet"), accept(evidence="looked at it")]
        assert sorted(await lessons_of(runtime, learn, verdicts)) == ["another", "one thing"]
        ((rejected, accepted),) = seen
        assert (rejected.iteration, rejected.output, rejected.feedback) == (1, "did it better", "not yet")
        assert (accepted.iteration, accepted.output, accepted.feedback) == (2, "did it better", None)
        assert accepted.evidence == "looked at it"

    in_runtime("memory:", tmp_path, test)


@pytest.mark.req("FR-19")
@pytest.mark.parametrize(
    ("verdicts", "changes"),
    [
        ([accept()], {}),
        ([reject("no"), reject("no")], {"max_rounds": 2}),
        ([reject("no"), accept()], {"lessons": "recall"}),
    ],
)
def test_it_is_not_asked_where_nothing_was_recovered(verdicts: list[Any], changes: Any, tmp_path: Path) -> None:
    async def test(runtime: Runtime) -> None:
        asked: list[Any] = []
        assert await lessons_of(runtime, lambda *given: asked.append(given), verdicts, **changes) == []
        assert asked == []

    in_runtime("memory:", tmp_path, test)


@pytest.mark.req("FR-19")
@pytest.mark.parametrize("given", [None, 7, ["", "x"], RuntimeError("out of words")])
def test_what_it_returns_or_raises_undoes_nothing(given: Any, tmp_path: Path) -> None:
    def learn(rejected: Iteration, accepted: Iteration) -> Any:
        if isinstance(given, Exception):
            raise given
        return given

    async def test(runtime: Runtime) -> None:
        assert await lessons_of(runtime, learn, [reject("no"), accept()]) == []

    in_runtime("memory:", tmp_path, test)


@pytest.mark.req("FR-20")
@pytest.mark.parametrize(
    ("output", "said"),
    [
        ('"used the parser"', " Accepted after: used the parser"),
        ('{"exit_code":0,"output":"step 1\\nall is well\\n \\n"}', " Accepted after: all is well"),
        ('{"exit_code":0,"output":""}', ""),
        ('{"files":2}', ' Accepted after: {"files":2}'),
        ("null", ""),
    ],
)
def test_a_lesson_quotes_what_act_said_and_of_a_command_its_last_line(output: str, said: str) -> None:
    recovery = GateRecovery(gate="lint", failed_iteration=0, passed_iteration=1, evidence="E501", changed=("a.py",))
    text, _ = from_gate(recovery, LoopState(last_output_json=output))
    assert text == f'The gate "lint" failed (E501) until a.py had been changed.{said}'
