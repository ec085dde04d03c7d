"""Skills: folders with a SKILL.md. Their names and descriptions stand in the static prompt; a body is loaded when asked for (AG-25)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from treadle.core.errors import ConfigurationError, ToolError
from treadle.core.messages import ToolCall
from treadle.kernel.carried import ACTIVATE
from treadle.ports.model import ToolDef
from treadle.ports.toolset import ToolContext, ToolOutput, Toolset

from .frontmatter import fault, read_document

FILE = "SKILL.md"
READ = "read_skill_file"
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_LONGEST_NAME, _LONGEST_DESCRIPTION = 64, 1024
_MOST_SKILLS, _MOST_FILES = 200, 50
_LARGEST_FILE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Skill:
    """One skill. Its body is read when it is loaded, so that editing it needs no new run."""

    name: str
    description: str
    folder: Path

    def body(self) -> str:
        """The body, between lines by which it is found again. ConfigurationError where the file is no longer good."""
        text = read_document(self.folder / FILE, required=True).body
        others = self._files()
        more = f"\n\nFiles of this skill, for {READ}: {', '.join(others)}" if others else ""
        return mounted("skill", self.name, text + more)

    def _files(self) -> list[str]:
        found = (path for path in sorted(self.folder.rglob("*")) if path.is_file() and path.name != FILE)
        return [path.relative_to(self.folder).as_posix() for path, _ in zip(found, range(_MOST_FILES), strict=False)]


def mounted(what: str, name: str, text: str) -> str:
    """A body as it stands in a message: whole, or its last line is missing."""
    return f"[{what} {name}]\n{text}\n{end_of(what, name)}"


def end_of(what: str, name: str) -> str:
    """The last line of a body."""
    return f"[end of {what} {name}]"


def read_skills(folders: Iterable[Path]) -> dict[str, Skill]:
    """The skills of these folders by name, sorted; of two with one name the earlier folder's. ConfigurationError names file and line."""
    found: dict[str, Skill] = {}
    for folder in folders:
        try:
            files = sorted(folder.glob(f"*/{FILE}"))
        except OSError as error:
            raise ConfigurationError(f"{folder}: cannot be read: {error.strerror}") from error
        for file in files:
            skill = _skill(file)
            found.setdefault(skill.name, skill)
    if len(found) > _MOST_SKILLS:
        raise ConfigurationError(f"There are {len(found)} skills; a prompt holds the names of at most {_MOST_SKILLS}.")
    return dict(sorted(found.items()))


def _skill(file: Path) -> Skill:
    document = read_document(file, required=True)
    texts: dict[str, str] = {}
    for key, limit in (("name", _LONGEST_NAME), ("description", _LONGEST_DESCRIPTION)):
        value, line = document.values.get(key), document.lines.get(key, 1)
        if not isinstance(value, str) or not value.strip():
            fault(file, line, f"the front matter needs a {key}, a text")
        if len(value) > limit:
            fault(file, line, f"the {key} has {len(value):,} characters; {limit:,} are allowed")
        texts[key] = " ".join(str(value).split())
    if not _NAME.fullmatch(texts["name"]):
        fault(file, document.lines.get("name", 1), f"the name {texts['name']!r} must be lower-case words joined by -")
    if not document.body:
        fault(file, 1, "has no body: what should one know or do?")
    return Skill(texts["name"], texts["description"], file.parent)


def catalogue(skills: Mapping[str, Skill]) -> str:
    """For the static prompt; the same bytes as long as the skills are the same."""
    lines = [f"- {skill.name}: {skill.description}" for skill in skills.values()]
    head = f"Skills: know-how for certain kinds of work. When a description fits, load it with {ACTIVATE}(name) before you start."
    return "\n".join([head, *lines])


class SkillTools(Toolset):
    """activate_skill and read_skill_file. A skill gives know-how, never a permission."""

    def __init__(self, skills: Mapping[str, Skill]) -> None:
        self._skills = skills
        name: dict[str, Any] = {"type": "string", "enum": list(skills)}
        path: dict[str, Any] = {"type": "string", "minLength": 1, "description": "As the skill's body names it."}
        self._tools = (
            ToolDef(ACTIVATE, "Loads the body of a skill.", _schema({"name": name}), "read"),
            ToolDef(READ, "Reads a file that belongs to a skill.", _schema({"name": name, "path": path}), "read"),
        )

    def tools(self) -> tuple[ToolDef, ...]:
        return self._tools

    async def run(self, call: ToolCall, context: ToolContext) -> ToolOutput:
        args = call.args if isinstance(call.args, dict) else {}
        skill = self._skills[str(args["name"])]
        try:
            return ToolOutput(skill.body() if call.name == ACTIVATE else _content(skill, str(args["path"])))
        except ConfigurationError as error:
            raise ToolError("not-found", str(error), hint="Do without this skill.") from error


def _content(skill: Skill, path: str) -> str:
    """A file of the skill's own folder, and of no other."""
    file = (skill.folder / path).resolve()
    if not file.is_relative_to(skill.folder.resolve()):
        raise ToolError("safety", f"{path} is outside the skill {skill.name}", hint="Use read_file for the workspace.")
    try:
        if not file.is_file():
            raise ToolError("not-found", f"{skill.name} has no file {path}", hint="Its body names its files.")
        if file.stat().st_size > _LARGEST_FILE:
            raise ToolError("argument", f"{path} has more than {_LARGEST_FILE // 1024} KiB", hint="Use another file.")
        return file.read_text(encoding="utf-8", errors="replace")
    except (OSError, ValueError) as error:
        raise ToolError("not-found", f"{skill.name} has no file {path}: {error}") from error


def _schema(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
