"""Who sits at the keyboard."""

from __future__ import annotations

import os
import pwd


def speaker(named: str) -> str:
    """Who says something: who was named, or the user."""
    return named or user_name()


def user_name() -> str:
    """The name of the user; the number where there is none."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"user {os.getuid()}"
