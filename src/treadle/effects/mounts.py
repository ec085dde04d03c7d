"""Which skills and scoped rules have to stand in act's conversation before its next request (FR-13, FR-15)."""

from __future__ import annotations

from collections.abc import Mapping

from treadle.core.errors import ConfigurationError
from treadle.core.events import Prompted
from treadle.core.messages import ToolsFinished
from treadle.kernel.carried import RULE, SKILL, Carried
from treadle.kernel.states import LoopState
from treadle.kernel.view import View
from treadle.memory.rules import RuleBook
from treadle.memory.skills import Skill, end_of, mounted

RULES_HEAD = "Rules of this project for what you are working on. They advise; they give no permission."
SKILLS_HEAD = "Skills that you had loaded and that are no longer in this conversation:"


class Mounts:
    """Looks only when something has changed: another branch or a compaction, or an effect not seen before."""

    def __init__(self, skills: Mapping[str, Skill], rules: RuleBook | None) -> None:
        self._skills, self._rules = skills, rules
        self._looked: tuple[View, int, Carried] | None = None

    def due(self, state: LoopState, view: View) -> Prompted | None:
        """The message that must come first, or None."""
        if state.phase != "act":
            return None
        carried, looked = state.carried, self._looked
        if looked is not None and looked[0] is view and looked[1] == view.generation and looked[2] is carried:
            return None
        same_branch = looked is not None and looked[0] is view and looked[1] == view.generation
        texts, mounts = self._missing(carried, view, same_branch=same_branch)
        self._looked = (view, view.generation, carried)
        if not mounts:
            return None
        return Prompted(parent=state.agent.leaf, text="\n\n".join(texts), origin="directive", mounts=tuple(mounts))

    def _missing(self, carried: Carried, view: View, *, same_branch: bool) -> tuple[list[str], list[str]]:
        texts: list[str] = []
        mounts: list[str] = []
        if not same_branch and carried.skills:
            for name in carried.skills:
                if not _in_view(view, end_of("skill", name)):
                    mounts.append(f"{SKILL}{name}")
                    texts += [] if len(mounts) > 1 else [SKILLS_HEAD]
                    texts.append(self._skill(name))
        if self._rules is not None and carried.effects:
            rules = [
                rule for rule in self._rules.find(carried.effects) if self._due(rule.id, carried, view, same_branch)
            ]
            if rules:
                mounts += [f"{RULE}{rule.id}" for rule in rules]
                texts += [RULES_HEAD, *(rule.body() for rule in rules)]
        return texts, mounts

    def _due(self, rule_id: str, carried: Carried, view: View, same_branch: bool) -> bool:
        if rule_id not in carried.rules:
            return True
        return not same_branch and not _in_view(view, end_of("rule", rule_id))

    def _skill(self, name: str) -> str:
        skill = self._skills.get(name)
        if skill is None:
            return mounted("skill", name, "This skill is no longer there. Do without it.")
        try:
            return skill.body()
        except ConfigurationError as error:
            return mounted("skill", name, f"This skill can no longer be read: {error}")


def _in_view(view: View, end: str) -> bool:
    """Whether a body is there to its last line."""
    for message in reversed(view.messages):
        if isinstance(message, Prompted):
            if message.mounts and end in message.text:
                return True
        elif isinstance(message, ToolsFinished) and any(end in result.content for result in message.results):
            return True
    return False
