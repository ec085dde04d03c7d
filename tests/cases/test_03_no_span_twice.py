"""Case 3: a resumed run emitted its spans 6 to 13 times. A replay tells no observer what it was told already."""

from pathlib import Path
from typing import Any

from support.driving import DONE, LOOK, PLAN, Hanging, a_loop, in_runtime, run_until, scripted
from treadle.app.runtime import Reopening
from treadle.ports.observer import Observer, Progress


class Told(Observer):
    """All that it was told of records, in order."""

    def __init__(self) -> None:
        self.seqs: list[int] = []
        self.kinds: list[str] = []

    def notify(self, progress: Progress) -> None:
        if progress.seq and progress.kind == "model.responded":
            self.seqs.append(progress.seq)
        self.kinds.append(progress.kind)


def test_each_response_is_told_once_over_a_kill_and_many_resumes(tmp_path: Path) -> None:
    told = Told()

    async def test(made: Any) -> None:
        hanging = Hanging(PLAN, LOOK)
        session = await made.start(a_loop(hanging), "Do it.")
        await run_until(session, hanging.asked)
        await session.close()
        execution_id = session.execution_id
        for _ in range(4):
            session = await made.resume(execution_id, a_loop(scripted(PLAN, LOOK, DONE)), Reopening())
            document = await session.run()
            await session.close()
        assert document["code"] == "accepted"
        assert document["usage"]["requests"] == 3

    in_runtime(f"sqlite:///{tmp_path / 't.db'}", tmp_path, test, observers=(told,))
    assert len(told.seqs) == len(set(told.seqs)) == 3
