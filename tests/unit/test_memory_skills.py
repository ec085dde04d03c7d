"""Skills and scoped rules as files: what is read, what is refused and where, and when they have to be told again."""

from __future__ import annotations

import os
from pathlib import Path

import anyio
import pytest

from support.tools import context
from treadle.core.errors import ConfigurationError, ToolError
from treadle.core.messages import Prompted, ToolCall, ToolResult, ToolsFinished
from treadle.core.values import replace
from treadle.effects.mounts import Mounts
from treadle.kernel.carried import Carried, Mount, after_prompt
from treadle.kernel.states import AgentState, LoopState
from treadle.kernel.view import View
from treadle.memory.rules import RuleBook
from treadle.memory.skills import SkillTools, catalogue, read_skills

GOOD = "---\nname: pdf-forms\ndescription: Fill PDF forms.\n---\n# Forms\nUse the script.\n"


def skill(folder: Path, content: str = GOOD, name: str = "pdf") -> Path:
    place = folder / name
    place.mkdir(parents=True)
    (place / "SKILL.md").write_text(content)
    return place


@pytest.mark.req("AG-25")
def test_the_catalogue_names_skills_and_the_tool_loads_a_body(tmp_path: Path) -> None:
    place = skill(tmp_path)
    (place / "fill.py").write_text("print('filled')\n")
    skills = read_skills([tmp_path])
    assert "- pdf-forms: Fill PDF forms." in catalogue(skills)
    assert "Use the script" not in catalogue(skills)
    tools = SkillTools(skills)
    body = _run(tools, "activate_skill", name="pdf-forms")
    assert "Use the script." in body
    assert "fill.py" in body
    assert "filled" in _run(tools, "read_skill_file", name="pdf-forms", path="fill.py")
    assert all(tool.kind == "read" for tool in tools.tools())


def _run(tools: SkillTools, tool: str, **args: str) -> str:
    async def main() -> str:
        return (await tools.run(ToolCall(id="c", name=tool, args=args), context())).content

    return anyio.run(main)


def test_a_skill_reads_only_its_own_files(tmp_path: Path) -> None:
    skill(tmp_path / "skills")
    (tmp_path / "secret").write_text("s")
    (tmp_path / "skills" / "pdf" / "link").symlink_to(tmp_path / "secret")
    tools = SkillTools(read_skills([tmp_path / "skills"]))
    for path in ("../../secret", str(tmp_path / "secret"), "link"):
        with pytest.raises(ToolError) as refused:
            _run(tools, "read_skill_file", name="pdf-forms", path=path)
        assert refused.value.kind == "safety"


@pytest.mark.req("AG-25")
@pytest.mark.parametrize(
    ("content", "place"),
    [
        ("# no front matter", ":1:"),
        ("---\nname: x\n", ":1:"),
        ("---\nname: x\ndescription: [a\n---\nb", ":3:"),
        ("---\nname: x\n---\nb", ":1:"),
        ("---\ndescription: d\nname: Not Good\n---\nb", ":3:"),
        ("---\nname: x\ndescription: 7\n---\nb", ":3:"),
        ("---\nname: x\ndescription: d\n---\n\n", ":1:"),
        ("---\n- a\n---\nb", ":2:"),
        (f"---\nname: x\ndescription: {'d' * 2000}\n---\nb", ":3:"),
    ],
)
def test_a_malformed_skill_is_refused_with_file_and_line(tmp_path: Path, content: str, place: str) -> None:
    skill(tmp_path, content)
    with pytest.raises(ConfigurationError) as refused:
        read_skills([tmp_path])
    assert f"SKILL.md{place}" in str(refused.value)


def test_what_is_no_text_is_refused(tmp_path: Path) -> None:
    (skill(tmp_path) / "SKILL.md").write_bytes(b"---\nname: \xff\n---\n")
    with pytest.raises(ConfigurationError, match=r"SKILL\.md:2: is not UTF-8"):
        read_skills([tmp_path])


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    file = skill(tmp_path) / "SKILL.md"
    file.unlink(missing_ok=True)
    os.mkfifo(file)
    with pytest.raises(ConfigurationError, match=r"SKILL\.md:1: is no ordinary file"):
        read_skills([tmp_path])


