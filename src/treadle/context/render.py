"""Chooses what of the ranked files and definitions a budget can hold, and writes it down.

A map is built by the best next piece: a path alone (tree), one more definition below it (skeleton), or the whole text
(full). A piece is charged what it adds to the text, so an upgrade pays the difference only. Weights add up over
concatenation, and the text is measured once more when it is whole.
"""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Literal, NamedTuple

from .tokens import CHARACTERS, Measure, estimate, weight

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .modality import LoadingPlan, Modality
    from .outline import Outlined
    from .rank import Ranked

Level = Literal["tree", "skeleton", "full"]

CHANGED_FILES = 1.5  # that a task is expected to change
CHANGED_DEFINITIONS = 2.5
SHORTEST = 8  # characters of a line with a path, on average, that there is at least
SLACK = 4  # characters by which a smaller amount may be longer when it is written
CONTROLS = dict.fromkeys([*range(9), *range(10, 32), *range(127, 160)])  # what a terminal might obey; a tab is harmless
HEAD_FILES = 10  # leading files that keep their place although nothing stands below them


class Entry(NamedTuple):
    """One file of the map."""

    path: str
    level: Level
    lines: tuple[int, ...]  # of the definitions shown


class Candidate(NamedTuple):
    """A ranked file with the definitions that may be shown, and its text, which is empty where it may not be shown."""

    ranked: Ranked
    outlined: Sequence[Outlined]
    text: str


class Rendered(NamedTuple):
    """The map's text, what is in it, and how much was left out."""

    text: str
    entries: tuple[Entry, ...]
    files_left: int
    definitions_left: int


class _Line(NamedTuple):
    """One line of a skeleton: definitions with the same first line share it."""

    text: str
    numbers: tuple[int, ...]
    score: float
    around: int  # the number of the line that encloses the first of them, or -1

    def written(self) -> str:
        return f"{','.join(map(str, self.numbers))}:{self.text}"


class _Chosen:
    """What is shown of one file so far."""

    def __init__(self, candidate: Candidate) -> None:
        self.candidate = candidate
        self.path = shown_path(candidate.ranked.file.path)
        self.lines = _lines(candidate.outlined)
        self.shown: set[int] = set()
        self.listed = False
        self.full = ""

    def missing(self, number: int) -> list[int]:
        """A line of the skeleton and the one around it, as far as they are not shown yet."""
        around = self.lines[number].around
        return [line for line in (number, around) if line >= 0 and line not in self.shown]

    def block(self) -> str:
        if self.full:
            return f"{self.path}\n{self.full}"
        below = "".join(f"\n{self.lines[number].written()}" for number in sorted(self.shown))
        return self.path + below


def shown_path(path: str) -> str:
    """A path as text: what is no UTF-8, and control characters, are escaped."""
    if path.isprintable():
        return path
    text = os.fsencode(path).decode("utf-8", "backslashreplace")
    return text if text.isprintable() else text.encode("unicode_escape").decode("ascii")


def render(
    candidates: Sequence[Candidate],
    modality: Modality,
    plan: LoadingPlan,
    budget_tokens: int,
    measure: Measure = estimate,
    loaders: tuple[str, ...] = (),
) -> Rendered:
    """The map within the budget, as `measure` counts it. Where nothing fits, the text is empty."""
    room = max(budget_tokens, 0) * CHARACTERS
    while True:
        rendered = _render(candidates, modality, plan, room, loaders)
        over = measure(rendered.text) - budget_tokens
        if over <= 0 or not rendered.text:
            return rendered
        room = min(room - CHARACTERS * over, int(room * 0.95)) if room > CHARACTERS * over else room // 2


