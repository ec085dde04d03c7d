"""Secrets by the name that they are assigned to: as in .env files, shells, URLs, YAML and JSON, but not in ordinary code."""

from __future__ import annotations

import re
from typing import NamedTuple

_MARK = "[redacted]"
_NAME_END = re.compile(
    r"(?i)(key|token|secret|password|passwd|passphrase|pwd|credentials?)([\"']?)([ \t]{0,8}[=:](?![=:])[ \t]{0,8})"
)
_NAME_CHARACTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-")
_LONGEST_NAME = 64
_QUOTED = {quote: re.compile(rf"{quote}([^{quote}\r\n]+){quote}") for quote in "\"'"}
_BARE = re.compile(r"[^\s\"'`;&|<>,(){}\[\]\\]+(?![(\[{])")
_WHOLE_LINE = re.compile(r"[^\s\"'][^\s]*(?=[ \t]*(?:#.*)?$)", re.MULTILINE)
_LINE_START = re.compile(r"[ \t]*(?:export[ \t]+|set[ \t]+|-[ \t]+)?", re.IGNORECASE)
_CODE = re.compile(r"[A-Za-z_][\w.]*[(\[{]|lambda\b")
_PLACEHOLDER = re.compile(
    r"\$\{?\w+\}?\Z|\$\(|\{.*\}\Z|<.*>\Z|%\(?\w+\)?[s%]\Z|%\w+%\Z|[*.x]+\Z|\d{1,3}\Z", re.IGNORECASE
)
_WORD = re.compile(r"[A-Za-z_][A-Za-z_.]*\Z")
_OPAQUE = re.compile(r"(?=(?:[^\d]*\d){3})(?=.*[A-Za-z])[A-Za-z0-9+/=_.~-]{16,}\Z")
_NO_VALUES = frozenset("none null nil true false undefined default required optional empty unset".split())
_SECRET_KEYS = ("api", "access", "secret", "private", "auth", "signing", "encryption", "master")
_OPEN_KEYS = frozenset("public primary foreign sort partition cache idempotency group index natural registry".split())


class _Assignment(NamedTuple):
    name: str
    certain: bool  # such a name is hardly ever given to anything else
    begins_line: bool
    flag: bool  # --name=value, ?name=value
    json: bool  # the name is quoted
    tight: bool  # name=value
    quoted: bool
    value: str


def redact_assignments(text: str) -> str:
    """Replaces the values, and nothing but these."""
    pieces: list[str] = []
    done = 0
    for found in _NAME_END.finditer(text):
        if found.start() >= done and (span := _value(text, found)):
            pieces += (text[done : span[0]], _MARK)
            done = span[1]
    return "".join((*pieces, text[done:])) if pieces else text


def _value(text: str, found: re.Match[str]) -> tuple[int, int] | None:
    """Where the value of an assignment is, if it is a secret."""
    start = found.start()
    least = max(0, start - _LONGEST_NAME)
    while start > least and text[start - 1] in _NAME_CHARACTERS:
        start -= 1
    name = text[start : found.end(1)].lstrip("-")
    certain = _is_certain(name, found[1])
    if certain is None:
        return None
    at = found.end()
    line = text.rfind("\n", 0, start) + 1
    begins_line = (
        _LINE_START.fullmatch(text, line, start + (text[start : start + 1] == "-" and start == line)) is not None
    )
    flag = text[start : start + 2] == "--" or text[start - 1 : start] in ("?", "&")
    quoted = _QUOTED[text[at]].match(text, at) if text[at : at + 1] in ("'", '"') else None
    tight = found[3] == "="
    if quoted:
        span = quoted.span(1)
    else:
        bare = (_WHOLE_LINE.match(text, at) if begins_line and tight else None) or _BARE.match(text, at)
        if bare is None:
            return None
        span = bare.span()
    assignment = _Assignment(
        name, certain, begins_line, flag, bool(found[2]), tight, quoted is not None, text[span[0] : span[1]]
    )
    return span if _is_secret(assignment) else None


def _is_certain(name: str, word: str) -> bool | None:
    """None for a name that is not a secret's: key, primary_key, monkey, PWD."""
    low = name.lower().replace("-", "_").replace(".", "_").strip("_")
    word = word.lower()
    head = low[: len(low) - len(word)]
    before = head.rstrip("_").rpartition("_")[2]
    if word == "key":
        certain = before.endswith(_SECRET_KEYS)
        return certain if certain or (head.endswith("_") and before and before not in _OPEN_KEYS) else None
    if word == "pwd":
        return True if head.endswith("_") else None
    if word == "token":
        return before.endswith(("access", "auth", "api", "refresh", "bearer", "bot"))
    return True


def _is_secret(a: _Assignment) -> bool:
    value = a.value
    if len(value) < 4 or value.lower() in _NO_VALUES or _PLACEHOLDER.match(value) or value.startswith(_MARK):
        return False
    if not a.quoted and _CODE.match(value):
        return False
    digit = any(character.isdigit() for character in value)
    if a.name == a.name.upper():
        if a.tight:
            return True
        return " " not in value and len(value) >= 8 and (digit or (a.certain and a.quoted))
    if _OPAQUE.match(value):
        return a.tight or a.quoted or a.begins_line
    if a.flag:
        return a.tight
    if a.tight and a.begins_line:
        if not a.certain:
            return digit and len(value) >= 8 and not a.value.endswith(",")
        return len(value) >= 6 and (not _WORD.match(value) or _stands_alone(a))
    if not a.certain or not digit or " " in value:
        return False
    return len(value) >= (6 if a.json and a.quoted else 8) and (a.quoted or a.begins_line)


def _stands_alone(a: _Assignment) -> bool:
    """A plain word as a password, in a file of settings; not an argument that is passed on."""
    parts = re.split(r"[_.-]", a.name.lower())
    return "." not in a.value and not any(part and part in a.value.lower() for part in (*parts, "pass"))
