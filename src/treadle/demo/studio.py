"""An example loop for `treadle studio --example`: a scripted model mends a small module, slowly enough to be watched and steered.

The model is a script, everything else is real: files, commands, checks, records, budgets. It looks around, calls a tool wrongly,
asks a question, is rejected once, and is accepted in its second round.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from treadle.testing import Turn

PAUSE_S = 1.1  # between two answers of the model
TASK = "Make the flaky configuration tests pass. Leave the public API alone."
FILES = {
    "config.py": '''"""Reads settings: the environment wins over the file."""


def merge(defaults: dict, file: dict, environment: dict) -> dict:
    return {**environment, **file, **defaults}


def read(text: str) -> dict:
    return dict(line.split("=") for line in text.splitlines())
''',
    "test_config.py": """import unittest

from config import merge, read


class Merging(unittest.TestCase):
    def test_environment_wins(self):
        self.assertEqual(merge({"a": 1}, {"a": 2}, {"a": 3}), {"a": 3})

    def test_file_wins_over_defaults(self):
        self.assertEqual(merge({"a": 1}, {"a": 2}, {}), {"a": 2})


class Reading(unittest.TestCase):
    def test_spaces_and_comments(self):
        self.assertEqual(read("a = 1\\n# note\\n\\nb=2=3"), {"a": "1", "b": "2=3"})
""",
}
CHECK = "python3 -m unittest -q"
LOOP = """\
# The sample loop of the studio. `treadle run --loop FILE` runs it, too: name a model.
treadle: 1
name: Fix flaky config tests
task: {task}
control:
  max_rounds: 4
  plan: true
  max_turns: 24
  max_cost: 2
  max_time: 30m
  warn_at: [80, 90]
foundation:
  model: {model}
{endpoint}perceive:
  budget: 2000
act:
  protect: ["test_*.py"]
verify:
  check: {check}
  timeout: 60s
canvas:
  nodes:
    planning: {{x: 68, y: 59}}
    executing: {{x: 353, y: 53}}
    error_recovery: {{x: 530, y: 191}}
    completed: {{x: 705, y: 28}}
    failed: {{x: 705, y: 118}}
  edges:
    - {{from: planning, to: executing}}
    - {{from: executing, to: completed}}
    - {{from: executing, to: error_recovery, kind: timeout}}
    - {{from: error_recovery, to: executing}}
"""


def sample(base_url: str = "") -> str:
    """The loop file. With an endpoint it is the one that the example runs on."""
    endpoint = f"  base_url: {base_url}\n  price: 1,4\n" if base_url else ""
    return LOOP.format(task=TASK, model="openai:scripted", endpoint=endpoint, check=CHECK)


def prepare(workspace: Path) -> None:
    """Writes the module that is to be mended, and the sample loop; what is there already is left alone."""
    for name, text in FILES.items():
        if not (file := workspace / name).exists():
            file.write_text(text)
    loops = workspace / ".treadle" / "loops"
    loops.mkdir(parents=True, exist_ok=True)
    if not (file := loops / "sample.yaml").exists():
        file.write_text(sample())


def answer(body: dict[str, Any], *, pause_s: float = PAUSE_S) -> Turn:
    """What the model says next: by how often it has spoken."""
    time.sleep(pause_s)
    spoken = sum(message["role"] == "assistant" for message in body["messages"])
    return STEPS[min(spoken, len(STEPS) - 1)]


def _turn(text: str, *calls: tuple[str, dict[str, Any]]) -> Turn:
    return Turn(text=text, calls=calls)


RUN = ("run_command", {"command": CHECK})
LISTING = "python3 -c \"print('x = 1\\\\n' * 20000)\""
PLAN: list[dict[str, Any]] = [
    {"title": "Let the environment win in merge()", "check": {"tool": "edit_file"}},
    {"title": "Settle what an odd line means", "check": LISTING},
]
STEPS: Sequence[Turn] = (
    _turn("I look at what there is first.", ("list_dir", {}), ("glob", {"pattern": "*.py"})),
    _turn(
        "Reading the module and its tests.",
        ("read_file", {"path": "config.py"}),
        ("read_file", {"path": "test_config.py"}),
    ),
    _turn("Which tests fail?", RUN),
    _turn("A plan for you to look at.", ("write_plan", {"steps": PLAN})),
    _turn("Is there a settings file?", ("read_file", {"path": "settings.toml"})),
    _turn(
        "There is none. Searching for callers.", ("search", {"pattern": "merge"}), ("read_file", {"path": "config.py"})
    ),
    _turn("Editing.", ("edit_file", {"path": "config.py"})),
    _turn(
        "That call lacked its arguments. Again, whole.",
        (
            "edit_file",
            {
                "path": "config.py",
                "old": "{**environment, **file, **defaults}",
                "new": "{**defaults, **file, **environment}",
            },
        ),
    ),
    _turn("Does it hold?", RUN, ("git_status", {})),
    _turn(
        "One decision is yours.",
        (
            "ask_person",
            {"question": "Should a line without '=' be skipped, or refused?", "choices": ["skip", "refuse"]},
        ),
    ),
    _turn(
        "A long listing, kept whole in the store.",
        ("run_command", {"command": LISTING}),
    ),
    _turn("The order is right now.", ("finish", {"summary": "merge() lets the environment win."})),
    _turn("The reader is next.", ("read_file", {"path": "config.py"})),
    _turn(
        "It must strip, skip comments, and split once.",
        (
            "edit_file",
            {
                "path": "config.py",
                "old": 'return dict(line.split("=") for line in text.splitlines())',
                "new": (
                    'pairs = (line.split("=", 1) for line in text.splitlines() if "=" in line and line[0] != "#")\n'
                    "    return {name.strip(): value.strip() for name, value in pairs}"
                ),
            },
        ),
    ),
    _turn("Once more, all of them.", RUN, ("git_diff", {})),
    _turn("All pass.", ("finish", {"summary": "merge() and read() do what the tests say."})),
)
