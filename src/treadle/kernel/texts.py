"""What the engine itself says to a model, in one place: prompts of the machine's own rules, and results that no tool gave."""

from __future__ import annotations

from typing import Any

import msgspec

from treadle.core.events import Answered

GO_ON = "Go on: carry out the plan with the tools. Call finish(summary) when the work is done."
BATCH_STOPPED = "another call of this batch is invalid, so none of it ran. Correct it and send the batch again."
EARLIER_FAILED = "an earlier call of this batch did not succeed. Look at it first."
OTHER_PHASE = "who works ends with finish, who judges with verdict."
ENDED = "the batch had ended by then."
CONFIRMED = "Done. (The process was interrupted while this ran; the file holds what was to be written.)"
UNKNOWN_OUTCOME = (
    "Outcome unknown: the process was interrupted while this ran, and it may have happened or not. "
    "Check before repeating it."
)
SUMMARY_HEAD = (
    "What happened before, in a summary: the turns themselves are no longer shown. "
    "What it says was done is done; look again at a file before you rely on its content."
)
THRASH_ADVICE = "Read the last turns (treadle log), make the task or the check clearer, then resume --retry-incomplete."
EXHAUSTED_ADVICE = "Read the feedback, then start anew with more rounds, a clearer task or another model."
RAISED_ADVICE = "Mend what raised, then resume --retry-incomplete."
PROVIDER_ADVICE = {
    "auth": "Check the provider's key, then resume --retry-incomplete.",
    "bad-request": "The provider refuses the request: check the model's name and settings, then resume --retry-incomplete.",
    "context-too-long": "The conversation no longer fits the model's window: use a model with a larger one, "
    "then resume --retry-incomplete.",
    "protocol": "The endpoint does not answer as its protocol says: check --base-url, then resume --retry-incomplete.",
    "overload": "The provider is overloaded: resume --retry-incomplete later.",
    "network": "The provider cannot be reached: check the network and --base-url, then resume --retry-incomplete.",
}

PLAN_GO_ON = "Plan mode: look with the tools that read, then call write_plan(steps). Words alone are no plan."
PLAN_MODE = (
    "Plan mode: nothing may be changed yet. Look with the tools that read, then call write_plan(steps); a person decides "
    "on that plan, and only when it is approved the other tools work."
)
PLAN_MODE_WAITS = "Plan mode: a person has not approved this plan, so nothing may be changed. Only the tools that read and write_plan work:"
GATED = "permission error: in plan mode nothing is changed before a person has approved the plan. Only reading and write_plan work."
GATED_ABOVE = "the plan that this child works for has no approval now: nothing may be changed."
FINISH_GATED = "there is nothing to finish: in plan mode a person approves the plan first. Call write_plan(steps)."


NO_CHILD_ASKS = "no child waits for your answer."
NOTHING_LEFT_TO_FORK = "nothing is left of the budget that a child could use. Go on yourself, or finish."


def child_asks_first(name: str) -> str:
    """Why another child cannot be forked."""
    return f"{name} still waits for your answer: answer_child(answer) first."


def too_many_children(most: int) -> str:
    """Why no more can be forked."""
    return f"this loop has forked {most} children, and may fork no more. Go on yourself, or finish."


def plan_taken(plan: str, *, gated: bool) -> str:
    """What a call of the plan's tools returns."""
    return f"The plan is put before a person now:\n{plan}" if gated else f"The plan now:\n{plan}"


def plan_approved(answer: Answered) -> str:
    """A person said yes to the plan."""
    said = f" They say: {answer.text}" if answer.text else ""
    return (
        f"{answer.actor} has approved the plan.{said} Carry it out, step by step. A changed plan needs a new approval."
    )


def plan_rejected(answer: Answered) -> str:
    """A person said no, and why."""
    return f"{answer.actor} has rejected the plan:\n\n{answer.text}\n\nPlan anew: call write_plan with another plan."


