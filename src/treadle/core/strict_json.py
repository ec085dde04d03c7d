"""User values to JSON and back without loss: what would come back as something else is refused, and it is said where it stands."""

from __future__ import annotations

import json
from math import copysign, isfinite
from typing import Any, cast

from .errors import InvalidOutput

DEPTH = 200  # containers within containers


def to_json(value: object, what: str = "value") -> str:
    """The value as JSON text. InvalidOutput names the place of what JSON would lose: NaN, -0.0, dates, tuples, cycles and the like."""
    _check(value, what, [])
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def from_json(text: str) -> Any:
    """A fresh value each time, so that whoever changes it changes nothing of anybody else's."""
    return json.loads(text) if text else None


def _check(value: object, path: str, above: list[int]) -> None:
    kind = type(value)
    if value is None or kind is bool:
        return
    if kind is int:
        _check_int(cast("int", value), path)
    elif kind is str:
        _check_text(cast("str", value), path)
    elif kind is float:
        number = cast("float", value)
        if not isfinite(number) or (number == 0 and copysign(1, number) < 0):
            raise InvalidOutput(f"{path}: JSON has no {number!r}")
    elif kind is list or kind is dict:
        _check_container(value, path, above)
    else:
        raise InvalidOutput(
            f"{path}: JSON has no {kind.__qualname__}; give a value of dict, list, str, int, float, bool, None"
        )


def _check_int(value: int, path: str) -> None:
    if value.bit_length() > 1023:
        raise InvalidOutput(f"{path}: a whole number of {value.bit_length()} bits is too large")


def _check_text(value: str, path: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InvalidOutput(f"{path}: the text has half of a surrogate pair at {error.start}") from error


def _check_container(value: object, path: str, above: list[int]) -> None:
    if id(value) in above:
        raise InvalidOutput(f"{path}: the value contains itself")
    if len(above) >= DEPTH:
        raise InvalidOutput(f"{path}: more than {DEPTH} containers within one another")
    above.append(id(value))
    if isinstance(value, dict):
        for key, item in cast("dict[object, object]", value).items():
            if type(key) is not str:
                raise InvalidOutput(f"{path}: a key must be a string, not {key!r:.80}")
            _check_text(key, path)
            _check(item, f"{path}.{key}", above)
    else:
        for place, item in enumerate(cast("list[object]", value)):
            _check(item, f"{path}[{place}]", above)
    above.pop()
