"""Case 46: a repository map exceeded its token limit by design. Here the budget is hard, and measured on the text itself."""

from pathlib import Path

import pytest

from treadle.context.map import build_map

TASK = "Fix the parser: it crashes on an empty token in src/part_3/parser_7.py"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("repository")
    for part in range(10):
        for number in range(12):
            file = root / "src" / f"part_{part}" / f"parser_{number}.py"
            file.parent.mkdir(parents=True, exist_ok=True)
            names = [
                f"def parse_{kind}_{number}(token, größe='✓'):\n    return token\n" for kind in ("empty", "full", "odd")
            ]
            file.write_text(f"class Parser{number}:\n    '''Reads.'''\n\n" + "\n".join(names))
    return root


@pytest.mark.req("AG-05")
@pytest.mark.parametrize("budget", [0, 1, 7, 30, 45, 60, 100, 250, 999, 1_000, 4_000, 16_000])
def test_a_map_and_its_last_newline_are_within_the_budget(root: Path, budget: int) -> None:
    found = build_map(root, TASK, budget)
    printed = found.text + "\n" if found.text else ""
    assert len(printed) / 4 <= budget
    assert found.tokens <= budget


@pytest.mark.req("AG-05")
def test_a_tokenizer_that_counts_more_gets_a_shorter_map(root: Path) -> None:
    def bytes_of(text: str) -> int:
        return len(text.encode())

    found = build_map(root, TASK, 1_000, measure=bytes_of)
    assert len(found.text.encode()) == found.tokens <= 1_000
    assert "src/part_3/parser_7.py" in found.text


@pytest.mark.req("AG-05")
def test_a_larger_budget_is_used(root: Path) -> None:
    sizes = [build_map(root, TASK, budget).tokens for budget in (250, 1_000, 4_000)]
    assert all(size > 0.9 * budget for size, budget in zip(sizes, (250, 1_000, 4_000), strict=True))
