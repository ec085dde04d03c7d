"""What becomes of a lesson by what happened with it: trusted after one confirmation, retired when it harms (FR-18)."""

from __future__ import annotations

from typing import Literal

PRIOR = 2.0  # votes that a lesson without any is taken to have, half of them good
UNTRUSTED = 0.5  # what a candidate's score is worth


def standing(
    now: Literal["candidate", "trusted", "retired"], *, helpful: int, harmful: int, confirmations: int
) -> Literal["candidate", "trusted", "retired"]:
    """The next standing. Harmful votes retire it once there are more of them than half its helpful ones; only a person brings it back."""
    if now == "retired" or harmful * 2 > helpful:
        return "retired"
    return "trusted" if confirmations or helpful else "candidate"


def worth(*, helpful: int, neutral: int, harmful: int, trusted: bool) -> float:
    """What a track record makes of relevance, between 0 and 1. A vote that saw nothing says nothing."""
    good = (helpful + PRIOR / 2) / (helpful + neutral + 2 * harmful + PRIOR)
    return good if trusted else good * UNTRUSTED
