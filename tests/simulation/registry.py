"""Definitions of the trial that runs, by name: what a stored execution calls `simulation.registry:NAME`."""

from __future__ import annotations

from typing import Any

DEFINITIONS: dict[str, Any] = {}


def __getattr__(name: str) -> Any:
    if name not in DEFINITIONS:
        raise AttributeError(name)
    return DEFINITIONS[name]
