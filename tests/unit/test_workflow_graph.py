"""How a terminal shows the graph of a workflow, and the view of a workflow as an observer."""

from __future__ import annotations

import io

from treadle.app.views import progress_view
from treadle.cli.graph import rows
from treadle.cli.workflow_view import WorkflowView


def drawn(after: dict[str, tuple[str, ...]]) -> list[str]:
    return [f"{row.guides}{row.key}" for row in rows(after)]


def test_a_chain_stays_in_its_column() -> None:
    assert drawn({"c": ("b",), "b": ("a",), "a": ()}) == ["a", "b", "c"]


def test_branches_have_guides_and_a_join_stands_below_its_longest_way() -> None:
    after = {"a": (), "b": ("a",), "c": ("a",), "d": ("c",), "e": ("b", "d")}
    assert drawn(after) == ["a", "├ b", "└ c", "  d", "  e"]


def test_tasks_without_a_common_root_are_told_apart() -> None:
    assert drawn({"a": (), "b": (), "c": ("a",)}) == ["├ a", "│ c", "└ b"]


def test_a_deep_and_a_wide_graph_are_no_trouble() -> None:
    deep = {f"t{n}": (f"t{n - 1}",) if n else () for n in range(10_000)}
    assert len(drawn(deep)) == 10_000
    wide = {f"t{n}": () for n in range(10_000)}
    assert len(drawn(wide)) == 10_000


def test_the_view_wants_what_the_view_of_loops_wants() -> None:
    plain = progress_view(io.StringIO())
    assert WorkflowView(plain).wants_text is plain.wants_text
