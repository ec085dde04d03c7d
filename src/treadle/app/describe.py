"""What matters of an event, on one line for people."""

from __future__ import annotations

from treadle.telemetry.said import describe

__all__ = ["describe"]
