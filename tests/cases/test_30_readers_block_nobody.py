"""Case 30: a paused listing blocked writers. Whoever reads the store, however long, holds no loop up."""

import sqlite3
from pathlib import Path

from support.commandline import InProcess
from support.loops import GOOD, run
from treadle.testing import ScriptedEndpoint


def test_a_loop_runs_to_its_end_beside_a_reader_that_stands_still(tmp_path: Path) -> None:
    cli = InProcess(tmp_path)
    with ScriptedEndpoint(GOOD) as endpoint:
        assert run(cli, endpoint, "--max-turns", "1").code == 4
        reader = sqlite3.connect(f"{cli.store_file.as_uri()}?mode=ro", uri=True, isolation_level=None)
        reader.execute("BEGIN")
        rows = reader.execute("SELECT count(*) FROM records").fetchone()
        assert cli("extend", "last", "--max-turns", "9", "-q").code == 0
        assert cli("resume", "last", "--json").document["code"] == "accepted"
        assert reader.execute("SELECT count(*) FROM records").fetchone() == rows, "it still reads what it saw"
        reader.close()
