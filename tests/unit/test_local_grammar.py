"""What the local model's grammars let through."""

from __future__ import annotations

import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.gbnf import as_regex
from treadle.models.local.grammar import tool_grammar
from treadle.models.local.pattern import gbnf_of, quoted
from treadle.models.local.request import FunctionDef, Tool, UnsupportedRequest
from treadle.models.local.schema import functions

SAMPLES = [
    *["", "a", "b", "ab", "abc", "aab", "abab", "A", "Z9_", "x-y", "x]y", "x^y", "]", "^", "-", "\\", "5", "42"],
    *[
        "2024-05-01",
        "a.b",
        "a\nb",
        "a b",
        "ä",
        '"',
        "🙂",
        "\t",
        "/",
        "$",
        "a$",
        "(a)",
        "a|b",
        "def f(x):\n    return x",
    ],
]
PATTERNS = [
    *["^a+b?$", "^(ab)*$", "^(?:ab|c)d?$", "^a{2}b$", "^a{1,}$", "^a+?$", "^$", "^(a|)b$", "a", "^a", "b$", "^.$"],
    *["^[a-z]{2,3}$", "^[^a-z]$", r"^[\]^-]$", r"^[\w.-]+$", r"^x[\]^-]y$", "[a-c]", r"^[a\-c]$", r"^[\n\t]$"],
    *[r"^\d{4}-\d{2}-\d{2}$", r"^\w+$", r"^\W$", r"^\S+\s?\S*$", r"^\\$", r"^\"$", r"^\u00e4$", r"^\x41$", r"^a\$$"],
    *[r"^\(a\)$", r"^def f\(x\):\n    return [^\n]+$"],
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_lets_through_what_it_matches_and_nothing_else(pattern):
    compiled = as_regex(gbnf_of(pattern))
    for sample in SAMPLES:
        wanted = bool(re.search(re.sub(r"(?<!\\)\$$", r"\\Z", pattern), sample, re.ASCII))
        if "\n" in sample and not (pattern.startswith("^") and pattern.endswith("$")):
            continue  # what stands around an unanchored match is kept to one line
        assert bool(compiled.fullmatch(sample)) == wanted, sample


def test_an_anchored_alternative_is_anchored_as_a_whole():
    compiled = as_regex(gbnf_of("^a|b$"))
    assert [bool(compiled.fullmatch(s)) for s in ("a", "b", "ab", "c")] == [True, True, False, False]


@pytest.mark.parametrize(
    "pattern", ["(?=a)", "(?<n>a)", r"(a)\1", r"\bword", "(a", "a)", "[a", "[]", "*a", "a^b", "a$b", "\\", r"\u12"]
)
def test_a_pattern_without_equivalent_is_refused_by_name(pattern):
    with pytest.raises(UnsupportedRequest, match=r"^pattern "):
        gbnf_of(pattern)


@given(st.text(alphabet=string.printable + "äß€🙂\x00\x7f\u2028"))
def test_a_literal_is_itself(text):
    assert as_regex(quoted(text)).fullmatch(text)


def _functions(**schemas):
    return functions([Tool(function=FunctionDef(name=name, parameters=schema)) for name, schema in schemas.items()])


def _object(required=None, **properties):
    return {"type": "object", "properties": properties, "required": list(properties) if required is None else required}


OFFERED = _functions(
    read=_object(path={"type": "string"}, start={"anyOf": [{"type": "integer"}, {"type": "null"}]}, required=["path"]),
    pick=_object(name={"type": "string", "enum": ["one", "two"]}),
    write=_object(code={"type": "string", "pattern": r"^return [^\n]+$"}),
    set=_object(level={"type": "number"}, on={"type": "boolean"}, mode={"enum": [1, "fast", None]}),
    finish={},
)


@pytest.mark.parametrize(
    "call",
    [
        *["read\npath: a.py", "read\npath: a.py\nstart: 12", "read\npath: a.py\nstart: -3", "pick\ntwo", "finish"],
        *["write\nreturn x * 2", "set\nlevel: 0.5\non: true\nmode: 1", "set\nlevel: -3\non: false\nmode: fast"],
        "set\nlevel: 0\non: true\nmode: null",
    ],
)
def test_a_call_that_fits_a_schema_can_be_written(call):
    assert as_regex(tool_grammar(OFFERED, text=False)).fullmatch(call)


@pytest.mark.parametrize(
    "call",
    [
        *["", "read", "read\nstart: 1", "read\npath: a\nstart: 01", "read\npath: a\nstart: x", "pick\nthree", "pick"],
        *["write\nx * 2", "write\nreturn ", "write\nreturn a\nreturn b", "set\nlevel: 1", "finish\n", "finish now"],
        *["I will read it.", "other\nx"],
    ],
)
def test_nothing_else_can_be_written_where_a_call_is_required(call):
    assert not as_regex(tool_grammar(OFFERED, text=False)).fullmatch(call)


def test_a_line_of_text_can_be_written_where_no_call_is_required():
    assert as_regex(tool_grammar(OFFERED, text=True)).fullmatch("I will read it.")
    assert as_regex(tool_grammar(OFFERED, text=True)).fullmatch("pick\none")


@pytest.mark.parametrize(
    ("schema", "named"),
    [
        (_object(items={"type": "array"}), "tool.items"),
        (_object(a={"anyOf": [{"type": "string"}, {"type": "object"}]}), "tool.a"),
        ({"properties": []}, "tool"),
        ({"properties": {"a": 3}}, "tool"),
    ],
)
def test_arguments_without_a_text_form_are_refused_by_name(schema, named):
    with pytest.raises(UnsupportedRequest, match=re.escape(named)):
        _functions(tool=schema)