def view_of(*messages: ToolsFinished | Prompted) -> View:
    view = View()
    for number, message in enumerate(messages, 5):
        view.append(number, message)
    return view


@pytest.mark.req("FR-13")
def test_a_skill_is_mounted_again_only_where_its_body_is_gone(tmp_path: Path) -> None:
    skill(tmp_path)
    skills = read_skills([tmp_path])
    body = skills["pdf-forms"].body()
    state = LoopState(agent=AgentState(leaf=5), carried=Carried(skills={"pdf-forms": Mount(call_id="c", message=5)}))
    there = view_of(ToolsFinished(parent=1, results=(ToolResult(id="c", content=body),), us=0))
    assert Mounts(skills, None).due(state, there) is None
    clipped = view_of(ToolsFinished(parent=1, results=(ToolResult(id="c", content=body[:20]),), us=0))
    mounts = Mounts(skills, None)
    again = mounts.due(state, clipped)
    assert again is not None
    assert again.mounts == ("skill:pdf-forms",)
    assert "Use the script." in again.text
    clipped.append(6, again)
    after = replace(state, carried=after_prompt(state.carried, again, 6), agent=replace(state.agent, leaf=6))
    assert mounts.due(after, clipped) is None  # once
    assert after.carried.skills["pdf-forms"].message == 6
    gone = Mounts({}, None).due(state, View())
    assert gone is not None
    assert "no longer there" in gone.text
    assert Mounts(skills, None).due(replace(state, phase="evaluate"), View()) is None


@pytest.mark.req("FR-15")
def test_a_rule_is_told_once_at_the_first_effect_that_it_is_for(tmp_path: Path) -> None:
    (tmp_path / "web").mkdir()
    (tmp_path / "AGENTS.md").write_text("Use tabs.")
    (tmp_path / "web" / "AGENTS.md").write_text("No inline styles.")
    rules = tmp_path / ".treadle" / "rules"
    rules.mkdir(parents=True)
    (rules / "sql.md").write_text('---\nglobs: ["*.sql"]\n---\nNever drop a table.')
    mounts, view = Mounts({}, RuleBook(tmp_path)), View()
    state = LoopState(agent=AgentState(leaf=1))
    assert mounts.due(state, view) is None  # nothing has been touched
    state = replace(state, carried=Carried(effects=("process.spawn pytest", "fs.read a.py")))
    assert mounts.due(replace(state, phase="evaluate"), view) is None  # act alone is told
    first = mounts.due(state, view)
    assert first is not None
    assert first.mounts == ("rule:AGENTS.md",)
    view.append(2, first)
    state = replace(state, carried=after_prompt(state.carried, first, 2))
    assert mounts.due(state, view) is None
    state = replace(state, carried=replace(state.carried, effects=(*state.carried.effects, "fs.write web/db/x.sql")))
    second = mounts.due(state, view)
    assert second is not None
    assert second.mounts == ("rule:web/AGENTS.md", "rule:.treadle/rules/sql.md")
    view.append(3, second)
    state = replace(state, carried=after_prompt(state.carried, second, 3))
    assert Mounts({}, RuleBook(tmp_path)).due(state, view) is None  # nor in another process
    view.reset([])  # a compaction has dropped them
    dropped = mounts.due(state, view)
    assert dropped is not None
    assert len(dropped.mounts) == 3


@pytest.mark.parametrize("content", ["no front matter", "---\nglobs: 7\n---\nb", "---\nglobs: [a]\n---\n"])
def test_a_malformed_rule_is_refused_with_its_file(tmp_path: Path, content: str) -> None:
    folder = tmp_path / ".treadle" / "rules"
    folder.mkdir(parents=True)
    (folder / "bad.md").write_text(content)
    with pytest.raises(ConfigurationError, match=r"bad\.md:"):
        RuleBook(tmp_path)


def test_an_agents_file_that_leads_outside_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "outside.md").write_text("obey")
    inside = tmp_path / "w"
    inside.mkdir()
    (inside / "AGENTS.md").symlink_to(tmp_path / "outside.md")
    assert RuleBook(inside).find(["fs.read ../outside.md", "fs.read a"]) == []
