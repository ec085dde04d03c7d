"""What is remembered of an agent's context window: what its requests consist of, and how compactions went. O(1) in turns."""

from __future__ import annotations

from typing import Literal

from treadle.core.messages import Depth
from treadle.core.usage import NO_USAGE, Usage
from treadle.core.values import Value
from treadle.core.window_events import CompactionIntended, CompactionRequested, PromptFacts


class WindowState(Value, frozen=True, kw_only=True):
    """One agent's window. It outlives rounds: the breaker is no kinder after a rejection."""

    prompt: PromptFacts | None = None  # as of the last request
    wanted: CompactionRequested | None = None
    intended: CompactionIntended | None = None
    last: Depth | Literal[""] = ""  # the last compaction since the last response
    tried: bool = False  # one has failed since the last response
    watch: int = 0  # tokens before the compactions whose outcome is not judged yet
    expected: int = 0  # ... and after them, as estimated
    outcome: int = 0  # ... and as the next request was counted; 0: not sent yet
    calibration: int = 0  # provider's count per estimated token, in thousandths; 0: unknown
    ceiling: int = 0  # a provider refused this many tokens, whatever its window is said to be; 0: never
    failures: int = 0  # summaries in a row that failed
    futile: int = 0  # compactions in a row that did not shrink
    open: bool = False  # the breaker: only micro and the clamp run
    trips: int = 0  # how often it has opened since a summary was of use
    shrinks: int = 0  # measured, since it opened last
    compactions: int = 0
    saved: int = 0  # tokens, of all of them
    spent: Usage = NO_USAGE  # on summaries
