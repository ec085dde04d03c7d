"""What is worth a look: scenes of the studio on its own sample loop, by name, for pictures, contrast and baselines alike."""

from __future__ import annotations

import re
from collections.abc import Callable

from support.watching import Loop


def asked(loop: Loop) -> None:
    """The sample waits for a plan to be approved."""
    loop.start("SAMPLE")
    loop.until("d.plan && d.plan.request_id && !d.here")
    loop.show()
    loop.page.locator(".padlock.asks").wait_for()


def steered(loop: Loop) -> None:
    """The plan is approved, some work is done, a question is open."""
    asked(loop)
    loop.page.get_by_role("button", name="Approve", exact=True).click()
    loop.until("d.execution.pending && d.execution.pending.kind === 'question' && !d.here")
    loop.page.get_by_role("button", name="skip", exact=True).wait_for()


def ended(loop: Loop) -> None:
    """It is accepted in its second round."""
    steered(loop)
    loop.page.get_by_role("button", name="skip", exact=True).click()
    loop.until("d.live.status === 'done' && !d.here")
    loop.page.get_by_label("Done:").or_(loop.page.locator(".live.rest", has_text="done")).first.wait_for()
    loop.page.get_by_text(re.compile("^accepted")).first.wait_for()  # the page has read how it ended


def stopped(loop: Loop) -> None:
    """Its turns are used up."""
    loop.open("CHIPS", "stopped")
    loop.page.locator(".call, .chip, [data-g=act]").first.wait_for()


def composed(loop: Loop) -> None:
    """The sample, drawn."""
    loop.page.evaluate("location.hash = '#/compose'")
    loop.page.get_by_role("button", name="start from the sample loop").click()
    loop.page.wait_for_selector("[data-id=perceive]")
    loop.page.get_by_text("sound", exact=True).wait_for()


def fleet(loop: Loop) -> None:
    """All executions."""
    loop.page.evaluate("location.hash = '#/fleet'")
    loop.page.wait_for_selector(".card")


SCENES: dict[str, Callable[[Loop], None]] = {
    "plan": asked,
    "question": steered,
    "done": ended,
    "stopped": stopped,
    "compose": composed,
    "fleet": fleet,
}
