"""GBNF grammars out of tools' schemas: what the model writes under one is a valid call, as far as the schemas say.

GBNF is llama.cpp's notation for context-free grammars over characters.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .pattern import gbnf_of, quoted
from .schema import Function, Schema, Slot, as_text, listed

TEXT = r"[^\n]{1,300}"
VALUE = r"[^\n]{1,200}"
_DESCRIBED = {
    "integer": '("-"? ("0" | [1-9] [0-9]{0,8}))',
    "number": '("-"? ("0" | [1-9] [0-9]{0,8}) ("." [0-9]{1,6})?)',
    "boolean": '("true" | "false")',
}


def tool_grammar(offered: Sequence[Function], *, text: bool) -> str:
    """Exactly one call of one of these functions; with `text`, a line of text will do as well.

    UnsupportedRequest for a pattern that has no equivalent.
    """
    branches = [" ".join([quoted(function.name), *map(_slot, function.slots)]) for function in offered]
    return "root ::= " + " | ".join([*branches, TEXT] if text else branches)


def _slot(slot: Slot) -> str:
    written = f"{quoted(slot.prefix)} {_either(map(_value, slot.choices))}"
    return written if slot.required else f"({written})?"


def _value(choice: Schema) -> str:
    values = listed(choice)
    if values is not None:
        return _either(quoted(as_text(value)) for value in values)
    if choice["type"] == "string":
        return f"({gbnf_of(choice['pattern'])})" if "pattern" in choice else VALUE
    return _DESCRIBED[choice["type"]]


def _either(options: Iterable[str]) -> str:
    return "(" + " | ".join(options) + ")"