def _render(
    candidates: Sequence[Candidate], modality: Modality, plan: LoadingPlan, room: int, loaders: tuple[str, ...] = ()
) -> Rendered:
    total = len(candidates)
    head = f"{modality} map of {total} files"
    definitions = sum(len(candidate.outlined) for candidate in candidates)
    size = sum(candidate.ranked.file.size for candidate in candidates)
    spent = weight(head) + 1 + weight(_foot(total, total, definitions, size, loaders)) + 1 + SLACK
    if spent > room:
        short = f"{total} files; no room"
        return Rendered(short if weight(short) + 1 <= room else "", (), total, definitions)
    chosen = [_Chosen(candidate) for candidate in candidates[: room // SHORTEST]]
    spent = _fill_paths(chosen, int(room * plan.tree), spent)
    spent = _fill_definitions(chosen, room, spent)
    spent = _fill_paths(chosen, room, spent)
    if plan.full:
        _fill_whole(chosen, room, spent)
    listed = [one for one in chosen if one.listed]
    bare = [not one.shown and not one.full and place >= HEAD_FILES for place, one in enumerate(listed)]
    tail = sorted((one for one, below in zip(listed, bare, strict=True) if below), key=lambda one: one.path)
    ordered = [*(one for one, below in zip(listed, bare, strict=True) if not below), *tail]
    left = total - len(listed)
    size -= sum(one.candidate.ranked.file.size for one in listed)
    shown = sum(len(one.lines) if one.full else len(one.shown) for one in listed)
    lines = sum(len(one.lines) for one in chosen)
    foot = _foot(left, total, lines - shown, size, loaders)
    text = "\n".join([head, *(one.block() for one in ordered), foot])
    return Rendered(text, tuple(map(_entry, ordered)), left, lines - shown)


def _fill_definitions(chosen: list[_Chosen], room: int, spent: int) -> int:
    """Takes definitions by their worth for their weight, the path above them included where it is not there yet."""
    shares = iter(_shares([line.score for one in chosen for line in one.lines], CHANGED_DEFINITIONS))
    found: list[tuple[float, int, int]] = []
    for place, one in enumerate(chosen):
        cost = 0 if one.listed else weight(one.path) + 1
        for number, line in enumerate(one.lines):
            found.append((-next(shares) / (weight(line.written()) + 1 + cost), place, number))
    for _, place, number in sorted(found):
        one = chosen[place]
        wanted = one.missing(number)
        cost = sum(weight(one.lines[line].written()) + 1 for line in wanted) + (
            0 if one.listed else weight(one.path) + 1
        )
        if spent + cost <= room:
            spent += cost
            one.listed = True
            one.shown.update(wanted)
    return spent


def _fill_paths(chosen: list[_Chosen], room: int, spent: int) -> int:
    for one in chosen:
        cost = weight(one.path) + 1
        if not one.listed and spent + cost <= room:
            one.listed = True
            spent += cost
    return spent


def _fill_whole(chosen: list[_Chosen], room: int, spent: int) -> None:
    """Gives what is left to the whole text of leading files, in place of their skeleton.

    A text that names another file of the map would read as that file's heading, so such a file keeps its skeleton.
    """
    paths = [one.path for one in chosen if one.listed]
    for one in chosen:
        if not one.listed or not one.candidate.text:
            continue
        size = one.candidate.ranked.file.size
        have = weight(one.block())
        if spent - have + size > room:
            continue
        lines = one.candidate.text.rstrip().split("\n")
        text = "\n".join(f" {line.translate(CONTROLS)}" for line in lines) if lines != [""] else ""
        more = weight(f"{one.path}\n{text}") - have
        if text and spent + more <= room and not any(path in text for path in paths if path != one.path):
            one.full = text
            spent += more


def _shares(scores: Sequence[float], expected: float) -> list[float]:
    """How likely each is to be changed, where `expected` of them are."""
    top = max(scores, default=0.0)
    powers = [math.exp(score - top) for score in scores]
    total = sum(powers) or 1.0
    return [min(1.0, expected * power / total) for power in powers]


def _lines(outlined: Sequence[Outlined]) -> list[_Line]:
    by_text: dict[str, list[Outlined]] = {}
    depths: list[int] = []
    texts: list[str] = []
    for one in outlined:
        depths.append(depths[one.around] + 1 if one.around >= 0 else 0)
        texts.append(" " * depths[-1] + one.definition.text.translate(CONTROLS))
        by_text.setdefault(texts[-1], []).append(one)
    place = {text: number for number, text in enumerate(by_text)}
    return [
        _Line(
            text,
            tuple(one.definition.line for one in some),
            max(one.score for one in some),
            place[texts[some[0].around]] if some[0].around >= 0 else -1,
        )
        for text, some in by_text.items()
    ]


def _entry(one: _Chosen) -> Entry:
    level: Level = "full" if one.full else "skeleton" if one.shown else "tree"
    lines = sorted(line for number in one.shown for line in one.lines[number].numbers)
    return Entry(one.candidate.ranked.file.path, level, tuple(lines))


def _foot(files: int, total: int, definitions: int, size: int, loaders: tuple[str, ...]) -> str:
    if not files and not definitions:
        return "Nothing left out."
    amount = f"{size / 1e6:.1f} MB" if size >= 1e5 else f"{size / 1e3:.1f} kB"
    return (
        f"Left out: {files} of {total} files ({amount}), {definitions} definitions."
        f" To load: {', '.join(loaders) or 'open a file, or a larger --budget'}."
    )
