"""Secrets by the name that they are assigned to: as in .env files, shells, URLs, YAML and JSON, but not in ordinary code."""

from __future__ import annotations

import re
from typing import NamedTuple

_MARK = "[redacted]"
_NAME_END = re.compile(
    r"(key|token|secret|password|passwd|passphrase|pwd|credentials?)([\"']?)([ \t]{0,8}[=:](?![=:])[ \t]{0,8})"
)
_NAME_CHARACTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-")
_ASCII_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}
_LONGEST_NAME = 64
_LONGEST_START = 256  # characters before a name that may still be a line's beginning
_QUOTED = {quote: re.compile(rf"{quote}([^{quote}\r\n]{{1,4096}}){quote}") for quote in "\"'"}
_BARE = re.compile(r"[^\s\"'`;&|<>,(){}\[\]\\]{1,256}+(?![(\[{])")
_MORE = re.compile(r"[^\s\"'`;&|<>,(){}\[\]\\]*+")  # of a value longer than is looked at
_WHOLE_LINE = re.compile(r"[^\s\"'][^\s]*+(?<!,)(?=[ \t]*(?:#.*)?$)", re.MULTILINE)
_LINE_END = re.compile(r"[\"']?[ \t]*(?:#.*)?$", re.MULTILINE)
_LINE_START = re.compile(r"[ \t]*(?:export[ \t]+|set[ \t]+|-[ \t]+)?", re.IGNORECASE)
_CODE = re.compile(r"[A-Za-z_][\w.]*[(\[{]|lambda\b")
_PLACEHOLDER = re.compile(
    r"\$\w*\Z|\$[({]|\{.*\}\Z|<.*>\Z|%\(?\w+\)?[s%]\Z|%\w+%\Z|[*.x]+\Z|\d{1,3}\Z|your[-_ ]", re.IGNORECASE
)
_WORD = re.compile(r"[A-Za-z_][A-Za-z_.]*\Z")
_ATTRIBUTE = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+\Z")
_DIGIT = re.compile(r"\d")
_OPAQUE = re.compile(r"(?=[^A-Za-z]*[A-Za-z])[A-Za-z0-9+/=_.~-]{16,}\Z")
_NO_VALUES = frozenset("none null nil true false undefined default required optional empty unset".split())
_SECRET_KEYS = ("api", "access", "secret", "private", "auth", "signing", "encryption", "master")
_OPEN_KEYS = frozenset("public primary foreign sort partition cache idempotency group index natural registry".split())


class _Assignment(NamedTuple):
    name: str
    certain: bool  # such a name is hardly ever given to anything else
    own_line: bool  # nothing else is on it
    begins_line: bool
    flag: bool  # --name=value, ?name=value
    json: bool  # the name is quoted
    tight: bool  # name=value
    quoted: bool
    value: str

    @property
    def upper(self) -> bool:
        return self.name == self.name.upper()


def redact_assignments(text: str) -> str:
    """Replaces the values, and nothing but these."""
    pieces: list[str] = []
    done = 0
    low = text.lower()
    if len(low) != len(text):  # a few letters have longer lower cases
        low = text.translate(_ASCII_LOWER)
    for found in _NAME_END.finditer(low):
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
    at, tight = found.end(), found[3] == "="
    quoted = _QUOTED[text[at]].match(text, at) if text[at : at + 1] in ("'", '"') else None
    line = text.rfind("\n", max(0, start - _LONGEST_START), start) + 1
    begins_line = (line > 0 or start <= _LONGEST_START) and _LINE_START.fullmatch(text, line, start) is not None
    if quoted:
        span = quoted.span(1)
    else:
        whole = _WHOLE_LINE.match(text, at) if begins_line and tight else None
        if whole and name != name.upper() and set(whole[0]) & set("()[]{}"):
            whole = None
        bare = whole or _BARE.match(text, at)
        if bare is None:
            return None
        span = bare.span()
    assignment = _Assignment(
        name=name,
        certain=certain,
        own_line=begins_line and _LINE_END.match(text, span[1]) is not None,
        begins_line=begins_line,
        flag=text[start : start + 2] == "--" or text[max(0, start - 1) : start] in ("?", "&"),
        json=bool(found[2]),
        tight=tight,
        quoted=quoted is not None,
        value=text[span[0] : span[1]],
    )
    if not _is_secret(assignment):
        return None
    return span if quoted else (span[0], _MORE.match(text, span[1]).end())  # pyright: ignore[reportOptionalMemberAccess]


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
    if value.lower() in _NO_VALUES or _PLACEHOLDER.match(value) or value.startswith(_MARK):
        return False
    if not a.quoted and (_CODE.match(value) or (_ATTRIBUTE.match(value) and not (a.own_line and a.tight))):
        return False
    digits = len(_DIGIT.findall(value))
    if a.upper and a.tight:
        return len(value) >= 3 and value.lower() != a.name.lower()
    if digits >= 3 and _OPAQUE.match(value):
        return a.tight or a.quoted or (a.own_line and not _names_itself(a))
    if a.flag:
        return a.tight and len(value) >= 4
    if a.upper:
        return digits > 0 and " " not in value and len(value) >= 8 and not _names_itself(a)
    if a.tight and a.own_line:
        if not a.certain:
            return digits > 0 and len(value) >= 8
        return len(value) >= 6 and not (_WORD.match(value) and _names_itself(a)) and not _ATTRIBUTE.match(value)
    if not a.certain or not digits or " " in value:
        return False
    if a.quoted:
        return len(value) >= (6 if a.json else 8)
    return a.own_line and len(value) >= 8 and not _names_itself(a)


def _names_itself(a: _Assignment) -> bool:
    """A value like `api_key` or `get_password_2`: the name of such a thing, not the thing."""
    low = a.value.lower()
    return any(len(part) > 2 and part in low for part in (*re.split(r"[_.-]", a.name.lower()), "passw")) and bool(
        re.match(r"[A-Za-z_][\w.]*\Z", a.value)
    )
