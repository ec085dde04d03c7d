"""The definitions of a source file with their line numbers, and the headings of any other text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from .languages import grammar, language_of

if TYPE_CHECKING:
    from tree_sitter import Node

WIDTH = 100  # characters of a definition's first line that are kept
MOST = 4_000  # definitions of one file; more are data
MOST_HEADINGS = 60
FEW_LINES = 2  # first lines of a text without headings

# Patterns stand as text: most maps need none of them, and compiling takes longer than a small map.
KEYWORD_LINE = (
    r"^[ \t]*(?:(?:export|default|public|private|protected|internal|static|abstract|final|open|override|async|pub|local"
    r"|inline|virtual|sealed|data|partial|extern|cdef|cpdef)[ \t]+)*"
    r"(?:def|class|func|fn|fun|function|interface|struct|enum|trait|object|module|protocol|proc|sub|macro|record)"
    r"[ \t]+([\w.:$]++)[^=\n]*+$"
    r"|^([\w-]++)[ \t]*+\(\)[ \t]*\{"
)
LOST_LINE = (
    r"^(?:(?:export|default|public|abstract|declare)[ \t]+)*(?:class|interface|struct)[ \t]+([\w$]++)[^;\n]*+$"
    r"|^[\w$.]*\.prototype\.([\w$]++)[ \t]*=[ \t]*(?:async[ \t]+)?function\b[^\n]*+$"
)
SCRIPTS = frozenset(
    "sh bash zsh fish vue svelte kt kts swift scala php cs lua zig ex exs pl pm pyx pxd dart jl nim groovy".split()
)
HEADING = r"^(?:#{1,6} +\S.*|=+ +\S.*|\[+[\w.\" -]+\]+|<h[1-6][^>\n]*>.*|[\w.-]+:(?: .*)?)$"
UNDERLINED = r"^(\S.*)\n([=\-~^\"'*+#])\2{2,}[ \t]*$"


class Definition(NamedTuple):
    """One definition: lines from 1, the last included; `text` is its first line, stripped and clipped."""

    line: int
    end: int
    name: str
    text: str


def definitions_of(path: str, data: bytes) -> list[Definition]:
    """Definitions in order of their lines; for text that is no source, headings or else its first lines."""
    language = language_of(path, data)
    if language:
        return _parsed(language, data)
    text = data.decode(errors="replace")
    if path.rpartition(".")[2].lower() in SCRIPTS:
        return _matched(KEYWORD_LINE, text)
    return (_matched(UNDERLINED, text) or _matched(HEADING, text))[:MOST_HEADINGS] or _first_lines(text)


def _parsed(language: str, data: bytes) -> list[Definition]:
    from tree_sitter import QueryCursor

    parser, query = grammar(language)
    root = parser.parse(data).root_node
    lines = data.split(b"\n")
    found: dict[int, Definition] = {}
    for _, captures in QueryCursor(query).matches(root):
        if "tokens" in captures:
            _unparsed(captures["tokens"][0], lines, found)
            continue
        node, name = captures["def"][0], captures["name"][0]
        row = node.start_point.row if node.type == "type_definition" else name.start_point.row
        if row not in found and len(found) < MOST:
            title = (name.text or b"").decode(errors="replace")
            found[row] = Definition(row + 1, node.end_point.row + 1, _name(title), _clip(lines[row]))
    if not found or root.has_error:  # what the grammar has lost, by its keyword
        for one in _matched(f"{KEYWORD_LINE}|{LOST_LINE}", data.decode(errors="replace")):
            if one.line - 1 not in found and len(found) < MOST:
                found[one.line - 1] = one
    return [found[row] for row in sorted(found)]


def _unparsed(node: Node, lines: list[bytes], found: dict[int, Definition]) -> None:
    """Definitions among the tokens of a macro, which the grammar does not parse."""
    first, last = node.start_point.row, node.end_point.row
    if last - first < 2:
        return
    inside = b"\n".join(lines[first + 1 : last]).decode(errors="replace")
    for one in _matched(KEYWORD_LINE, inside):
        row = first + one.line
        if row not in found and len(found) < MOST:
            found[row] = one._replace(line=row + 1, end=min(first + 1 + one.end, last))


def _name(title: str) -> str:
    head = title.split("(", maxsplit=1)[0].split("<", maxsplit=1)[0].strip("*& \n")
    return head.rsplit("::", 1)[-1].rsplit(".", 1)[-1][:64]


def _clip(line: bytes) -> str:
    return line.decode(errors="replace").strip()[:WIDTH]


def _matched(pattern: str, text: str) -> list[Definition]:
    found: list[Definition] = []
    line, at = 1, 0
    for match in re.finditer(pattern, text, re.MULTILINE):
        line += text.count("\n", at, match.start())
        at = match.start()
        title = match.group().split("\n")[0].strip()
        name = next((group for group in match.groups() if group), title)
        found.append(Definition(line, line, name[:64], title[:WIDTH]))
        if len(found) >= MOST:
            break
    starts = [definition.line for definition in found[1:]] + [text.count("\n") + 2]
    return [
        definition._replace(end=max(start - 1, definition.line))
        for definition, start in zip(found, starts, strict=False)
    ]


def _first_lines(text: str) -> list[Definition]:
    found: list[Definition] = []
    for number, line in enumerate(text[:4_000].split("\n"), 1):
        if line.strip() and len(found) < FEW_LINES:
            found.append(Definition(number, number, "", line.strip()[:WIDTH]))
    return found
