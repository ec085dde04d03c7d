"""Loop files as text: read with the line of every fault, written without losing a comment or the order of anything."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from difflib import get_close_matches
from io import StringIO
from types import UnionType
from typing import Any, Literal, cast, get_args, get_origin

import msgspec

from .loopfile import FORMAT, Finding, LoopFile, LoopFileError, contradictions

MAX_CHARACTERS = 262_144
MOST_FINDINGS = 20
MOST_OPEN = 64  # brackets: the time to read them grows with the square of how deep they are nested
_AT = re.compile(r" - at `\$(.*?)`$")
_BRACKET = re.compile(r"[\[\]{}]")
_TYPE = re.compile(r"`([a-z| ]+)`")
_SPOKEN = {
    "array": "a list",
    "bool": "true or false",
    "decimal": "an amount",
    "float": "a number",
    "int": "a whole number",
    "null": "nothing",
    "object": "a section",
    "str": "text",
}
_FIELDS = {"from": "source", "to": "target"}
NEW = f"treadle: {FORMAT}\n"


def parse(text: str, *, name: str = "loop file") -> LoopFile:
    """What the text says. LoopFileError with every finding."""
    file, findings = look(text)
    if file is None or findings:
        raise LoopFileError(name, tuple(findings))
    return file


def look(text: str) -> tuple[LoopFile | None, list[Finding]]:
    """The same for whoever shows what is wrong: None where it cannot be read at all."""
    tree, findings = _tree(text)
    if findings:
        return None, findings
    said: dict[str, Any] = _plain(tree)
    # A section without a word is there all the same: `perceive:` is the map with its defaults.
    plain: dict[str, Any] = {
        key: {} if value is None and key not in ("name", "task") else value for key, value in said.items()
    }
    wrong = [*_unknown(plain, LoopFile, ()), *_decimals(plain)]
    findings = [_finding(tree, path, message) for path, message in wrong]
    if not all(_left_out(plain, path) for path, _ in wrong):
        return None, findings
    file, more = _converted(tree, plain)
    if file is None or findings:
        return None, [*findings, *more]
    return file, [_finding(tree, tuple(path.split(".")), f"{path} {text}") for path, text in contradictions(file)]


def said(text: str) -> frozenset[str]:
    """The dotted path of every key that has a value, down to what stands in a section. Empty for what cannot be read."""
    tree, findings = _tree(text)
    return frozenset() if findings else frozenset(_paths(_plain(tree), ""))


def placed(text: str, found: Sequence[tuple[str, str]]) -> list[Finding]:
    """Each (path, message) with its place in the text, or with that of the nearest section above it."""
    tree, _ = _tree(text)
    return [_finding(tree, tuple(path.split(".")), message) for path, message in found]


def updated(text: str, spec: Mapping[str, Any]) -> str:
    """The text that says `spec`, with the comments and the order that the old text had. LoopFileError for what is no YAML."""
    tree, findings = _tree(text or NEW)
    if findings:
        raise LoopFileError("loop file", tuple(findings))
    _merge(tree, spec)
    buffer = StringIO()
    _yaml().dump(tree, buffer)
    return buffer.getvalue()


def to_json(file: LoopFile) -> dict[str, Any]:
    """What it says, without what it leaves out: the same that `updated` takes."""
    whole: dict[str, Any] = msgspec.to_builtins(file, builtin_types=(Decimal,))
    empty: dict[str, Any] = msgspec.to_builtins(LoopFile(treadle=1), builtin_types=(Decimal,))
    return cast("dict[str, Any]", _without(whole, {**empty, "treadle": None, "name": None}))


def schema() -> dict[str, Any]:
    """The JSON Schema for editors, generated from the types."""
    found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(msgspec.json.schema(LoopFile)))
    defs = cast("dict[str, dict[str, Any]]", found["$defs"])
    for one in defs.values():
        for value in one.get("properties", {}).values():
            _usd(value)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Treadle loop file",
        **found,
    }


def _usd(value: dict[str, Any]) -> None:
    """A decimal is a number in YAML."""
    for one in value.get("anyOf", [value]):
        if one.get("format") == "decimal":
            one.pop("format")
            one.update({"type": "number", "exclusiveMinimum": 0})


# ---- reading


def _yaml() -> Any:
    from ruamel.yaml import YAML

    made = YAML(typ="rt")
    made.preserve_quotes = True
    made.width = 120
    made.indent(mapping=2, sequence=4, offset=2)
    return made


def _too_deep(text: str) -> int | None:
    """Where brackets are nested too deep, those in texts counted as well; None where they are not."""
    opened = 0
    for bracket in _BRACKET.finditer(text):
        opened = opened + 1 if bracket[0] in "[{" else max(0, opened - 1)
        if opened > MOST_OPEN:
            return bracket.start()
    return None


def _tree(text: str) -> tuple[Any, list[Finding]]:
    from ruamel.yaml.comments import CommentedMap
    from ruamel.yaml.error import MarkedYAMLError, YAMLError
    from ruamel.yaml.tokens import AliasToken

    if len(text) > MAX_CHARACTERS:
        return None, [_at(0, 0, "", f"it has {len(text):,} characters; {MAX_CHARACTERS:,} are allowed.")]
    if (deep := _too_deep(text)) is not None:
        line = text.count("\n", 0, deep)
        column = deep - text.rfind("\n", 0, deep) - 1
        return None, [_at(line, column, "", f"brackets are nested more than {MOST_OPEN} deep.")]
    try:
        for token in _yaml().scan(text):  # a few of them can stand for a billion values
            if isinstance(token, AliasToken):
                mark: Any = token.start_mark
                return None, [_at(mark.line, mark.column, "", "no aliases (*name) in a loop file: write it out.")]
        tree = _yaml().load(text)
    except MarkedYAMLError as error:
        marked: Any = error
        mark = marked.problem_mark or marked.context_mark
        said = str(marked.problem or marked.context or "cannot be read").strip().splitlines()[0]
        return None, [_at(mark.line if mark else 0, mark.column if mark else 0, "", f"this is no YAML: {said}.")]
    except (YAMLError, ValueError, RecursionError, TypeError) as error:
        return None, [_at(0, 0, "", f"this is no YAML: {str(error).splitlines()[0] if str(error) else 'too deep'}.")]
    if not isinstance(tree, CommentedMap):
        return None, [_at(0, 0, "", f"a loop file is a mapping that begins with treadle: {FORMAT}.")]
    if "treadle" not in tree:
        return None, [_at(0, 0, "", f"the first line says the version of the format: treadle: {FORMAT}.")]
    return tree, []


def _plain(node: Any, depth: int = 0) -> Any:
    """Ruamel's values as plain ones. What is deeper than any loop file is cut off; the types refuse it by then."""
    if depth > 8:
        return None
    if isinstance(node, Mapping):
        items = cast("Mapping[Any, Any]", node).items()
        return {str(key): _plain(value, depth + 1) for key, value in items}
    if isinstance(node, Sequence) and not isinstance(node, str | bytes):
        return [_plain(value, depth + 1) for value in cast("Sequence[Any]", node)]
    if isinstance(node, bool) or node is None:
        return node
    for kind in (int, float, str):
        if isinstance(node, kind):
            return kind(node)
    return str(node)


