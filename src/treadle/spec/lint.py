"""Checks a loop file against the patterns: what an input needs must be produced, and pitfalls are named.

A key asks for its pattern. What the pattern takes in comes from outside (the task, the workspace, the model, a person) or
from another pattern that is at work. An input that nothing produces is an error, a pitfall is a warning.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

from treadle.core.errors import ToolErrorKind

from .loopfile import Finding, LoopFile
from .loopyaml import look, placed, said
from .patterns import OUTSIDE, Card, cards
from .pitfalls import PITFALLS

Severity = Literal["error", "warning"]


class Lint(NamedTuple):
    """Something found. `pattern`: the card that it goes against, empty where the file itself cannot be read."""

    severity: Severity
    finding: Finding
    pattern: str = ""


class Wire(NamedTuple):
    """A key that means nothing without another."""

    key: str
    needs: tuple[str, ...]  # paths, one of which must be there
    what: str


WIRES = (
    Wire("verify.timeout", ("verify.check",), "a check that it could end"),
    Wire("foundation.escalate_after", ("foundation.escalate_to",), "models to go on with"),
    Wire(
        "act.may_ask",
        ("act.allow",),
        "what is allowed already: without it everything is, and nothing is left to ask for",
    ),
    Wire("foundation.price", ("foundation.model", "verify.judge"), "a model that has this price"),
)


def lint(text: str) -> tuple[Lint, ...]:
    """Everything that is wrong with a loop file and everything that is risky, by line. Never raises for what a text may say."""
    file, faults = look(text)
    found = [Lint("error", one) for one in faults]
    if file is None:
        return tuple(found)
    keys = said(text)
    known = {one.path for one in faults}
    errors = [one for one in (*_unproduced(file, keys), *_wires(keys), *_drawn(file)) if one[0] not in known]
    warnings = [(path, f"{path} {words}", name) for name, rule in PITFALLS.items() for path, words in rule(file)]
    found += _placed(text, "error", errors) + _placed(text, "warning", warnings)
    return tuple(sorted(found, key=lambda one: (one.finding.line, one.finding.column, one.severity)))


def _placed(text: str, severity: Severity, rows: list[tuple[str, str, str]]) -> list[Lint]:
    findings = placed(text, [(path, words) for path, words, _ in rows])
    return [Lint(severity, one, row[2]) for one, row in zip(findings, rows, strict=True)]


def produced(file: LoopFile) -> set[str]:
    """What the file and the patterns that it sets to work produce: each pattern only once its own inputs are there."""
    found = {name for name in OUTSIDE if name != "model" or not file.act.agent_command}
    waiting = [card for card in cards() if at_work(card, file)]
    while ready := [card for card in waiting if found.issuperset(card.inputs)]:
        found.update(name for card in ready for name in card.outputs)
        waiting = [card for card in waiting if card not in ready]
    return found


def at_work(card: Card, file: LoopFile) -> bool:
    """Whether the file sets a pattern to work. Most are always there."""
    if file.act.agent_command:
        return False
    return {"model": True, "perceive": file.perceive is not None, "plan": file.control.plan}[card.when]


def _unproduced(file: LoopFile, keys: frozenset[str]) -> list[tuple[str, str, str]]:
    there = produced(file)
    found: list[tuple[str, str, str]] = []
    for card in cards():
        missing = [name for name in card.inputs if name not in there]
        asked = [key for key in card.keys if key in keys]
        asked = [key for key in asked if not any(key.startswith(f"{other}.") for other in asked)]
        for key in asked if missing else ():
            words = f"{key} needs {' and '.join(missing)}, and nothing here produces {'it' if len(missing) == 1 else 'them'}"
            found.append((key, f"{words}{_because(file)}", card.id))
    return found


def _because(file: LoopFile) -> str:
    if file.act.agent_command:
        return ": a command acts, and it brings its own model and tools. Leave one of the two out."
    return "."


def _wires(keys: frozenset[str]) -> list[tuple[str, str, str]]:
    lone = [wire for wire in WIRES if wire.key in keys and not keys.intersection(wire.needs)]
    return [(wire.key, f"{wire.key} needs {wire.what}. Add {' or '.join(wire.needs)}.", "") for wire in lone]


def _drawn(file: LoopFile) -> list[tuple[str, str, str]]:
    """Of the ways that are drawn: a state that one leaves must be reached by others, and errors must be of a known class."""
    edges, reached = file.canvas.edges, {"planning"}
    while more := {edge.target for edge in edges if edge.source in reached} - reached:
        reached |= more
    found: list[tuple[str, str, str]] = []
    for index, edge in enumerate(edges):
        path, kinds = f"canvas.edges.{index}", get_args(ToolErrorKind)
        if edge.source not in reached:
            words = f"leaves {edge.source}, and no way that is drawn leads there from planning. Draw one."
            found.append((path, f"{path} {words}", "agent-02"))
        if edge.kind and edge.kind not in kinds:
            words = f"is for errors of the class {edge.kind!r}, which nothing produces. Classes: {', '.join(kinds)}."
            found.append((path, f"{path} {words}", "agent-09"))
    return found
