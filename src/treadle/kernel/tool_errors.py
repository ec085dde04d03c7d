"""Why a tool call failed, as one of eight classes (AG-09): told by typed causes first, by text last, and with a hint each.

    cause                                class
    ToolError                            its own
    errno of an OSError                  by table
    exception type                       by table, the nearest class first
    exit code, HTTP status               by table
    words                                the first pattern that matches; execution where none does

A transient failure may pass by itself: the engine repeats a read or an idempotent call once. Any other is deterministic: the
same call is not run again until something else has.
"""

from __future__ import annotations

import errno
import re
from typing import NamedTuple

from treadle.core.errors import ToolError, ToolErrorKind


class ErrorClass(NamedTuple):
    """What a class means to whoever made the call."""

    transient: bool
    hint: str


CLASSES: dict[ToolErrorKind, ErrorClass] = {
    "safety": ErrorClass(
        False, "This is out of bounds here and will stay so. Reach the goal another way, or ask the person."
    ),
    "not-found": ErrorClass(
        False, "Look at what is there (list_dir, glob, search), then use a name that you have seen."
    ),
    "permission": ErrorClass(False, "Work where you have the rights, or ask the person for what is missing."),
    "argument": ErrorClass(False, "Correct the arguments: the message says which and why."),
    "timeout": ErrorClass(True, "Do less at once, or give more time."),
    "rate-limit": ErrorClass(True, "Do something else first, then try again."),
    "conflict": ErrorClass(
        False, "Something has changed meanwhile: read it again, then apply your change to what is there."
    ),
    "execution": ErrorClass(False, "Read the message, look at the state that it left, then try another way."),
}
LOOK_FIRST = "It may have been carried out in part: look before you repeat it."
PASSING = "It may pass by itself."

_ERRNO: dict[int, tuple[ToolErrorKind, bool]] = {
    errno.ENOENT: ("not-found", False),
    errno.ESRCH: ("not-found", False),
    errno.ENODEV: ("not-found", False),
    errno.ENXIO: ("not-found", False),
    errno.EACCES: ("permission", False),
    errno.EPERM: ("permission", False),
    errno.EROFS: ("permission", False),
    errno.ENOTDIR: ("argument", False),
    errno.EISDIR: ("argument", False),
    errno.EINVAL: ("argument", False),
    errno.ENAMETOOLONG: ("argument", False),
    errno.E2BIG: ("argument", False),
    errno.EILSEQ: ("argument", False),
    errno.ELOOP: ("safety", False),
    errno.EEXIST: ("conflict", False),
    errno.ENOTEMPTY: ("conflict", False),
    errno.ETXTBSY: ("conflict", True),
    errno.EBUSY: ("conflict", True),
    errno.EADDRINUSE: ("conflict", False),
    errno.EDEADLK: ("conflict", True),
    errno.ESTALE: ("conflict", True),
    errno.ETIMEDOUT: ("timeout", True),
    errno.EAGAIN: ("execution", True),
    errno.EINTR: ("execution", True),
    errno.ECONNREFUSED: ("execution", True),
    errno.ECONNRESET: ("execution", True),
    errno.ECONNABORTED: ("execution", True),
    errno.EPIPE: ("execution", True),
    errno.EHOSTUNREACH: ("execution", True),
    errno.ENETUNREACH: ("execution", True),
    errno.EMFILE: ("execution", True),
    errno.ENFILE: ("execution", True),
    errno.ENOSPC: ("execution", False),
    errno.EDQUOT: ("execution", False),
}
_TYPES: dict[
    str, tuple[ToolErrorKind, bool]
] = {  # by name, so that nothing has to be imported; bases are looked at, too
    "FileNotFoundError": ("not-found", False),
    "ModuleNotFoundError": ("not-found", False),
    "PermissionError": ("permission", False),
    "FileExistsError": ("conflict", False),
    "IsADirectoryError": ("argument", False),
    "NotADirectoryError": ("argument", False),
    "TimeoutError": ("timeout", True),
    "TimeoutExpired": ("timeout", True),
    "TimeoutException": ("timeout", True),  # httpx
    "Timeout": ("timeout", True),  # requests
    "ValidationError": ("argument", False),  # pydantic, jsonschema, msgspec
    "JSONDecodeError": ("argument", False),
    "UnicodeError": ("argument", False),
    "ConnectionError": ("execution", True),
    "TransportError": ("execution", True),  # httpx
    "SSLError": ("execution", False),
    "gaierror": ("not-found", True),
}
_EXIT: dict[int, tuple[ToolErrorKind, bool]] = {
    124: ("timeout", False),  # timeout(1)
    126: ("permission", False),
    127: ("not-found", False),
    137: ("execution", False),  # killed, often for want of memory
}
_STATUS: dict[int, tuple[ToolErrorKind, bool]] = {
    400: ("argument", False),
    401: ("permission", False),
    403: ("permission", False),
    404: ("not-found", False),
    408: ("timeout", True),
    409: ("conflict", False),
    410: ("not-found", False),
    412: ("conflict", False),
    422: ("argument", False),
    423: ("conflict", True),
    425: ("rate-limit", True),
    429: ("rate-limit", True),
    451: ("safety", False),
    504: ("timeout", True),
}
_WORDS: tuple[tuple[str, ToolErrorKind, bool], ...] = (
    (r"\brate.?limit|too many requests|\bthrottl|quota exceeded", "rate-limit", True),
    (r"\btimed?.?out\b|deadline exceeded", "timeout", True),
    (
        r"outside (?:the |of )?(?:workspace|allowed)|path traversal|not allowed by policy|blocked for safety",
        "safety",
        False,
    ),
    (
        r"permission denied|access denied|forbidden|unauthori[sz]ed|read-only file system|operation not permitted",
        "permission",
        False,
    ),
    (r"no such|not found|does not exist|unknown (?:tool|file|path|table|column)|\benoent\b", "not-found", False),
    (r"merge conflict|already exists|has changed|version mismatch|stale|\bconflict\b", "conflict", False),
    (
        r"invalid|malformed|missing (?:required )?(?:argument|parameter|field)|must be|expected|unexpected (?:argument|keyword)",
        "argument",
        False,
    ),
    (r"connection (?:refused|reset|closed|aborted)|temporarily unavailable|try again", "execution", True),
)
_FORBIDDEN = re.compile(
    r"\b(?:sudo|doas|su -|runas|chmod\s+(?:-R\s+)?[0-7]*777|chown)\b|--no-verify|--force\b|--privileged"
    r"|\b(?:disabl|skip|delet|remov|weaken|loosen|comment out|bypass|ignor|turn off|switch off)\w*\W+(?:\w+\W+){0,3}"
    r"(?:checks?|tests?|assert\w*|lint\w*|validation|verification|sandbox|guards?|hooks?)\b|\bas root\b",
    re.IGNORECASE,
)