def _paths(plain: Any, above: str) -> list[str]:
    if not isinstance(plain, dict):
        return []
    found: list[str] = []
    for key, value in cast("dict[str, Any]", plain).items():
        path = f"{above}{key}"
        if value is False or value in ([], "") or (value is None and above):
            continue
        found += [path, *_paths(value, f"{path}.")]
    return found


def _unknown(plain: Any, kind: type[Any], path: tuple[str, ...]) -> list[tuple[tuple[str, ...], str]]:
    """Every key that the types do not have, with the nearest that they have."""
    found: list[tuple[tuple[str, ...], str]] = []
    if not isinstance(plain, dict):
        return found
    fields = {one.encode_name: one for one in msgspec.structs.fields(kind)}
    for key, value in cast("dict[str, Any]", plain).items():
        if key not in fields:
            close = get_close_matches(key, fields, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else f" There are {', '.join(fields)}."
            where = ".".join(path) or "a loop file"
            found.append(((*path, key), f"{where} has no key {key!r}.{hint}"))
        elif inner := _struct(fields[key].type):
            found += _unknown(value, inner, (*path, key))
        elif (each := _struct_of_each(fields[key].type)) and isinstance(value, dict):
            for name, one in cast("dict[str, Any]", value).items():
                found += _unknown(one, each, (*path, key, name))
    return found


def _struct(kind: Any) -> type[Any] | None:
    """The section that a key holds, also where it may be left out."""
    kinds = [kind, *(get_args(kind) if isinstance(kind, UnionType) else ())]
    return next((one for one in kinds if isinstance(one, type) and issubclass(one, msgspec.Struct)), None)


def _struct_of_each(kind: Any) -> type[Any] | None:
    """The section that each value of a mapping is."""
    args = get_args(kind) if get_origin(kind) is dict else ()
    return _struct(args[1]) if args else None


def _decimals(plain: dict[str, Any]) -> list[tuple[tuple[str, ...], str]]:
    """Money is exact: a number as written becomes a Decimal before the types see it (FR-11)."""
    found: list[tuple[tuple[str, ...], str]] = []
    act = plain.get("act")
    children = cast("dict[str, Any]", act).get("children") if isinstance(act, dict) else None
    named = cast("dict[str, Any]", children) if isinstance(children, dict) else {}
    places = [(("control",), plain.get("control")), *((("act", "children", name), one) for name, one in named.items())]
    for path, section in places:
        if not isinstance(section, dict) or (cost := cast("dict[str, Any]", section).get("max_cost")) is None:
            continue
        try:
            if isinstance(cost, bool):
                raise InvalidOperation
            cast("dict[str, Any]", section)["max_cost"] = Decimal(str(cost))
        except InvalidOperation:
            words = f"{'.'.join(path)}.max_cost is an amount in US dollars, not {cost!r:.60}."
            found.append(((*path, "max_cost"), words))
    return found


def _converted(tree: Any, plain: dict[str, Any]) -> tuple[LoopFile | None, list[Finding]]:
    """The file; or a finding for each value that is none of its kind: what is wrong is left out, and the rest looked at again."""
    findings: list[Finding] = []
    while len(findings) < MOST_FINDINGS:
        try:
            file = msgspec.convert(plain, LoopFile, strict=True)
        except msgspec.ValidationError as error:
            path, words = _of_validation(str(error))
            if findings and not _left_out(plain, path):
                break  # it says again what has been said, in other words
            if not findings:
                _left_out(plain, path)
            findings.append(_finding(tree, path, words))
        else:
            return (None, findings) if findings else (file, [])
    return None, findings


def _left_out(plain: Any, path: tuple[str, ...]) -> bool:
    """Whether there was such a value; it is gone. The path does not say in which child a fault is."""
    node: Any = plain
    try:
        for part in path[:-1]:
            node = node[int(part) if isinstance(node, list) else part]
        del node[int(path[-1]) if isinstance(node, list) else path[-1]]
    except (IndexError, KeyError, TypeError, ValueError):
        return False
    return True


def _of_validation(said: str) -> tuple[tuple[str, ...], str]:
    """(where, what is wrong)."""
    match = _AT.search(said)
    path = tuple(part for part in re.split(r"[.\[\]]+", match[1]) if part) if match else ()
    words = said[: match.start()] if match else said
    if "matching regex" in words:
        words = "is no duration. Examples: 90s, 10m, 2h"
    elif "enum value" in words:
        known = [str(one) for one in _choices(LoopFile, path)]
        words = f"can only be {known[0]}" if len(known) == 1 else f"is none of {', '.join(known)}"
    else:
        words = _TYPE.sub(lambda one: " or ".join(_SPOKEN.get(kind, kind) for kind in one[1].split(" | ")), words)
    return path, f"{'.'.join(path) or 'it'}: {words[:1].lower()}{words[1:]}."


def _choices(kind: Any, path: tuple[str, ...]) -> tuple[Any, ...]:
    """What the value at that path may be."""
    for part in path:
        if struct := _struct(kind) or _struct_of_each(kind):
            kind = next((one.type for one in msgspec.structs.fields(struct) if one.encode_name == part), struct)
    return _literals(kind)


def _literals(kind: Any) -> tuple[Any, ...]:
    if get_origin(kind) is Literal:
        return get_args(kind)
    return tuple(value for inner in get_args(kind) for value in _literals(inner))


def _finding(tree: Any, path: tuple[str, ...], message: str) -> Finding:
    """Where the path is, as far as the text has it."""
    line, column = 0, 0
    node: Any = tree
    for part in path:
        listed = isinstance(node, Sequence)
        key: Any = int(part) if part.isdigit() and listed else part
        try:
            marks: Any = node.lc
            mark: tuple[int, int] = marks.item(key) if listed else marks.key(key)
            (line, column), node = mark, node[key]
        except (AttributeError, KeyError, IndexError, TypeError):
            break
    return _at(line, column, ".".join(path), message)


def _at(line: int, column: int, path: str, message: str) -> Finding:
    return Finding(line=line + 1, column=column + 1, path=path, message=message)


# ---- writing


def _merge(tree: Any, spec: Mapping[str, Any]) -> None:
    """Changes only what differs, so that comments beside the rest stay."""
    for key in [key for key in tree if str(key) not in spec]:
        del tree[key]
    for key, value in spec.items():
        if isinstance(value, Mapping) and isinstance(tree.get(key), Mapping):
            _merge(tree[key], cast("Mapping[str, Any]", value))
        elif key not in tree or _plain(tree[key]) != _plain(value):
            tree[key] = _written(value)


def _written(value: Any) -> Any:
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, Mapping):
        return {key: _written(one) for key, one in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_written(one) for one in cast("Sequence[Any]", value)]
    return value


def _without(value: Any, empty: Any) -> Any:
    """Without what is as it would be if nothing were said."""
    if isinstance(value, list | tuple):
        return [_without(one, {"kind": ""}) for one in cast("Sequence[Any]", value)]
    if not isinstance(value, dict):
        return float(value) if isinstance(value, Decimal) else value
    defaults: dict[str, Any] = cast("dict[str, Any]", empty) if isinstance(empty, dict) else {}
    found: dict[str, Any] = {}
    for key, one in cast("dict[str, Any]", value).items():
        if one is None or (key in defaults and one == defaults[key]):
            continue
        found[key] = _without(one, defaults.get(key))
    return found
