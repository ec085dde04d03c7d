"""The built-in tools as a model sees them (AG-23)."""

from __future__ import annotations

from typing import Any

from treadle.core.messages import CallKind
from treadle.ports.model import ToolDef

_Properties = dict[str, dict[str, Any]]
PATH: dict[str, Any] = {"type": "string", "minLength": 1, "description": "Relative to the workspace."}
_LINE: dict[str, Any] = {"type": "integer", "minimum": 1, "description": "A line, from 1, included."}
_TEXT: dict[str, Any] = {"type": "string"}


def define(name: str, kind: CallKind, description: str, required: _Properties, optional: _Properties) -> ToolDef:
    """A tool that takes these arguments and no others."""
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {**required, **optional},
        "required": list(required),
        "additionalProperties": False,
    }
    return ToolDef(name, description, schema, kind)


def workspace_tools(run_command: str, longest_timeout_s: float) -> tuple[ToolDef, ...]:
    """The tools of a workspace, sorted by name; `run_command` is that tool's description."""
    timeout = {"type": "number", "exclusiveMinimum": 0, "maximum": longest_timeout_s, "description": "Seconds."}
    pattern = {"type": "string", "minLength": 1}
    return (
        define(
            "edit_file",
            "mutating",
            "Replaces `old`, which must occur exactly once in the file, by `new`. Both exact, white space included.",
            {"path": PATH, "old": {"type": "string", "minLength": 1}, "new": _TEXT},
            {},
        ),
        define("git_diff", "read", "What differs from the last commit, in all or at one path.", {}, {"path": PATH}),
        define("git_status", "read", "The branch, and which files are changed or new.", {}, {}),
        define(
            "glob",
            "read",
            "Files whose path matches: `*` within a name, `**` over folders, `{a,b}` either. Without `/` at any depth. "
            "Leaves out what git ignores.",
            {"pattern": pattern},
            {},
        ),
        define("list_dir", "read", "What a folder holds; the workspace itself without `path`.", {}, {"path": PATH}),
        define(
            "read_file",
            "read",
            "The text of a file; with `start` or `end` only those lines.",
            {"path": PATH},
            {"start": _LINE, "end": _LINE},
        ),
        define(
            "run_command",
            "mutating",
            run_command,
            {"command": {"type": "string", "minLength": 1}},
            {"timeout_s": timeout},
        ),
        define(
            "search",
            "read",
            "Lines that match a regular expression, as path:line:text, in all or below one path. "
            "Leaves out what git ignores.",
            {"pattern": pattern},
            {"path": PATH},
        ),
        define(
            "write_file",
            "mutating",
            "Writes a whole file, new or in place of the old one; missing folders are made.",
            {"path": PATH, "text": _TEXT},
            {},
        ),
    )


CONTROL_TOOLS = (
    define(
        "ask_person",
        "ask",
        "Asks the person and waits for the answer. Only for what you cannot find out or decide yourself.",
        {"question": {"type": "string", "minLength": 1}},
        {"choices": {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 2}},
    ),
    define(
        "finish",
        "finish",
        "Ends the work. Say what you did and how you know that it works.",
        {"summary": {"type": "string", "minLength": 1}},
        {},
    ),
    define(
        "read_output",
        "read",
        "The whole output of an earlier call that was clipped: a range of lines, or the lines that hold a text.",
        {"call_id": {"type": "string", "minLength": 1}},
        {
            "start": _LINE,
            "end": _LINE,
            "search": {"type": "string", "minLength": 1, "description": "Plain text, any case."},
        },
    ),
)
