"""The one table of endings: driver, command line, API and canvas read it (TC-29)."""

from __future__ import annotations

from typing import Literal

from .values import Value

Status = Literal["running", "done", "failed", "stopped", "paused", "waiting-input", "rejected", "cancelled", "skipped"]
Code = Literal[
    "",
    "accepted",
    "no-change",
    "exhausted",
    "limit",
    "usage-unavailable",
    "thrash",
    "timeout",
    "provider",
    "failed",
    "conflict",
    "permission",
    "safety",
    "required-edit-missing",
    "verification",
    "recovery-exhausted",
    "quota",
    "question",
    "approval",
    "rejected",
    "aborted",
    "interrupted",
    "skipped",
]
Colour = Literal["green", "red", "amber", "violet", "grey", "blue"]


class Ending(Value, frozen=True, kw_only=True):
    """One row: what an ending means to a program, to a person and to a later resume."""

    status: Status
    code: Code
    exit: int | None  # None: never the ending of a whole execution
    colour: Colour
    success: bool | None  # None: it has not ended
    nonfailure: bool | None
    goes_on_by: tuple[str, ...]
    banner: str


def _row(
    status: Status,
    code: Code,
    exit_code: int | None,
    colour: Colour,
    judgement: tuple[bool, bool] | None,
    goes_on_by: str,
    banner: str,
) -> Ending:
    success, nonfailure = judgement or (None, None)
    return Ending(
        status=status,
        code=code,
        exit=exit_code,
        colour=colour,
        success=success,
        nonfailure=nonfailure,
        goes_on_by=tuple(goes_on_by.split(", ")) if goes_on_by else (),
        banner=banner,
    )


YES, NEUTRAL, NO = (True, True), (False, True), (False, False)
RETRY = "resume --retry-incomplete"

ENDINGS: tuple[Ending, ...] = (
    _row("done", "accepted", 0, "green", YES, "", "accepted"),
    _row("done", "no-change", 0, "green", NEUTRAL, "", "accepted, nothing had to change"),
    _row("failed", "exhausted", 1, "red", NO, "fork", "the last round was rejected"),
    _row("stopped", "limit", 4, "amber", NEUTRAL, "extend", "a limit was reached"),
    _row(
        "stopped", "usage-unavailable", 4, "amber", NEUTRAL, "resume with a price", "usage or price unknown under a cap"
    ),
    _row("failed", "thrash", 1, "red", NO, RETRY, "the agent was spinning"),
    _row("failed", "timeout", 1, "red", NO, RETRY, "a round took too long"),
    _row("failed", "provider", 1, "red", NO, RETRY, "the model could not be used"),
    _row("failed", "failed", 1, "red", NO, RETRY, "a callback or tool machinery raised"),
    _row("failed", "conflict", 1, "red", NO, "fork", "the work conflicts with others' changes"),
    _row("failed", "permission", 1, "red", NO, "fork", "a needed permission was refused"),
    _row("failed", "safety", 1, "red", NO, "fork", "stopped for safety"),
    _row("failed", "required-edit-missing", 1, "red", NO, "fork", "the required change was not made"),
    _row("failed", "verification", 1, "red", NO, "fork", "verification failed"),
    _row("failed", "recovery-exhausted", 1, "red", NO, "fork", "recovery was exhausted"),
    _row("paused", "quota", 3, "violet", None, "by itself, resume", "waiting for the provider's quota"),
    _row("waiting-input", "question", 3, "violet", None, "answer", "waiting for an answer"),
    _row("waiting-input", "approval", 3, "violet", None, "approve, reject", "waiting for a decision"),
    _row("rejected", "rejected", 1, "grey", NEUTRAL, "fork", "a person said no"),
    _row("cancelled", "aborted", 1, "grey", NEUTRAL, "fork", "cancelled"),
    _row("paused", "interrupted", 130, "grey", None, "resume", "interrupted"),
    _row("skipped", "skipped", None, "grey", None, "with its dependency", "skipped"),
)

_BY_CODE = {(row.status, row.code): row for row in ENDINGS}
_STATUS: dict[Code, Status] = {row.code: row.status for row in ENDINGS}
WORST_FIRST: tuple[Status, ...] = (
    "failed",
    "stopped",
    "cancelled",
    "rejected",
)  # which names the ending of several parts
USAGE_EXIT = 2  # the command was wrong: nothing was started
STORE_EXIT = (
    5  # the store failed under way: how the execution stands is what the store says, and nothing committed is lost
)
SIGNAL_EXITS = {"SIGINT": 130, "SIGTERM": 143, "SIGHUP": 129}


def ending(status: Status, code: Code) -> Ending:
    """The row of an ending; KeyError where there is none."""
    return _BY_CODE[status, code]


def status_of(code: Code) -> Status:
    """The status of a code that is a part of a whole's ending, such as the failed task of a workflow. KeyError for no such code."""
    return _STATUS[code]


def exit_code(status: Status, code: Code, *, signal: str = "") -> int:
    """The exit code of an execution in this state; a running one has none and gives 0."""
    if code == "interrupted" and signal:
        return SIGNAL_EXITS[signal]
    row = _BY_CODE.get((status, code))
    return row.exit or 0 if row else 0


def is_final(status: Status, code: Code) -> bool:
    """Whether resume can only give the stored result back."""
    return ((status, code) in _BY_CODE and status in ("done", "rejected", "cancelled")) or (
        status == "failed" and RETRY not in _BY_CODE[status, code].goes_on_by
    )
