"""A definition's children: as they are when its loop runs, and the tools by which its agent forks them (FR-22)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from treadle.spec.definitions import Agent, Child, Loop
from treadle.tools.forking import ForkTools

if TYPE_CHECKING:
    from .build import Built


def children_of(loop: Loop, workspace: Path | None) -> dict[str, Loop]:
    """By name: in their parent's workspace, its protected paths and its sandbox included, unless they have one of their own."""
    if not isinstance(loop.act, Agent):
        return {}
    return {name: inside(child.loop, loop, workspace) for name, child in loop.act.children.items()}


def inside(child: Loop, parent: Loop, workspace: Path | None) -> Loop:
    """One of them."""
    if child.workspace is not None or workspace is None:
        return child
    return replace(
        child,
        workspace=workspace,
        protect=tuple(dict.fromkeys((*parent.protect, *child.protect))),
        sandbox=parent.sandbox or child.sandbox,
    )


def fork_tools(children: Mapping[str, Child], built: Mapping[str, Built]) -> ForkTools:
    """What the agent is offered."""
    return ForkTools(
        {name: child.about for name, child in children.items()},
        answers=any(child.answers == "agent" for child in children.values()),
        identities={name: one.fingerprint for name, one in sorted(built.items())},
    )


def first_unpriced(built: Mapping[str, Built]) -> str:
    """A model of a child whose price is unknown."""
    return next((one.unpriced for one in built.values() if one.unpriced), "")