def classified(error: BaseException) -> ToolError | None:
    """The typed error that this exception stands for; None for one that is a fault of the tool's own code."""
    if isinstance(error, ToolError):
        return error
    found = _by_errno(error) or _by_status(error) or _by_exit(error) or _by_type(error)
    if found is None:
        return None
    kind, transient = found
    return ToolError(kind, _message(error), hint=CLASSES[kind].hint, transient=transient)


def of_exit_code(code: int) -> tuple[ToolErrorKind, bool] | None:
    """(class, transient) where an exit code says by itself what was wrong."""
    return _EXIT.get(code)


def of_text(text: str) -> tuple[ToolErrorKind, bool]:
    """(class, transient) by words alone: for a tool that gives no type. The last resort."""
    for words, kind, transient in _WORDS:
        if re.search(words, text, re.IGNORECASE):
            return kind, transient
    return "execution", False


def hint_for(error: ToolError, *, repeatable: bool) -> str:
    """What to try next: the error's own hint, or its class's. Never to gain rights, never to weaken a check."""
    hint = error.hint if error.hint and not _FORBIDDEN.search(error.hint) else CLASSES[error.kind].hint
    if error.transient and not repeatable and LOOK_FIRST not in hint:
        hint = f"{PASSING} {LOOK_FIRST} {hint}"
    return hint


def is_allowed(hint: str) -> bool:
    """Whether a hint suggests neither more rights nor a weaker check."""
    return not _FORBIDDEN.search(hint)


def _by_errno(error: BaseException) -> tuple[ToolErrorKind, bool] | None:
    return _ERRNO.get(error.errno or 0) if isinstance(error, OSError) else None


def _by_status(error: BaseException) -> tuple[ToolErrorKind, bool] | None:
    """Of the HTTP libraries' errors, which carry it themselves or in their response."""
    status = getattr(error, "status_code", None) or getattr(getattr(error, "response", None), "status_code", None)
    if not isinstance(status, int) or status < 400:
        return None
    return _STATUS.get(status, ("execution", status >= 500))


def _by_exit(error: BaseException) -> tuple[ToolErrorKind, bool] | None:
    code = getattr(error, "returncode", None)
    if not isinstance(code, int):
        return None
    return _EXIT.get(code, ("execution", False))


def _by_type(error: BaseException) -> tuple[ToolErrorKind, bool] | None:
    found = next((_TYPES[base.__name__] for base in type(error).__mro__ if base.__name__ in _TYPES), None)
    if found is None and isinstance(error, OSError):
        return of_text(str(error))
    return found


def _message(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
