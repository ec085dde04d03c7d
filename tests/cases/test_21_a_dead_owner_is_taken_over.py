"""Case 21: runs stayed "running" for ever after a restart. The execution of a dead process is taken over, that of a living one is not."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from support.places import Place, X
from treadle.app.workflow_runtime import WorkflowRuntime
from treadle.app.workflows import resume_workflow
from treadle.core.errors import OwnerAlive, StaleEpoch
from treadle.settings import Settings
from treadle.spec.workflows import Task, Workflow


@pytest.mark.req("TC-26")
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_an_execution_left_running_is_taken_over_once_its_owner_is_gone(kind: str, tmp_path: Any) -> None:
    async def work(ctx: Any) -> str:
        return "done"

    flow = Workflow("w", [Task("a", work)])
    place = Place(kind, tmp_path)

    async def main() -> None:
        first, second = await place.open(), await place.open()
        session = await WorkflowRuntime(first, Settings(environ={}, state_dir=Path("unused"))).start(
            flow, execution_id=X
        )
        with pytest.raises(OwnerAlive):
            await resume_workflow(flow, X, store=second)
        result = await resume_workflow(flow, X, store=second, force=True)
        assert (result.status, result.outputs) == ("done", {"a": "done"})
        with pytest.raises(StaleEpoch):  # whoever was taken over from can commit nothing more
            await session.run()
        await first.close()
        await second.close()

    anyio.run(main)
