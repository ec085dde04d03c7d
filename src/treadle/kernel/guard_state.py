"""What guards remember of an agent: a few counters and short rings, the same size after ten turns and ten thousand."""

from __future__ import annotations

from typing import Literal

from treadle.core.settings import GuardName
from treadle.core.values import Value

PAIRS, FAILURES, PERIODS, TREES = 8, 8, (2, 3, 4), 8  # how much is remembered


class Failure(Value, frozen=True, kw_only=True):
    """A call that failed for a reason that does not pass, and what it was told."""

    mark: str
    kind: str  # its class
    said: str


class Batch(Value, frozen=True, kw_only=True):
    """What has come of the batch in hand so far, where it is answered in pieces."""

    marks: tuple[str, ...] = ()
    changed: bool = False  # something is known to have changed
    acted: bool = False  # a call ran that may have changed something
    blind: bool = False  # ... and did not say what
    answered: bool = False  # a person has answered
    classes: tuple[str, ...] = ()  # of the failures


EMPTY = Batch()


class GuardCounters(Value, frozen=True, kw_only=True):
    """Counts since the last measured progress. A field is named as its threshold in `Guards`."""

    no_call: int = 0
    repeat: int = 0  # of the pair that the last batch has repeated most often
    oscillation: int = 0  # whole passes
    read_only: int = 0
    stagnation: int = 0
    same_tree: int = 0
    oversized: int = 0
    recovery: int = 0
    classes: tuple[str, ...] = ()  # of the failures that recovery counts
    pairs: tuple[tuple[str, int], ...] = ()  # call and result -> times, the latest last
    turns: tuple[str, ...] = ()  # marks of the latest turns
    cycles: tuple[int, ...] = (0, 0, 0)  # for each period: turns in a row that equal the one so long before
    failures: tuple[Failure, ...] = ()  # since something last may have changed
    trees: tuple[str, ...] = ()  # of the workspace as measured
    heads: tuple[str, ...] = ()  # of the workspace as rounds left it
    measured: bool = True  # whether every change since the last look is known
    compaction: Literal["", "asked", "tried"] = ""  # the hard one that a too long prompt leads to
    batch: Batch = EMPTY
    warned: tuple[GuardName, ...] = ()  # directives given since
    tripped: GuardName | None = None  # what is about to stop it
