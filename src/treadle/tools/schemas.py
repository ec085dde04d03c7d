"""JSON Schemas of tools as compiled validators, made once a definition; what is refused of one is left out and told."""

from __future__ import annotations

import copy
import logging
from typing import Any

import jsonschema_rs

_log = logging.getLogger(__name__)
_MOST = 1024  # compiled schemas kept; MCP servers may send new ones for ever
_MOST_CUTS = 20
_COMPILED: dict[int, tuple[dict[str, Any], jsonschema_rs.Validator, tuple[str, ...]]] = {}


def compiled(schema: dict[str, Any]) -> jsonschema_rs.Validator:
    """The validator of a schema, which must not change afterwards."""
    return _entry(schema)[1]


def left_out(schema: dict[str, Any]) -> tuple[str, ...]:
    """What of a schema is not checked, and why, a line each: mostly patterns in an unknown dialect."""
    return _entry(schema)[2]


def _entry(schema: dict[str, Any]) -> tuple[dict[str, Any], jsonschema_rs.Validator, tuple[str, ...]]:
    entry = _COMPILED.get(id(schema))
    if entry is None:  # a schema that is kept keeps its id to itself
        if len(_COMPILED) >= _MOST:
            _COMPILED.clear()
        entry = _COMPILED[id(schema)] = (schema, *_compile(schema))
        for line in entry[2]:
            _log.warning("A tool's schema is used without %s", line)
    return entry


def _compile(schema: dict[str, Any]) -> tuple[jsonschema_rs.Validator, tuple[str, ...]]:
    reports: list[str] = []
    usable = schema
    for _ in range(_MOST_CUTS):
        try:
            return jsonschema_rs.validator_for(usable, offline=True), tuple(reports)
        except jsonschema_rs.ValidationError as error:
            path = error.instance_path or (["$schema"] if "$schema" in usable else [])
            if not path:
                reports.append(f"any of its keywords: {error.message}")
                break
            reports.append(f"{'.'.join(map(str, path))}: {error.message}")
            usable = _without(usable, path)
        except ValueError as error:  # no JSON
            reports.append(f"any of its keywords: {error}")
            break
    return jsonschema_rs.validator_for({"type": "object"}), tuple(reports)


def _without(schema: dict[str, Any], path: list[str | int]) -> dict[str, Any]:
    reduced = copy.deepcopy(schema)
    parent: Any = reduced
    for step in path[:-1]:
        parent = parent[step]
    del parent[path[-1]]
    return reduced
