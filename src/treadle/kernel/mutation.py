"""Whether a task must change something, told from its words. Decided once, when the loop starts, and stored (AG-09)."""

from __future__ import annotations

import re

LOOKING = frozenset(
    "review audit assess critique explain describe summarise summarize analyse analyze investigate inspect compare list find"
    " count report research explore understand tell show answer what why how which who when where is are does do can could"
    " should estimate evaluate check verify diagnose look read search identify measure benchmark profile".split()
)
CHANGING = frozenset(
    "add apply build bump change clean configure convert correct create debug delete deprecate document edit enable disable extract"
    " fix format generate implement improve inline install integrate introduce make merge migrate modify move optimise optimize patch"
    " port raise rebase reduce refactor remove rename reorganise reorganize repair replace resolve restore restructure revert rewrite"
    " scaffold set simplify speed split support translate tidy update upgrade use wire write".split()
)
NO_CHANGE = re.compile(
    r"\b(?:do not|don't|without|never) (?:chang|modif|edit|touch|writ)\w*\b|\bread[- ]only\b|\bno (?:changes|edits)\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[a-z]+")
_SENTENCE = re.compile(r"[.!?;:\n]+")
_POLITE = frozenset("please now then first next also and you we i kindly just to the".split())


def needs_change(task: str) -> bool:
    """True only where some sentence begins with a verb of changing and nothing says that all is to stay as it is.

    In doubt it is false: a guard that is not there costs less than one that stops honest reading.
    """
    if NO_CHANGE.search(task):
        return False
    for sentence in _SENTENCE.split(task[:4000].lower()):
        first = next((word for word in _WORD.findall(sentence) if word not in _POLITE), "")
        if first in CHANGING:
            return True
        if first in LOOKING and "fix" not in sentence:
            continue
    return False
