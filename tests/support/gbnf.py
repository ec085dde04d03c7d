"""GBNF of the local model's grammars as a regular expression, so that tests can ask what a grammar lets through."""

from __future__ import annotations

import re

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\]|[()|]|[*+?]|\{[\d,]+\}|\s+', re.DOTALL)
_ESCAPE = re.compile(r"\\(x..|u....|U........|.)", re.DOTALL)
_CONTROL = {"n": "\n", "t": "\t", "r": "\r"}


def as_regex(grammar: str) -> re.Pattern[str]:
    """A one-rule grammar, or the body of one, as llama.cpp reads it."""
    body = grammar.removeprefix("root ::= ")
    out, at = "", 0
    while at < len(body):
        found = _TOKEN.match(body, at)
        assert found, f"not GBNF: {body[at:]}"
        token, at = found[0], found.end()
        if token[0] == '"':
            out += f"(?:{re.escape(_plain(token[1:-1]))})"
        elif token[0] == "[":
            out += f"[{_members(token[1:-1])}]"
        elif not token.isspace():
            out += "(?:" if token == "(" else token
    return re.compile(out, re.DOTALL)


def _plain(text: str) -> str:
    return _ESCAPE.sub(lambda m: _character(m[1]), text)


def _character(escape: str) -> str:
    if escape[0] in "xuU" and len(escape) > 1:
        return chr(int(escape[1:], 16))
    assert escape in _CONTROL or escape in '\\"[]', f"llama.cpp knows no \\{escape}"
    return _CONTROL.get(escape, escape)


def _members(text: str) -> str:
    negated, text = text.startswith("^"), text.removeprefix("^")
    plain = _ESCAPE.sub(lambda m: re.escape(_character(m[1])), text)
    return ("^" if negated else "") + plain.replace("[", r"\[")
