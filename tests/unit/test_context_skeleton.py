"""Definitions with their lines in each language, and headings of other text."""

import pytest

from treadle.context.skeleton import MOST, definitions_of

SOURCES = {
    "a.py": (
        "import os\n\n@decorated\nclass A(B):\n    async def f(self):\n        def g(): ...\n\ntype T = int\n",
        [(4, 6, "A"), (5, 6, "f"), (6, 6, "g"), (8, 8, "T")],
    ),
    "a.js": (
        "function f() {}\nconst g = async (x) => x\nclass A { m() {} }\nA.prototype.h = function () {}\nexport const V = 1\n",
        [(1, 1, "f"), (2, 2, "g"), (3, 3, "A"), (4, 4, "h"), (5, 5, "V")],
    ),
    "a.ts": (
        "interface I { x: number }\nexport type T = I\nenum E { A }\nabstract class A {\n  m(): void {}\n}\ndeclare function f(): void\n",
        [(1, 1, "I"), (2, 2, "T"), (3, 3, "E"), (4, 6, "A"), (5, 5, "m"), (7, 7, "f")],
    ),
    "a.tsx": ("export const App = () => <div/>\n", [(1, 1, "App")]),
    "a.go": (
        "package a\n\ntype S struct {\n\tx int\n}\n\nfunc (s *S) M() {}\nfunc F() {\n}\n",
        [(3, 5, "S"), (7, 7, "M"), (8, 9, "F")],
    ),
    "a.rs": (
        "pub struct S;\nimpl S {\n    fn m(&self) {}\n}\nmacro_rules! made {\n    () => {\n        pub fn inner() {}\n    };\n}\nmod x;\n",
        [(1, 1, "S"), (2, 4, "S"), (3, 3, "m"), (5, 9, "made"), (7, 8, "inner"), (10, 10, "x")],
    ),
    "A.java": (
        "class A {\n  @Override\n  public String m() { return null; }\n  interface I {}\n}\nrecord R(int x) {}\n",
        [(1, 5, "A"), (3, 3, "m"), (4, 4, "I"), (6, 6, "R")],
    ),
    "a.c": (
        "#define MAX(a) a\nstruct s { int x; };\nstatic int\nf(void)\n{\n}\ntypedef struct { int y; } t;\n",
        [(1, 2, "MAX"), (2, 2, "s"), (4, 6, "f"), (7, 7, "t")],
    ),
    "a.cpp": (
        "namespace n {\nclass A {\n void m();\n};\nvoid A::m() {\n}\n}\n",
        [(1, 7, "n"), (2, 4, "A"), (3, 3, "m"), (5, 6, "m")],
    ),
    "a.rb": (
        "module M\n  class A\n    def m\n    end\n    def self.n; end\n  end\nend\n",
        [(1, 7, "M"), (2, 6, "A"), (3, 4, "m"), (5, 5, "n")],
    ),
    "a.h": ("class A {\npublic:\n void m();\n};\n", [(1, 4, "A"), (3, 3, "m")]),
    "a.sh": ("set -e\nbuild() {\n  :\n}\nfunction test {\n  :\n}\n", [(2, 4, "build"), (5, 8, "test")]),
}


@pytest.mark.req("AG-05")
@pytest.mark.parametrize("path", SOURCES)
def test_definitions_have_their_lines_and_names(path: str) -> None:
    text, wanted = SOURCES[path]
    found = definitions_of(path, text.encode())
    assert [(one.line, one.end, one.name) for one in found] == wanted
    lines = text.splitlines()
    assert [one.text for one in found] == [lines[line - 1].strip() for line, _, _ in wanted]


@pytest.mark.parametrize(
    ("path", "text", "wanted"),
    [
        ("a.md", "intro\n\n# One\ntext\n## Two\n", ["# One", "## Two"]),
        ("a.rst", "Title\n=====\n\ntext\n\nPart\n----\n", ["Title", "Part"]),
        ("a.toml", "x = 1\n[tool]\ny = 2\n[[many]]\n", ["[tool]", "[[many]]"]),
        ("a.yml", "on: push\njobs:\n  a: 1\n", ["on: push", "jobs:"]),
        ("notes", "\nfirst\n\nsecond\nthird\n", ["first", "second"]),
        ("empty.txt", "", []),
    ],
)
def test_other_text_has_headings_or_else_its_first_lines(path: str, text: str, wanted: list[str]) -> None:
    assert [one.text for one in definitions_of(path, text.encode())] == wanted


def test_broken_source_still_gives_what_can_be_read() -> None:
    assert [one.name for one in definitions_of("a.py", b"def f(:\n  (\n\ndef whole():\n    pass\n\xff\xfe")][
        -1
    ] == "whole"


def test_a_file_of_endless_definitions_is_cut() -> None:
    assert len(definitions_of("a.py", b"def f(): ...\n" * (MOST + 10))) == MOST


@pytest.mark.req("AG-05")
def test_what_the_grammar_loses_in_a_broken_file_is_found_by_its_keyword() -> None:
    source = """\
declare global {
  interface Request { query: { (): string ((
}
export class Hono<E extends Env = Env> extends base(<
> {
}
Request.prototype.query = function (this: Request, ??) {
}
"""
    found = {one.name: one.line for one in definitions_of("app.ts", source.encode())}
    assert (found["Hono"], found["query"]) == (4, 7)
    partly = b"def whole():\n    pass\n\nclass Lost(((\n    def one(self:\n"
    assert {"whole", "Lost"} <= {one.name for one in definitions_of("a.py", partly)}


@pytest.mark.req("AG-05")
def test_a_method_of_a_prototype_counts_although_it_is_cast() -> None:
    source = "export function get() {}\nRequest.prototype.query = function (this: Request) {\n} as Queries\n"
    assert [one.name for one in definitions_of("app.ts", source.encode())] == ["get", "query"]
