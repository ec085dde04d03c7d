"""Lists for people: what they copy stands whole, whatever the width of their terminal."""

from __future__ import annotations

import pytest
from rich.text import Text

from treadle.cli.table import print_table


@pytest.mark.parametrize("columns", [40, 60, 80])
def test_the_last_column_gives_way_and_an_id_never(
    columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    rows = [[Text("7dc7s56cejsf"), Text("done, accepted"), Text("a task of many words " * 9)] for _ in range(2)]
    print_table(("id", "status", "task"), rows)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert all(line.startswith("7dc7s56cejsf  done, accepted  a t") and len(line) <= columns for line in lines[1:])
