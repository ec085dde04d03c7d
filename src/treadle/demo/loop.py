"""The demo's loop: the product's own agent, tools and evaluator at work with the local model."""

from __future__ import annotations

from pathlib import Path

from treadle.models.local import MODEL_NAME
from treadle.spec.definitions import Agent, Loop

from .check import KitCheck
from .conversation import MAX_OUTPUT_TOKENS, MAX_ROUNDS, STATIC, TEMPERATURE, examples
from .toolset import KitTools

TURNS_PER_ACT = 60  # eight functions, each read and written, with room for refusals


def demo_loop(workspace: Path, base_url: str) -> Loop:
    """Writes the kit until its tests pass."""
    return Loop(
        name="demo",
        act=Agent(
            model=f"openai:{MODEL_NAME}",
            base_url=base_url,
            price="0,0",
            tools=(KitTools(workspace),),
            builtin_tools=False,
            static_prompt=STATIC,
            examples=examples(),
            history="fresh",
            tool_choice="required",
            settings={"temperature": TEMPERATURE},
            max_output_tokens=MAX_OUTPUT_TOKENS,
            max_turns_per_act=TURNS_PER_ACT,
        ),
        evaluate=KitCheck(workspace),
        workspace=workspace,
        max_rounds=MAX_ROUNDS,
    )
