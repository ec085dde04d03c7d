"""kit.py as data: its functions, what they return, a body exchanged for another, and what may become one."""

from __future__ import annotations

import ast
import builtins
import warnings
from typing import NamedTuple

_NAMES = """
    abs all any bool chr dict divmod enumerate filter float frozenset int isinstance len list map max min ord pow range
    reversed round set sorted str sum tuple zip
"""
SAFE_BUILTINS = frozenset(_NAMES.split())  # none of them reaches a file, a process or the interpreter


class Function(NamedTuple):
    """A function of one statement. `expression` is what it returns; empty where its body is missing."""

    name: str
    parameters: str
    doc: str
    expression: str
    first_line: int  # of its statement, from 1
    last_line: int

    @property
    def head(self) -> str:
        """Everything before the expression."""
        return f"def {self.name}({self.parameters}):\n    return "


def functions(source: str) -> dict[str, Function]:
    """The functions by name, in the order of the file. SyntaxError where it is no Python."""
    found = (_function(source, node) for node in ast.parse(source).body if isinstance(node, ast.FunctionDef))
    return {function.name: function for function in found}


def _function(source: str, node: ast.FunctionDef) -> Function:
    statement = node.body[-1]
    value = statement.value if isinstance(statement, ast.Return) else None
    return Function(
        name=node.name,
        parameters=ast.unparse(node.args),
        doc=(ast.get_docstring(node) or "").partition("\n")[0],
        expression=(value and ast.get_source_segment(source, value)) or "",
        first_line=statement.lineno,
        last_line=statement.end_lineno or statement.lineno,
    )


def with_body(source: str, function: Function, expression: str) -> str:
    """The source with another expression in that function."""
    lines = source.splitlines()
    lines[function.first_line - 1 : function.last_line] = [f"    return {expression}"]
    return "\n".join(lines) + "\n"


def objection(function: Function, expression: str) -> str:
    """Why this cannot be the function's body: it is no expression, or reaches beyond its arguments. Empty: it can."""
    try:
        tree = ast.parse(expression, mode="eval")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # odd code is the tests' business
            compile(function.head + expression, "kit.py", "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return "this is not a Python expression."
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    known = {node.id for node in names if isinstance(node.ctx, ast.Store)} | _arguments(tree, function)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_"):
            return f"{node.attr} is not allowed here."
    for node in names:
        if node.id == function.name:
            return "the function must not call itself."
        if node.id not in known and node.id not in SAFE_BUILTINS:
            return f"{node.id} is not {'allowed' if hasattr(builtins, node.id) else 'known'} here."
    return ""


def _arguments(tree: ast.AST, function: Function) -> set[str]:
    head = ast.parse(function.head + "0")
    return {node.arg for part in (head, tree) for node in ast.walk(part) if isinstance(node, ast.arg)}
