"""Writes the parts of docs/ that are made from the code, or says with --check which are out of date."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

import treadle
import treadle.testing
from treadle.core.endings import ENDINGS, STORE_EXIT, USAGE_EXIT
from treadle.kernel.states import AGENT_TRANSITIONS
from treadle.spec.patterns import cards, objects

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
NONE = "\N{EN DASH}"
PUBLIC = {
    "Run and go on": "run run_sync resume resume_sync Result log_tail TreadleError Usage",
    "What a loop is made of": "Loop Agent Child Rung Command Judge Person Section RoundContext Verdict accept reject finished",
    "Tools": "tool Toolset MCPServer",
    "Workflows": (
        "Workflow Task RunTask LoopTask ApprovalTask PauseTask Asks Budget OnQuota Retry TaskContext LoopTaskContext"
        " QuotaReached Decision WorkflowResult run_workflow resume_workflow speculate Speculated Lost"
        " LoopExhausted ChildFailed NoneAccepted"
    ),
}
"""The public names of the package, by what they are for."""


def endings() -> str:
    """The table of endings."""
    lines = [
        "# Endings and exit codes",
        "",
        "Every execution ends or rests in one of these rows; command line and library read the same table (`treadle.core.endings`).",
        "A *success* is accepted work; a *nonfailure* says nothing against the work (a budget that ran out).",
        "",
        "| What happened | Status | Code | Exit | Success | Nonfailure | Goes on by |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in ENDINGS:
        exit_code = "130, 143, 129" if row.code == "interrupted" else NONE if row.exit is None else str(row.exit)
        goes_on = ", ".join(row.goes_on_by) or NONE
        lines.append(
            f"| {row.banner} | {row.status} | {row.code} | {exit_code} | {_word(row.success)} | {_word(row.nonfailure)} | {goes_on} |"
        )
    beside = [
        "",
        f"Exit code {USAGE_EXIT} is wrong usage or configuration: nothing was started.",
        f"Exit code {STORE_EXIT} is a store that failed under way: this process does not know how the execution stands, and nothing",
        "that was committed is lost. Mend the store, then resume. Exit code 1 without an ending is a fault that stderr names.",
        "",
        "With `--json`, a command that ends without the document it was to print prints",
        '`{"error": {"kind", "message", "next"}, "exit_code"}` instead; `next` is what to do, as one command or sentence.',
        "A command whose reader goes away (`treadle log last | head`) ends with 141, as by SIGPIPE.",
        "",
    ]
    return "\n".join([*lines, *beside])


def _word(value: bool | None) -> str:
    return NONE if value is None else "yes" if value else "no"


def states(text: str) -> str:
    """The page about the loop with today's table of the agent's states."""
    rows = ["| From | To |", "| --- | --- |", *(f"| {a} | {_targets(b)} |" for a, b in AGENT_TRANSITIONS.items())]
    marks = "<!-- table: AGENT_TRANSITIONS -->\n", "\n<!-- end -->"
    return re.sub(
        re.escape(marks[0]) + ".*?" + re.escape(marks[1]), marks[0] + "\n".join(rows) + marks[1], text, flags=re.DOTALL
    )


def loop_objects() -> str:
    """Which type does the work of each loop object, and which patterns take it in or give it on."""
    lines = [
        "# Loop objects",
        "",
        "The patterns that a loop is made of (`treadle patterns`) hand 29 objects to one another. This page says which type does the work",
        "of each, and what works with it. It is made from the package's own data by `python tools/docs.py`; a test looks up every name.",
        "",
        "| Loop object | Type | What it is | With | Patterns |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name, one in objects().items():
        where = ", ".join(card.id.removeprefix("agent-") for card in cards() if name in (*card.inputs, *card.outputs))
        more = ", ".join(f"`{_named(other)}`" for other in one.others) or NONE
        lines.append(f"| {name} | `{_named(one.type)}` | {one.does} | {more} | {where} |")
    return "\n".join([*lines, ""])


def python() -> str:
    """The public names, whose descriptions the site takes from the code."""
    lines = [
        "# Python",
        "",
        "Everything that `treadle` exports, and the test kit. The descriptions are the docstrings of the code: `make docs` puts them here.",
    ]
    grouped = {name for names in PUBLIC.values() for name in names.split()}
    if missing := set(treadle.__all__) - grouped - {"__version__"}:
        raise SystemExit(f"tools/docs.py does not say where on the page about Python these belong: {sorted(missing)}")
    groups = {heading: [f"treadle.{name}" for name in names.split()] for heading, names in PUBLIC.items()}
    groups["Tests"] = [f"treadle.testing.{name}" for name in treadle.testing.__all__]
    groups["Errors"] = ["treadle.core.errors"]
    for heading, names in groups.items():
        lines += ["", f"## {heading}", *(f"\n::: {name}" for name in names)]
    return "\n".join([*lines, ""])


def _named(path: str) -> str:
    return path.removeprefix("treadle.").replace(":", ".")


def _targets(names: frozenset[str]) -> str:
    return ", ".join(name for name in AGENT_TRANSITIONS if name in names)


def pages() -> dict[Path, str]:
    """Each page that is made, with what should stand in it."""
    loop = DOCS / "explanation" / "loop.md"
    return {
        DOCS / "reference" / "endings.md": endings(),
        DOCS / "reference" / "loop-objects.md": loop_objects(),
        DOCS / "reference" / "python.md": python(),
        loop: states(loop.read_text(encoding="utf-8")),
    }


def main() -> int:
    """0 where all is up to date, or has been written."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    old = [path for path, text in pages().items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    for path in old:
        if args.check:
            print(f"{path.relative_to(ROOT)} is out of date: run tools/docs.py")
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(pages()[path], encoding="utf-8")
            print(f"wrote {path.relative_to(ROOT)}")
    return 1 if args.check and old else 0


if __name__ == "__main__":
    sys.exit(main())
