"""Text as the terms that ranking counts: identifiers split at case and underscores, lower case, lightly stemmed."""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache

WORD = re.compile(r"[^\W\d]\w+")
PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_]+")
LONGEST_WORD = 64  # characters; longer ones are data, not names

STOP = frozenset(
    """
    a about add added adding adds after again all allow allowed allows also always an and any are as at be because been before
    being both but by can change changed changes changing cannot could did do does doing done don each either else
    ensure etc even every few fix fixed fixes fixing for from get gets give given go had has have having here how however
    if implement implemented improve improved in instead into is issue it its itself just keep less let like made make makes
    making many may me merge might minor more most much must my need needed needs never new no not note now of off on once one
    only or other our out over own patch please pr pull put rather really refactor remove removed removes removing request
    same see should since small so some still such support supports sure than that the their them then there these they
    this those through to too tweak under until up update updated updates updating us use used uses using very via want
    was way we well were what when where whether which while who why will with within without won would yet you your
    """.split()
)


def stem(word: str) -> str:
    """`parsers`, `parsing` and `parsed` as one term; short words stay as they are."""
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-3] + "y" if word.endswith("ies") and len(word) > 4 else word[:-1]
    for suffix in ("ing", "ed", "er"):
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            word = word[: -len(suffix)]
            if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz":
                word = word[:-1]
            break
    return word[:-1] if len(word) > 3 and word.endswith("e") else word


@lru_cache(maxsize=200_000)
def terms(word: str) -> tuple[str, ...]:
    """The parts of one identifier, and the whole of it where it has several."""
    if len(word) > LONGEST_WORD:
        return ()
    parts = [part.lower() for part in PART.findall(word)]
    stems = tuple(stem(part) for part in parts if len(part) > 1)
    whole = word.lower().strip("_")
    return (*stems, whole) if len(parts) > 1 else stems


def count_terms(text: str) -> Counter[str]:
    """How often each term stands in the text."""
    counts: Counter[str] = Counter()
    for word, times in Counter(WORD.findall(text)).items():
        for term in terms(word):
            counts[term] += times
    return counts


def task_terms(text: str) -> Counter[str]:
    """The terms of a task without the words that every task has."""
    counts: Counter[str] = Counter()
    for word, times in Counter(WORD.findall(text)).items():
        if word.lower() not in STOP:
            for term in terms(word):
                counts[term] += times
    return counts
