"""A table at any width: what people copy stays whole."""

from __future__ import annotations

import pytest
from rich.text import Text

from treadle.cli.table import print_table

HEADS = ("id", "status", "at most", "age", "task")


def shown(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int, task: str) -> list[str]:
    monkeypatch.setenv("COLUMNS", str(width))
    row = ("9ba17vsbr98a", "running (owner gone: resume)", "$12.34", "5 min", task)
    print_table(HEADS, [[Text(cell) for cell in row]], spare="age", gives="status")
    return [line.rstrip() for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize(
    ("width", "task", "row"),
    [
        (120, "Fix the tests", "9ba17vsbr98a  running (owner gone: resume)  $12.34   5 min  Fix the tests"),
        (70, "Fix", "9ba17vsbr98a  running (owner gone: resume)  $12.34   5 min  Fix"),
        (72, "Fix the failing tests", "9ba17vsbr98a  running (owner gone: resume)  $12.34   Fix the failing te…"),
        (60, "Fix the failing tests", "9ba17vsbr98a  running (owner gon…  $12.34   Fix the failing…"),
        (40, "Fix the failing tests", "9ba17vsbr98a  runnin…  $12.34   Fix the…"),
    ],
)
def test_ids_and_money_are_never_cut(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int, task: str, row: str
) -> None:
    assert shown(capsys, monkeypatch, width, task)[1].startswith(row)
