"""When an agent is shown a map of the workspace: with the first message of each conversation of act, before it plans (AG-05)."""

from __future__ import annotations

from treadle.core.messages import Prompted

from .actions import Perceive
from .states import LoopState


def perceive(state: LoopState, prompt: Prompted) -> Perceive | None:
    """The look at the workspace that goes with this prompt; None where the prompt goes as it is.

    The prompt that comes of it is on record with its map, so nothing that goes on from there looks again.
    """
    settings = state.settings.act_agent
    if state.phase != "act" or prompt.parent is not None or not settings.map_tokens:
        return None
    return Perceive(prompt=prompt, tokens=settings.map_tokens, asked=settings.map_asked)
