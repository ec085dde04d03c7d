"""What kind of work a task asks for, read from its whole words, and what the map therefore loads first."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

Modality = Literal["merge", "refactor", "review", "debug", "greenfield", "implement"]

SIGNS: tuple[tuple[Modality, frozenset[str]], ...] = (
    ("merge", frozenset("merge merging rebase rebasing conflict conflicts cherry-pick backport".split())),
    (
        "refactor",
        frozenset("refactor refactoring restructure rename renaming reorganise reorganize simplify dedupe".split()),
    ),
    ("review", frozenset("review reviewing audit critique assess".split())),
    (
        "debug",
        frozenset(
            "debug fix fixes fixing bug bugs crash crashes crashing error fails failing failure broken regression"
            " traceback leak hang hangs deadlock wrong incorrect".split()
        ),
    ),
    ("greenfield", frozenset("greenfield scaffold bootstrap prototype".split())),
)
PHRASES: tuple[tuple[Modality, re.Pattern[str]], ...] = (
    (
        "greenfield",
        re.compile(r"\b(from scratch|new (project|repository|repo|app|application|package|service))\b", re.IGNORECASE),
    ),
)
WORD = re.compile(r"[\w-]+")


class LoadingPlan(NamedTuple):
    """What a modality changes in the map: how much of it is paths, which files gain, and whether leading files come whole."""

    tree: float  # share of the budget that paths get before any definition
    full: bool  # what is left of the budget goes to the whole text of leading files
    changed: float  # added to the score of files with uncommitted changes
    conflicted: float  # added to the score of files with an unresolved merge
    setup: float  # added to the score of manifests and readmes


PLANS: dict[Modality, LoadingPlan] = {
    "merge": LoadingPlan(tree=0.26, full=True, changed=2.0, conflicted=10.0, setup=0.0),
    "refactor": LoadingPlan(tree=0.26, full=False, changed=1.0, conflicted=1.0, setup=0.0),
    "review": LoadingPlan(tree=0.26, full=True, changed=10.0, conflicted=10.0, setup=0.0),
    "debug": LoadingPlan(tree=0.26, full=True, changed=1.0, conflicted=1.0, setup=0.0),
    "greenfield": LoadingPlan(tree=0.6, full=False, changed=1.0, conflicted=1.0, setup=7.0),
    "implement": LoadingPlan(tree=0.26, full=True, changed=1.0, conflicted=1.0, setup=0.0),
}


def modality_of(task: str) -> Modality:
    """The first modality in order whose sign stands in the task as a whole word; `implement` where none does."""
    words = {word.lower() for word in WORD.findall(task)}
    for modality, signs in SIGNS:
        if words & signs or any(name == modality and phrase.search(task) for name, phrase in PHRASES):
            return modality
    return "implement"
