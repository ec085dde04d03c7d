"""What the routes share: the studio, and the key that every write carries."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Header, Request

from treadle.server.problems import Problem
from treadle.server.studio import Studio


def studio_of(request: Request) -> Studio:
    """The one of this service."""
    found: Studio = request.app.state.studio
    return found


def key_of(idempotency_key: Annotated[str, Header(max_length=200)] = "") -> str:
    """The Idempotency-Key header. Problem 428 without one."""
    if not idempotency_key.strip():
        raise Problem(428, "key-missing", "A write carries an Idempotency-Key header: a new one for each wish.")
    return idempotency_key


TheStudio = Annotated[Studio, Depends(studio_of)]
Key = Annotated[str, Depends(key_of)]
