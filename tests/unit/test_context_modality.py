"""Modality is read from whole words of the task."""

import pytest

from treadle.context.modality import PLANS, modality_of


@pytest.mark.req("AG-05")
@pytest.mark.parametrize(
    ("task", "modality"),
    [
        ("Merge the release branch and resolve conflicts", "merge"),
        ("Refactor the parser", "refactor"),
        ("Review the changes of last week", "review"),
        ("Fix a crash on start", "debug"),
        ("A greenfield service", "greenfield"),
        ("Write a web server from scratch", "greenfield"),
        ("Add a flag", "implement"),
        ("", "implement"),
    ],
)
def test_a_task_has_the_modality_of_its_words(task: str, modality: str) -> None:
    assert modality_of(task) == modality


@pytest.mark.req("AG-05")
@pytest.mark.parametrize("task", ["Show emerged items", "Add a preview pane", "Prefixed suffixes", "A debugger window"])
def test_a_sign_inside_a_longer_word_is_no_sign(task: str) -> None:
    assert modality_of(task) == "implement"


def test_every_modality_has_a_loading_plan() -> None:
    assert set(PLANS) == {"merge", "refactor", "review", "debug", "greenfield", "implement"}
