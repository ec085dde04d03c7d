"""The one workload: in each turn the model says 400 characters and asks for one call, which returns 1,024 characters (1.6 KB a turn)."""

from __future__ import annotations

import random

WORDS = (
    "the of and to in is that for it as was with be by on not he his but at are this have from or had an they which "
    "one you were all her she there would their we him been has when who will no more if out so what up said about "
    "other into than its time only could new them man some these then two first may any like now my such make over"
).split()


def text(kind: str, turn: int, chars: int) -> str:
    """Words that differ from turn to turn and depend on the turn alone."""
    chosen = random.Random(f"{kind}{turn}")
    return " ".join(chosen.choices(WORDS, k=chars // 3))[:chars]


def say(turn: int) -> str:
    """What the model says."""
    return text("say", turn, 400)


def result(turn: int) -> str:
    """What the tool returns."""
    return text("tool", turn, 1024)
