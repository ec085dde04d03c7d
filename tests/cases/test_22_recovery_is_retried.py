"""Case 22: a database restart during recovery stranded runs. A worker tries again until the store is back and the run is done."""

import sqlite3
from pathlib import Path

from support.commandline import PATIENCE_S, InProcess, wait_for
from support.loops import GOOD, run
from treadle.testing import ScriptedEndpoint


def test_a_store_that_is_away_while_a_run_is_taken_over_is_asked_again(tmp_path: Path) -> None:
    cli = InProcess(tmp_path)
    with ScriptedEndpoint(GOOD) as endpoint:
        run(cli, endpoint, environ={"TREADLE_CRASH_AT": "before-tool:1"})
        elsewhere = sqlite3.connect(cli.store_file, isolation_level=None)
        elsewhere.execute("BEGIN IMMEDIATE")
        worker = cli.start("recover")
        said = wait_for(worker, "the store failed, again in")
        elsewhere.execute("ROLLBACK")
        elsewhere.close()
        _, more = worker.communicate(timeout=PATIENCE_S)
    assert (worker.returncode, "Traceback" in said + more) == (0, False)
    assert "done, accepted" in more
