"""Regular expressions of JSON Schema as GBNF: literals, sets, groups, alternatives and repetition."""

from __future__ import annotations

import re

from .request import UnsupportedRequest

_SETS = {"d": "0-9", "w": "A-Za-z0-9_", "s": r" \t\r\n"}
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v"}
_ESCAPED = {"\n": r"\n", "\t": r"\t", "\r": r"\r", "\\": r"\\"}
_REPEAT = re.compile(r"[*+?]|\{\d+(?:,\d*)?\}")
_ANYTHING = r"[^\n]*"  # what an unanchored side stands for; a value has one line


def quoted(literal: str) -> str:
    """The literal as a GBNF string."""
    return '"' + "".join(_escape(character, '"') for character in literal) + '"'


def gbnf_of(pattern: str) -> str:
    """The strings that match the pattern. UnsupportedRequest for look-around, references and what is malformed."""
    start = pattern.startswith("^")
    end = bool(re.search(r"(?<!\\)(?:\\\\)*\$$", pattern))
    reader = _Reader(pattern, int(start), len(pattern) - end)
    body = reader.alternatives()
    if reader.more():
        raise reader.error("unbalanced )")
    if start and end:
        return body
    return " ".join(([] if start else [_ANYTHING]) + [f"({body})"] + ([] if end else [_ANYTHING]))


def _escape(character: str, special: str) -> str:
    if character in special:
        return "\\" + character
    if character in _ESCAPED:
        return _ESCAPED[character]
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\x{code:02X}" if code < 0x100 else f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"


class _Reader:
    """Reads `pattern[at:end]` once, by recursive descent."""

    def __init__(self, pattern: str, at: int, end: int) -> None:
        self.pattern, self.end = pattern, end
        self.at: int = at

    def more(self) -> bool:
        return self.at < self.end

    def error(self, what: str) -> UnsupportedRequest:
        return UnsupportedRequest(f"pattern {self.pattern!r}, at {self.at}: {what}")

    def take(self) -> str:
        if not self.more():
            raise self.error("ends too early")
        self.at += 1
        return self.pattern[self.at - 1]

    def alternatives(self) -> str:
        branches = [self.sequence()]
        while self.more() and self.pattern[self.at] == "|":
            self.at += 1
            branches.append(self.sequence())
        return " | ".join(branches)

    def sequence(self) -> str:
        parts: list[str] = []
        literal = ""
        while self.more() and self.pattern[self.at] not in "|)":
            atom, character = self.atom()
            repeat = self.repeat()
            if character and not repeat:
                literal += character
                continue
            if literal:
                parts.append(quoted(literal))
                literal = ""
            parts.append((quoted(character) if character else atom) + repeat)
        if literal or not parts:
            parts.append(quoted(literal))
        return " ".join(parts)

    def atom(self) -> tuple[str, str]:
        """(GBNF, "") or, for a plain character, ("", character)."""
        character = self.take()
        if character == "(":
            return self.group(), ""
        if character == "[":
            return self.set(), ""
        if character == ".":
            return r"[^\n]", ""
        if character == "\\":
            return self.escape()
        if character in "*+?{^$":
            raise self.error(f"{character} is not supported here")
        return "", character

    def group(self) -> str:
        if self.pattern.startswith("?", self.at):
            if not self.pattern.startswith("?:", self.at):
                raise self.error("look-around and named groups are not supported")
            self.at += 2
        body = self.alternatives()
        if self.take() != ")":
            raise self.error("unbalanced (")
        return f"({body})"

    def escape(self) -> tuple[str, str]:
        character = self.take()
        if character in _SETS:
            return f"[{_SETS[character]}]", ""
        if character.lower() in _SETS:
            return f"[^{_SETS[character.lower()]}]", ""
        return "", self.plain(character)

    def plain(self, character: str) -> str:
        if character in _CONTROLS:
            return _CONTROLS[character]
        if character in "xu":
            digits = re.compile("[0-9A-Fa-f]{2}" if character == "x" else "[0-9A-Fa-f]{4}").match(self.pattern, self.at)
            if not digits:
                raise self.error("malformed escape")
            self.at = digits.end()
            return chr(int(digits[0], 16))
        if character.isalnum():
            raise self.error(f"\\{character} is not supported")
        return character

    def set(self) -> str:
        negated = self.pattern.startswith("^", self.at)
        self.at += negated
        members = ""
        while (character := self.take()) != "]":
            if character == "\\":
                character = self.take()
                if character in _SETS:
                    members += _SETS[character]
                    continue
                character = self.plain(character)
            elif character == "-" and members and not self.pattern.startswith("]", self.at):
                members += "-"
                continue
            members += {"-": r"\x2D", "^": r"\x5E"}.get(character) or _escape(character, "[]")
        if not members:
            raise self.error("an empty set")
        return f"[{'^' if negated else ''}{members}]"

    def repeat(self) -> str:
        found = _REPEAT.match(self.pattern, self.at, self.end)
        if not found:
            return ""
        self.at = found.end()
        if self.more() and self.pattern[self.at] in "?+":  # lazy and possessive repetition match the same strings
            self.at += 1
        return found[0]
