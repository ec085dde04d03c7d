"""How likely each definition of the leading files is to be the one that a task changes.

Like `rank`, a fitted linear score: the file's own, words of the task in the body and in the name, names that the task spells
as code, and the length of what the definition holds itself.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from .words import WORD, terms

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .rank import Task
    from .skeleton import Definition

FILE, BODY, NAME, CODE, WORDS, LINES, CODE_BODY, TEST, LOOSE = 0.8, 2.4, 1.3, 0.5, 0.6, 1.5, 0.6, -0.9, -0.5
K1, B = 1.2, 0.7
ENCLOSING = 0.5  # what a word in the enclosing definition's name counts in a name
TEST_NAME = re.compile(r"^(tests?$|test_|Test)")
LOOSE_TEXT = re.compile(
    r"^(?:(?:export|declare|const|let|var|static|extern)\s+)*[\w$]+\s*[:=](?!.*(?:=>|function))|\)\s*;$|^#"
)


class Outlined(NamedTuple):
    """A definition with the number of the one around it, or -1, and its score."""

    definition: Definition
    around: int
    score: float


class _Weighed(NamedTuple):
    body: Counter[str]
    length: int
    name: dict[str, float]
    lines: int
    test: bool
    loose: bool


def outline(files: Sequence[tuple[float, Sequence[Definition], str]], task: Task) -> list[list[Outlined]]:
    """For each file, given its score, skeleton and text, its definitions with their scores, in order of their lines."""
    around = [_around(definitions) for _, definitions, _ in files]
    weighed = [
        _weigh(definitions, outer, text, task) for (_, definitions, text), outer in zip(files, around, strict=True)
    ]
    every = [one for some in weighed for one in some]
    bodies = _bm25([(one.body, one.length) for one in every], task.terms)
    code_bodies = _bm25([(one.body, one.length) for one in every], dict.fromkeys(task.code, 1))
    names = _bm25([(one.name, 3) for one in every], task.terms)
    found: list[list[Outlined]] = []
    at = 0
    for (score, definitions, _), outer, some in zip(files, around, weighed, strict=True):
        made: list[Outlined] = []
        for definition, enclosing, one in zip(definitions, outer, some, strict=True):
            own = definition.name.lower().strip("_")
            value = (
                FILE * score
                + BODY * bodies[at]
                + CODE_BODY * code_bodies[at]
                + NAME * names[at]
                + CODE * (own in task.code)
                + WORDS * (own in task.words)
                + LINES * math.log1p(one.lines) / 5
                + TEST * one.test
                + LOOSE * one.loose
            )
            made.append(Outlined(definition, enclosing, value))
            at += 1
        found.append(made)
    return found


def _around(definitions: Sequence[Definition]) -> list[int]:
    found: list[int] = []
    open_: list[int] = []
    for number, definition in enumerate(definitions):
        while open_ and definitions[open_[-1]].end < definition.line:
            open_.pop()
        found.append(open_[-1] if open_ else -1)
        open_.append(number)
    return found


def _weigh(definitions: Sequence[Definition], around: list[int], text: str, task: Task) -> list[_Weighed]:
    lines = text.split("\n")
    held: list[list[str]] = [[] for _ in definitions]
    owner: list[int] = [-1] * (len(lines) + 1)
    for number, definition in enumerate(definitions):  # an inner one comes after the one around it
        for line in range(definition.line, min(definition.end, len(lines)) + 1):
            owner[line] = number
    for line, number in enumerate(owner):
        if number >= 0:
            held[number].append(lines[line - 1])
    wanted = task.terms.keys() | task.code
    found: list[_Weighed] = []
    for number, definition in enumerate(definitions):
        words = Counter(WORD.findall("\n".join(held[number])))
        body: Counter[str] = Counter()
        for word, times in words.items():
            for term in terms(word):
                if term in wanted:
                    body[term] += times
        name = dict.fromkeys((term for word in WORD.findall(definition.name) for term in terms(word)), 1.0)
        test = bool(TEST_NAME.search(definition.name))
        outer = around[number]
        if outer >= 0:
            test = test or found[outer].test
            for term in found[outer].name:
                name[term] = name.get(term, 0.0) + ENCLOSING * (found[outer].name[term] >= 1.0)
        loose = bool(LOOSE_TEXT.search(definition.text))
        found.append(_Weighed(body, words.total(), name, len(held[number]), test, loose))
    return found


def _bm25(texts: Sequence[tuple[Mapping[str, float], int]], wanted: Mapping[str, int]) -> list[float]:
    """BM25 of each text, scaled to 0…1."""
    total = len(texts)
    mean = sum(length for _, length in texts) / (total or 1) or 1.0
    frequency = Counter(term for counts, _ in texts for term in counts if term in wanted)
    weights = {
        term: math.log(1 + (total - times + 0.5) / (times + 0.5)) * math.sqrt(min(wanted[term], 2))
        for term, times in frequency.items()
    }
    found = [
        sum(
            weights[term] * count * (K1 + 1) / (count + K1 * (1 - B + B * length / mean))
            for term, count in counts.items()
            if term in weights
        )
        for counts, length in texts
    ]
    top = max(found, default=0.0)
    return [value / top for value in found] if top > 0 else found
