"""The budget is never exceeded, and what it holds is used."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.context.modality import PLANS
from treadle.context.outline import Outlined
from treadle.context.rank import Ranked
from treadle.context.render import Candidate, Rendered, render, shown_path
from treadle.context.scan import ScannedFile
from treadle.context.skeleton import Definition
from treadle.context.tokens import estimate

PLAN = PLANS["implement"]


def candidate(path: str, texts: list[str], *, score: float = 0.0, text: str = "") -> Candidate:
    file = ScannedFile(path, len(text.encode()) or 100, 0, "source", readable=True)
    outlined = [
        Outlined(Definition(line, line, line_text, line_text), -1, score) for line, line_text in enumerate(texts, 1)
    ]
    return Candidate(Ranked(file, score), outlined, text)


def drawn(candidates: list[Candidate], budget: int) -> Rendered:
    return render(candidates, "implement", PLAN, budget)


any_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=80)
line = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=100)
candidates = st.lists(
    st.builds(
        candidate,
        st.text(string.ascii_lowercase + "/é日", min_size=1, max_size=40),
        st.lists(line, max_size=8),
        score=st.floats(-10, 10),
        text=any_text,
    ),
    max_size=12,
    unique_by=lambda one: one.ranked.file.path,
)


@pytest.mark.req("AG-05")
@given(candidates, st.integers(-5, 400))
def test_no_map_is_over_its_budget(some: list[Candidate], budget: int) -> None:
    rendered = drawn(some, budget)
    assert estimate(rendered.text + "\n") <= max(budget, 0) or rendered.text == ""


@pytest.mark.req("AG-05")
@given(candidates, st.integers(0, 400), st.floats(0.2, 3.0))
def test_no_map_is_over_its_budget_by_another_measure(some: list[Candidate], budget: int, factor: float) -> None:
    def measure(text: str) -> int:
        return int(len(text.encode()) * factor)

    rendered = render(some, "implement", PLAN, budget, measure)
    assert measure(rendered.text) <= budget


@pytest.mark.req("AG-05")
def test_an_upgrade_costs_only_what_it_adds() -> None:
    texts = [f"def function_{number}():" for number in range(400)]
    rendered = drawn([candidate("a.py", texts)], 1_000)
    assert rendered.entries[0].level == "skeleton"
    assert estimate(rendered.text) > 1_000 - 12  # one more line has no room


@pytest.mark.req("AG-05")
def test_a_whole_text_takes_the_place_of_the_skeleton() -> None:
    text = "".join(f"def function_{number}():\n    return {number}\n" for number in range(10))
    texts = [f"def function_{number}():" for number in range(10)]
    size = len("implement map of 1 files\na.py\n" + text) + 20  # a space before each line
    foot = 170
    assert size + foot < 4 * 145 < size + foot + sum(map(len, texts))  # the skeleton and the text have no room together
    rendered = drawn([candidate("a.py", texts, text=text)], 145)
    assert rendered.entries[0].level == "full"
    assert rendered.text.count("def function_3():") == 1
    assert "return 3" in rendered.text
    assert (rendered.files_left, rendered.definitions_left) == (0, 0)


def test_a_text_that_names_another_file_of_the_map_is_not_shown_whole() -> None:
    text = "see b.py for the rest\n"
    rendered = drawn([candidate("a.py", [], text=text), candidate("b.py", [])], 400)
    assert rendered.text.splitlines()[1:3] == ["a.py", "b.py"]


@pytest.mark.req("AG-05")
def test_paths_stand_whole_and_definitions_below_them_with_their_lines() -> None:
    rendered = drawn([candidate("src/deep/a.py", ["class A:", "def f(self):"]), candidate("b.py", [])], 400)
    assert rendered.text.splitlines()[1:5] == ["src/deep/a.py", "1:class A:", "2:def f(self):", "b.py"]


def test_definitions_that_read_alike_share_a_line() -> None:
    rendered = drawn([candidate("a.rs", ["fn fmt(&self)", "fn other()", "fn fmt(&self)"])], 400)
    assert rendered.text.splitlines()[2:4] == ["1,3:fn fmt(&self)", "2:fn other()"]
    assert rendered.entries[0].lines == (1, 2, 3)


@pytest.mark.req("AG-05")
def test_the_last_line_says_what_was_left_out_its_size_and_how_to_load_it() -> None:
    some = [candidate(f"file_{number}.py", ["def f():", "def g():"], score=-number) for number in range(200)]
    rendered = drawn(some, 300)
    last = rendered.text.splitlines()[-1]
    assert rendered.files_left == 200 - len(rendered.entries) > 0
    assert f"{rendered.files_left} of 200 files ({rendered.files_left * 100 / 1000:.1f} kB)" in last
    assert "budget" in last
    shown_by = render(some, "implement", PLAN, 300, loaders=("list_dir", "read_file")).text.splitlines()[-1]
    assert shown_by.endswith("To load: list_dir, read_file.")


@pytest.mark.parametrize("budget", [-1, 0, 1, 5])
def test_a_budget_that_holds_nothing_gives_nothing(budget: int) -> None:
    assert drawn([candidate("a.py", [])], budget).text in ("", "1 files; no room")


def test_names_that_are_no_text_are_escaped() -> None:
    assert shown_path("caf\udce9.py") == "caf\\xe9.py"
    assert shown_path("two\nlines.py") == "two\\nlines.py"
    assert shown_path("größe.py") == "größe.py"


def test_what_a_terminal_would_obey_is_not_written() -> None:
    rendered = drawn([candidate("a.py", ["def f(): \x1b[2J"], text="x = '\x1b]0;title\x07'\r\n")], 400)
    assert rendered.entries[0].level == "full"
    assert not set(rendered.text) & set("\x1b\x07\r")
    assert "\x1b" not in drawn([candidate("a.py", ["def f(): \x1b[2J"])], 400).text
