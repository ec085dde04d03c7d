"""What an execution does at this moment, as far as its state tells: for `why`, `show` and `watch`."""

from __future__ import annotations

from treadle.core.messages import ToolResult
from treadle.core.spoken import one_line
from treadle.kernel.states import LoopState
from treadle.telemetry.said import brief

SHOWN_CALLS = 3


def whereabouts(state: LoopState) -> str:
    """round 1 of 4, act, turn 8."""
    words = [f"round {state.round} of {state.settings.max_rounds}", state.phase]
    if (state.settings.act if state.phase == "act" else state.settings.evaluate) == "agent":
        words.append(f"turn {state.total.turns + 1}")
    return ", ".join(words)


def under_way(state: LoopState, model: str = "") -> str:
    """The check, a model, calls, or a wait; empty where nobody can tell."""
    agent = state.agent
    if state.callback:
        return "the check" if state.phase == "evaluate" else "the acting command"
    match agent.step:
        case "calling":
            return model or state.last_act_model or "the model"
        case "compacting":
            return "a summary of the history"
        case "back-off":
            return "back-off before the next try"
        case "tools":
            waiting = agent.calls[agent.answered :]
            names = ", ".join(f"{call.name} {brief(call.args)}".rstrip() for call in waiting[:SHOWN_CALLS])
            return names + (f" and {len(waiting) - SHOWN_CALLS} more" if len(waiting) > SHOWN_CALLS else "")
        case _:
            return ""


def left_behind(state: LoopState) -> str:
    """What a loop that runs, and that nobody works on, has been left with."""
    doing = under_way(state)
    return f"its process is gone; in doubt: {doing}" if doing else "nobody works on it, and nothing is in flight"


def shortcoming(result: ToolResult) -> str:
    """Why a call was of no use, in a few words; empty where it was."""
    lines = [line for line in result.content.splitlines() if line.strip()]
    if result.status != "ok":
        return one_line(lines[0] if lines else result.status, 120)
    if result.passed:
        return ""
    last = lines[-1] if lines else ""
    return one_line(last.strip("[]").partition(",")[0], 80) if last.startswith("[") else "found nothing"
