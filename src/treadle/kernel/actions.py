"""What the machine may ask for. `Record` folds a fact without I/O; the others are performed by effects and end in exactly one outcome."""

from __future__ import annotations

from decimal import Decimal

from treadle.core.endings import Code, Status
from treadle.core.events import Event, Phase, Probe, SuspensionKind
from treadle.core.messages import Cause, Depth, Prompted, ToolCall
from treadle.core.values import Value


class Record(Value, frozen=True, kw_only=True):
    """A decision or a fact that needs no I/O."""

    event: Event


class TakeBaseline(Value, frozen=True, kw_only=True):
    """Keep the workspace as it is at the start of this round. Ends in BaselineTaken.

    `onto`: a commit that the scope is in conflict with, to be brought in first.
    """

    round: int
    onto: str = ""


class Perceive(Value, frozen=True, kw_only=True):
    """Put a map of the workspace below this text, the first of a conversation (AG-05). Ends in Prompted."""

    prompt: Prompted
    tokens: int  # budget of the map
    asked: bool  # a map is made of any workspace; or else only where it is worth its tokens


class MeasureWorkspace(Value, frozen=True, kw_only=True):
    """Look at the workspace before a guard trips. Ends in WorkspaceMeasured."""

    tree: str  # the baseline of this round


class IntendModel(Value, frozen=True, kw_only=True):
    """Say what the next request is and what it can cost at most. Ends in ModelIntended.

    Where the window is too full for it: in CompactionIntended, Compacted or CompactionFailed, and the request is intended anew.
    """

    call: str
    phase: Phase


class CallModel(Value, frozen=True, kw_only=True):
    """Send the intended request: a barrier. Ends in ModelResponded or ModelFailed."""

    call: str
    phase: Phase


class IntendCompaction(Value, frozen=True, kw_only=True):
    """Say how the history is compacted. Ends in CompactionIntended, Compacted (no summary is needed) or CompactionFailed."""

    call: str
    phase: Phase
    depth: Depth
    by: Cause


class Compact(Value, frozen=True, kw_only=True):
    """Ask for the intended summary: a barrier. Ends in Compacted or CompactionFailed."""

    call: str
    phase: Phase


class IntendTool(Value, frozen=True, kw_only=True):
    """Say what a mutating call is about to do. Ends in ToolIntended, or ToolsFinished where it need not run."""

    key: str
    call: ToolCall


class RunTools(Value, frozen=True, kw_only=True):
    """Run these calls: reads side by side, or one mutating call. Ends in ToolsFinished."""

    keys: tuple[str, ...]
    calls: tuple[ToolCall, ...]


class ProbeTool(Value, frozen=True, kw_only=True):
    """Look whether a call in doubt happened. Ends in ToolProbed."""

    key: str
    call: ToolCall
    probes: tuple[Probe, ...]


class RunActor(Value, frozen=True, kw_only=True):
    """Let a callback do the act: a barrier. Ends in ActFinished, ActFailed or CallbackRaised."""

    key: str


class FinishAct(Value, frozen=True, kw_only=True):
    """Look at what act did to the workspace. Ends in ActFinished, or ActFailed where `failure` says why."""

    output_json: str
    failure: str


class RunCheck(Value, frozen=True, kw_only=True):
    """Let a callback evaluate: a barrier. Ends in Judged or CallbackRaised."""

    key: str


class Conclude(Value, frozen=True, kw_only=True):
    """Look whether the scope can be merged before its work is accepted (FR-16). Ends in Judged."""

    feedback: str


class CloseScope(Value, frozen=True, kw_only=True):
    """Merge accepted work, or leave it as a branch: a barrier. Ends in ScopeClosed."""


class RecallLessons(Value, frozen=True, kw_only=True):
    """Look up what earlier loops taught. Ends in LessonsRecalled."""


class RunGates(Value, frozen=True, kw_only=True):
    """Run every gate on this round's work: a barrier. Ends in GatesChecked or CallbackRaised."""

    key: str


class VoteLessons(Value, frozen=True, kw_only=True):
    """Write the loop's one vote on each recalled lesson: a barrier. Ends in LessonsVoted."""


class DistilLessons(Value, frozen=True, kw_only=True):
    """Keep what accepted work taught: a barrier. Ends in LessonsDistilled."""


class Allowance(Value, frozen=True, kw_only=True):
    """The most that a child may have used in all; None: no limit."""

    turns: int | None = None
    usd: Decimal | None = None
    tokens: int | None = None
    us: int | None = None  # from now on: its parent's time runs while it does


class RunChild(Value, frozen=True, kw_only=True):
    """Let a child execution begin, or go on with what was answered: a barrier. Ends in ToolsFinished, Suspended or Interrupted."""

    key: str
    call: ToolCall
    allowance: Allowance


class EndChild(Value, frozen=True, kw_only=True):
    """End a child that nobody waits for any more, and count what it has used: a barrier. Ends in ChildEnded."""

    child: str


class Wait(Value, frozen=True, kw_only=True):
    """Nothing to do until an answer, or until that wall time. `kind` "back-off" is a wait of the engine's own."""

    kind: SuspensionKind | str
    id: str = ""
    until_us: int | None = None


class Finish(Value, frozen=True, kw_only=True):
    """It has ended, or rests until somebody asks for more."""

    status: Status
    code: Code


Action = (
    Record
    | TakeBaseline
    | Perceive
    | MeasureWorkspace
    | IntendModel
    | CallModel
    | IntendCompaction
    | Compact
    | IntendTool
    | RunTools
    | ProbeTool
    | RunActor
    | FinishAct
    | RunCheck
    | Conclude
    | CloseScope
    | RecallLessons
    | RunGates
    | VoteLessons
    | DistilLessons
    | RunChild
    | EndChild
    | Wait
    | Finish
)
