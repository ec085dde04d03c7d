"""Every error as problem+json (RFC 9457): what, where and what to do, and never a traceback (SV-04)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from treadle.core.errors import (
    AnswerRefused,
    InputError,
    InvalidStateTransition,
    LedgerError,
    OwnerAlive,
    TreadleError,
    UnknownExecution,
)
from treadle.core.spoken import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fastapi import FastAPI, Request, Response

MEDIA_TYPE = "application/problem+json"
_STATUS: tuple[tuple[type[TreadleError], int], ...] = (
    (UnknownExecution, 404),
    (AnswerRefused, 409),
    (OwnerAlive, 409),
    (InvalidStateTransition, 409),
    (InputError, 422),
    (LedgerError, 503),
)
_TITLES = {
    400: "The request cannot be read",
    401: "The token is missing or wrong",
    403: "Refused",
    404: "Not found",
    405: "Not a method of this address",
    409: "Somebody or something was quicker",
    413: "Too large",
    415: "Not JSON",
    421: "Not this server",
    422: "The request does not fit",
    428: "A header is missing",
    500: "A fault of Treadle's own",
    503: "The store failed",
}


class Problem(Exception):
    """A refusal with its status; `more` are members beside the usual ones."""

    def __init__(self, status: int, kind: str, detail: str, **more: Any) -> None:
        self.status, self.kind, self.detail, self.more = status, kind, detail, more
        super().__init__(detail)


def problem(
    status: int, kind: str, detail: str, more: Mapping[str, Any] | None = None, headers: Mapping[str, str] | None = None
) -> Response:
    """As a response. `kind` is a name that programs can rely on."""
    from starlette.responses import JSONResponse

    body = {"type": f"urn:treadle:{kind}", "title": _TITLES.get(status, "Refused"), "status": status, "detail": detail}
    return JSONResponse({**body, **(more or {})}, status, media_type=MEDIA_TYPE, headers=dict(headers or {}))


def of_error(error: TreadleError) -> Response:
    """An error of ours; the name of its class is the kind."""
    status = next((status for kind, status in _STATUS if isinstance(error, kind)), 500)
    return problem(status, _kebab(type(error).__name__), str(error))


def _kebab(name: str) -> str:
    return "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in name).strip("-")


def install(app: FastAPI) -> None:
    """Handlers for everything that a route can raise."""
    from fastapi.exceptions import RequestValidationError
    from starlette.exceptions import HTTPException

    async def refused(_: Request, error: Problem) -> Response:
        return problem(error.status, error.kind, error.detail, error.more)

    async def ours(_: Request, error: TreadleError) -> Response:
        return of_error(error)

    async def invalid(_: Request, error: RequestValidationError) -> Response:
        found = [
            {"at": ".".join(str(part) for part in one["loc"]), "message": one["msg"]} for one in error.errors()[:20]
        ]
        said = "; ".join(f"{one['at']}: {one['message']}" for one in found)
        return problem(422, "invalid-request", one_line(said, 500), {"errors": found})

    async def http(_: Request, error: HTTPException) -> Response:
        return problem(error.status_code, f"http-{error.status_code}", str(error.detail), headers=error.headers)

    async def fault(_: Request, error: Exception) -> Response:
        return problem(500, "fault", f"{type(error).__name__}. What was committed is safe; please report this.")

    app.add_exception_handler(Problem, refused)  # type: ignore[arg-type]
    app.add_exception_handler(TreadleError, ours)  # type: ignore[arg-type]
    app.add_exception_handler(RequestValidationError, invalid)  # type: ignore[arg-type]
    app.add_exception_handler(HTTPException, http)  # type: ignore[arg-type]
    app.add_exception_handler(Exception, fault)