def finish_open(steps: str, *, firm: bool) -> str:
    """Why finish does not end act while steps are open (AG-06)."""
    text = (
        f"these steps of the plan are open:\n{steps}\nDo them: a step is done when its check succeeds. One that makes no "
        "sense any more is replaced by another plan (write_plan)."
    )
    return f"{text} Calling finish again without that stops the loop." if firm else text


def trimmed(content: str, reference: str, keep: int) -> str:
    """What stands for an output that is no longer shown whole, with how to read it."""
    note = f"[... {len(content):,} characters in all, trimmed: read_output(call_id={reference!r}) gives them ...]"
    if keep < 400:
        return f"{content[:keep].rstrip()}\n{note}"
    return f"{content[: keep // 2]}\n{note}\n{content[-(keep // 2) :]}"


def wrap_up(left: int, phase: str) -> str:
    """Said once for each band (AG-04)."""
    turns = "1 turn is" if left == 1 else f"{max(left, 0)} turns are"
    end = "bring the work into a good state and call finish(summary)" if phase == "act" else "call verdict"
    return f"{turns} left. Wrap up: {end}."


def retune(guard: str) -> str:
    """How a guard that was wrong is told so."""
    return f" If it was making progress, raise the threshold: resume --retry-incomplete --guard {guard}=N."


def refused_again(said: str) -> str:
    """Instead of running a call that has failed before and can only fail again (AG-09)."""
    return (
        "Not run: this very call has failed before, for a reason that does not pass by itself, and nothing has changed since. "
        f"Change the arguments, or do something else first. It was told then:\n{said}"
    )


def no_call(phase: str) -> str:
    """After a turn without a tool call (AG-11)."""
    end = "finish(summary)" if phase == "act" else "verdict(accept, feedback)"
    return f"That turn made no tool call. Go on with a tool, or call {end} to end."


def feedback(text: str) -> str:
    """What opens the next round: the feedback verbatim."""
    return f"The result of this round was rejected. Feedback:\n\n{text}"


def evaluation(task: str, output_json: str | None, changed: tuple[str, ...], failure: str) -> str:
    """What an evaluating agent is asked."""
    said = "nothing" if output_json in (None, "null") else output_json
    paths = "\n".join(f"- {path}" for path in changed) or "- none"
    ended = f"The work did not finish: {failure}\n" if failure else ""
    return (
        f"Judge whether this task is done, and done well.\n\nTask:\n{task}\n\n{ended}"
        f"What the worker says of it:\n{said}\n\nFiles changed:\n{paths}\n\n"
        "Look for yourself, then call verdict(accept, feedback). The feedback goes to the worker as it is."
    )


def is_done(task: str, result: str, changed: tuple[str, ...]) -> str:
    """What a person who evaluates is asked."""
    paths = f"\nFiles changed: {', '.join(changed)}" if changed else ""
    return f"Is this done?\nTask: {task}\nResult: {result}{paths}"


def answered(answer: Answered) -> str:
    """What a question returns."""
    match answer.decision:
        case "approve":
            return f"Approved by {answer.actor}. {answer.text}".rstrip()
        case "reject":
            return f"Refused by {answer.actor}. {answer.text}".rstrip()
        case _:
            return answer.text


def output_json(args: dict[str, Any]) -> str:
    """What `finish` was given: the summary alone as a string, anything more as an object."""
    value = args["summary"] if set(args) == {"summary"} else args
    return msgspec.json.encode(value).decode()


def workspace_changed(paths: tuple[str, ...]) -> str:
    """Said when somebody changed the workspace while nothing ran (AG-28)."""
    shown = ", ".join(paths[:20]) + (f" and {len(paths) - 20} more" if len(paths) > 20 else "")
    return (
        f"After the last thing on record these files changed, by an interrupted command or by somebody else: {shown}. "
        "Read them again before you rely on them."
    )
