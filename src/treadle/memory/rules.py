"""Scoped rules: directives for some paths, from AGENTS.md files and `.treadle/rules/*.md` (FR-15). They advise; they grant nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, cast

from treadle.core.errors import ConfigurationError

from .frontmatter import fault, read_document
from .skills import mounted

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

FOLDER = Path(".treadle") / "rules"
AGENTS = "AGENTS.md"
_LONGEST = 8_000  # characters of one rule in a prompt


@dataclass(frozen=True, slots=True)
class Rule:
    """A directive. Its id is its file, relative to the workspace."""

    id: str
    text: str
    globs: tuple[str, ...]
    spec: GitIgnoreSpec = field(compare=False)

    def matches(self, path: str) -> bool:
        """Whether it holds for a workspace-relative path."""
        return self.spec.match_file(path)

    def body(self) -> str:
        """As it stands in a message."""
        text = self.text if len(self.text) <= _LONGEST else f"{self.text[:_LONGEST]}\n[... clipped: read {self.id} ...]"
        return mounted("rule", self.id, text)


class RuleBook:
    """The rules of one workspace. Those of `.treadle/rules` are read now, an AGENTS.md when something is done at or below it."""

    def __init__(self, workspace: Path) -> None:
        self._root = workspace
        self._own = tuple(_own_rules(workspace))
        self._folders: dict[str, Rule | None] = {}

    def find(self, effects: Iterable[str]) -> list[Rule]:
        """The rules that hold for what was touched: those nearer the root first, then `.treadle/rules`."""
        paths = [target for kind, _, target in (effect.partition(" ") for effect in effects) if kind.startswith("fs.")]
        folders = sorted({str(folder) for path in paths for folder in _folders_of(path)})
        found = [rule for folder in folders if (rule := self._agents(folder)) is not None]
        return found + [rule for rule in self._own if any(rule.matches(path) for path in paths)]

    def get(self, rule_id: str) -> Rule | None:
        """A rule by its id; None where it is no longer there."""
        own = next((rule for rule in self._own if rule.id == rule_id), None)
        path = PurePosixPath(rule_id)
        return own or (self._agents(str(path.parent)) if path.name == AGENTS else None)

    def _agents(self, folder: str) -> Rule | None:
        if folder not in self._folders:
            self._folders[folder] = _agents_rule(self._root, folder)
        return self._folders[folder]


def _folders_of(path: str) -> list[PurePosixPath]:
    pure = PurePosixPath(path.removesuffix("/**"))
    if pure.is_absolute() or ".." in pure.parts:
        return []
    return [pure, *pure.parents]


def _agents_rule(root: Path, folder: str) -> Rule | None:
    """What the folder's AGENTS.md says of everything below it; an unreadable one says nothing."""
    file = root / folder / AGENTS
    try:
        if not file.is_file() or not file.resolve().is_relative_to(root.resolve()):
            return None
        text = read_document(file, required=False).body
    except (ConfigurationError, OSError, RuntimeError):
        return None
    globs = ("**",) if folder == "." else (f"{folder}/**",)
    name = AGENTS if folder == "." else f"{folder}/{AGENTS}"
    return Rule(name, text, globs, _spec(globs)) if text else None


def _spec(globs: tuple[str, ...]) -> GitIgnoreSpec:
    """ValueError for what is no pattern."""
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines(globs)


def _own_rules(root: Path) -> list[Rule]:
    """ConfigurationError names file and line."""
    rules: list[Rule] = []
    for file in sorted((root / FOLDER).glob("*.md")):
        document = read_document(file, required=True)
        given: object = document.values.get("globs")
        globs = [given] if isinstance(given, str) else cast("list[object]", given) if isinstance(given, list) else []
        line = document.lines.get("globs", 1)
        if not globs or not all(isinstance(glob, str) and glob.strip() for glob in globs):
            fault(file, line, "the front matter needs globs: a list of paths that the rule is for")
        texts = tuple(str(glob) for glob in globs)
        try:
            spec = _spec(texts)
        except ValueError as error:
            fault(file, line, f"globs holds what is no pattern: {error}")
        if not document.body:
            fault(file, 1, "has no body: what does the rule say?")
        rules.append(Rule(file.relative_to(root).as_posix(), document.body, texts, spec))
    return rules
