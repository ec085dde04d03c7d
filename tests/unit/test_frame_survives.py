"""Each field of the frame survives a kill at every named crash point: what a killed loop ends with is what an unkilled one ends with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from support.crashing import Lives
from support.whole_frame import TASK, lesson, prepare, whole_loop
from treadle.app.frames import plain
from treadle.app.runtime import Runtime
from treadle.core import events as ev
from treadle.core.codec import decode
from treadle.kernel.continuation import frame_of, identity_of
from treadle.kernel.frame import FIELDS, dump_frame, load_frame
from treadle.kernel.states import LoopState
from treadle.kernel.steering import Answer
from treadle.testing.crash import LESSON_POINTS, LOOP_POINTS, SCOPE_POINTS

TIMES = ("elapsedDurationMs", "actElapsedDurationMs")
NEVER = ("before-act", "after-act", "before-check", "after-check", "before-compaction", "after-compaction")
CONFLICT = ("before-bring-in", "after-bring-in")  # no conflict here: test_cli_scope has them
SLOW = [pytest.param(one, marks=pytest.mark.slow) for one in SCOPE_POINTS if one not in (*CONFLICT, "after-close")]
POINTS = [*(one for one in (*LOOP_POINTS, "after-close", *LESSON_POINTS) if one not in NEVER), *SLOW]
LATER = {"before-model": 9, "after-model": 9, "before-tool": 5, "after-tool": 5, "before-gates": 2, "after-gates": 2}


async def approve(runtime: Runtime, state: LoopState) -> None:
    assert state.pending is not None
    said = Answer(request_id=state.pending.id, decision="approve", text="", actor="eve")
    await runtime.steer("whole", said)


async def fields(runtime: Runtime, state: LoopState) -> dict[str, Any]:
    """The frame; what differs from run to run told by what it means: messages by their text, trees by their paths."""
    sealed = dump_frame(frame_of(state), max_iterations=state.settings.max_rounds)
    frame = plain(load_frame(sealed, max_iterations=state.settings.max_rounds, identity=identity_of(state)))
    messages: dict[str, str] = {}
    for record in await runtime.ledger.records("whole"):
        if record.kind in ev.MESSAGE_KINDS:
            event: Any = decode(record.kind, record.version, record.body)
            messages[str(record.seq)] = str(getattr(event, "text", "") or getattr(event, "results", ""))
    frame["preservedActLeafMessageId"] = messages[frame["preservedActLeafMessageId"]]
    for mount in frame["activeSkillActivations"].values():
        mount["messageId"] = "In digits." in messages[mount["messageId"]]
    return {field: frame.get(field) for field in FIELDS if field not in TIMES}


def ended(folder: Path, die_at: tuple[str, int] | None) -> dict[str, Any]:
    """The frame at the end, after a death at that point."""
    prepare(folder / "workspace")

    async def main() -> dict[str, Any]:
        lives = Lives(folder)
        async with lives.life() as runtime:
            assert runtime.lessons is not None
            await runtime.lessons.add([lesson("whole.act", folder / "workspace")])
        state = await lives.run(
            lambda: whole_loop(folder / "workspace"), "whole", die_at=die_at, meanwhile=approve, task=TASK
        )
        assert (state.status, lives.deaths) == ("done", int(die_at is not None))
        async with lives.life() as runtime:
            return await fields(runtime, state)

    return anyio.run(main)


@pytest.fixture(scope="module")
def unkilled(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return ended(tmp_path_factory.mktemp("unkilled"), None)


@pytest.mark.req("FR-05", "FR-06", "FR-08", "FR-12", "FR-13", "FR-14", "FR-15", "FR-16", "FR-18", "FR-20", "LG-03")
@pytest.mark.parametrize("point", POINTS)
def test_every_field_survives_a_kill_at(point: str, unkilled: dict[str, Any], tmp_path: Path) -> None:
    killed = ended(tmp_path, (point, LATER.get(point, 1)))
    assert killed == unkilled
