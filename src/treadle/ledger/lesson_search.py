"""How a task finds lessons, whatever store they are in: by the rarest words that both have, within bounds that hold for any number."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from treadle.core.errors import UnknownLesson
from treadle.ports.lessons import Lesson, Match

MOST_WORDS = 24  # different ones of a task that are looked up
COMMON = 128  # lessons with a word from which on it tells nothing
MOST_DOCUMENTS = 400  # that a query may have to rank: these three bound its time, however large the store is
LEAST_SHARED = 2  # words that a task and a lesson must have in common
_WORD = re.compile(r"[^\W_]{2,40}")
_COMMON = frozenset(
    "the an and or of to in on at is are was were be it its this that with for from by as not no do does did if then than so such"
    " all any can will must should may make made use used into out up down when what which who how why there here have has had"
    " you your we our they them their he she his her one two please file files".split()
)
_FIELDS = tuple(Lesson.__struct_fields__)


class Wanted(NamedTuple):
    """Words to look up: any of them, or, where every word is common, all of the first few in the newest lessons."""

    words: list[str]
    all: bool


def words_of(text: str) -> list[str]:
    """The words that say something, each once, in order."""
    return list(dict.fromkeys(word for word in _WORD.findall(text.lower()) if word not in _COMMON))


def asked(text: str) -> list[str]:
    """Those of a task that are looked up."""
    return words_of(text)[:MOST_WORDS]


def indexed(text: str, task: str) -> list[str]:
    """Those by which a lesson is found."""
    return list(dict.fromkeys(_WORD.findall(f"{text} {task}".lower())))


def wanted(documents: Mapping[str, int]) -> Wanted:
    """The rarest first, as many as do not make the query long. `documents`: in how many lessons each is, up to COMMON."""
    total = 0
    picked: list[str] = []
    for word in sorted(documents, key=documents.__getitem__):
        total += documents[word]
        if documents[word] < COMMON and total <= MOST_DOCUMENTS:
            picked.append(word)
    return Wanted(picked, all=False) if picked else Wanted(list(documents)[:LEAST_SHARED], all=True)


def matched(rows: Iterable[Any], documents: Mapping[str, int], size: int, words: int) -> list[Match]:
    """Those that have enough words in common, best first. `size`: lessons in the store; `words`: of the task."""
    weights = {word: math.log1p(size / found) if found < COMMON else 1.0 for word, found in documents.items()}
    found: list[Match] = []
    for row in rows:
        shared = documents.keys() & set(_WORD.findall(f"{row['text']} {row['task']}".lower()))
        if len(shared) >= min(LEAST_SHARED, words):
            found.append(Match(lesson_of(row), sum(weights[word] for word in shared)))
    return sorted(found, key=lambda match: -match.relevance)


def lesson_of(row: Any) -> Lesson:
    """Of a row of the table."""
    return Lesson(**{name: row[name] for name in _FIELDS})


def only(lesson_id: str, rows: list[Any]) -> Any:
    """The one lesson whose id begins so. UnknownLesson."""
    if len(rows) == 1:
        return rows[0]
    if rows:
        raise UnknownLesson(f"{lesson_id!r} is ambiguous: {', '.join(one['id'] for one in rows)}. Give more of the id.")
    raise unknown(lesson_id)


def unknown(lesson_id: str) -> UnknownLesson:
    """There is none."""
    return UnknownLesson(f"There is no lesson {lesson_id!r} here. treadle lessons ls lists them.")


def retired_for(helpful: int, neutral: int, harmful: int) -> str:
    """Why votes have retired it."""
    return f"harmful in {harmful} of {helpful + neutral + harmful} loops that say"


def storable(text: str) -> str:
    """What every store takes: no NUL, no half of a surrogate pair."""
    return text.replace("\0", "\ufffd").encode(errors="replace").decode()
