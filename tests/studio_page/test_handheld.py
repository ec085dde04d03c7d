"""The twenty interactions where hands hold the screen: on a tablet by fingers, on a phone by fingers, mouse and keys."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from support.fingers import Hands
from support.watching import Loop, node

Form = Callable[[Hands, str], object]
FORMS: dict[str, tuple[Form, Form, Form]] = {  # by touch, by mouse, by key
    "tap": (Hands.tap, lambda h, at: h.page.mouse.click(*h.middle(at)), lambda h, at: h.key(at, "Space")),
    "double": (
        lambda h, at: h.tap(at, 2),
        Hands.double_click,
        lambda h, at: h.key(at, "Enter"),
    ),
    "hold": (Hands.hold, lambda h, at: h.page.mouse.click(*h.middle(at), button="right"), lambda h, at: h.key(at, "h")),
    "pinch": (
        lambda h, at: h.two(at, scale=0.4, apart=60),
        lambda h, at: h.wheel(at, "Control", 80),
        lambda h, at: h.key(at, "-"),
    ),
    "spread": (
        lambda h, at: h.two(at, scale=2.5, apart=24),
        lambda h, at: h.wheel(at, "Control", -80),
        lambda h, at: h.key(at, "+"),
    ),
}
OPENS = (  # zone, gesture, panel, what it says
    ("executing", "pinch", "ring", "of 60"),
    ("executing", "hold", "bands", "Warn the model at"),
    ("perceive", "spread", "map", "config.py"),
    ("reason", "double", "plan", "Save the plan"),
    ("hub", "pinch", "dials", "no tool call"),
    ("foundation", "spread", "prompt", "cache boundary"),
    ("telemetry", "tap", "sinks", "record"),
)
HANDHELD = pytest.mark.parametrize("sized", ["tablet", "phone"], indirect=True)


def _forms(loop: Loop) -> int:
    """A tablet's canvas is a desk's, where the other forms are shown."""
    return 3 if loop.page.viewport_size["width"] < 700 else 1


@pytest.mark.req("CV-03", "CV-04", "CV-05", "CV-06", "CV-11", "CV-14", "CV-18")
@HANDHELD
def test_what_a_gesture_opens_is_opened_by_each_of_its_forms(sized: Loop) -> None:
    sized.open("PLANNED", "waiting-input")
    for zone, gesture, panel, words in OPENS:
        for form in FORMS[gesture][: _forms(sized)]:
            form(sized.hands, f"[data-g={zone}]")
            assert (
                words in sized.panel(panel).inner_text().replace("\n", " ")
                or sized.panel(panel).get_by_text(words).first.wait_for() is None
            )
            sized.shut()


@pytest.mark.req("CV-07", "CV-08", "CV-10", "CV-12", "CV-13", "CV-19", "CV-20")
@HANDHELD
def test_what_a_gesture_does_to_the_loop_is_done_by_each_of_its_forms(sized: Loop) -> None:
    sized.open("PLANNED", "waiting-input")
    hands, page, forms = sized.hands, sized.page, _forms(sized)
    hold = FORMS["hold"]
    for number, form in enumerate(hold[:forms], 1):
        form(hands, "[data-g=hub]")
        page.wait_for_function("(n) => document.querySelectorAll('.bead.pinned').length === n", arg=number)
    marks = (
        lambda: hands.swipe("[data-g='step:1']", 110, 3),
        lambda: hands.pull("[data-g='step:2']", -90, 2),
        lambda: hands.key("[data-g='step:3']", "Alt+ArrowRight"),
    )
    for mark, step, status in list(zip(marks, "123", ("done", "failed", "done"), strict=True))[:forms]:
        mark()
        page.locator(".markform input").fill("seen")
        page.locator(".markform input").press("Enter")
        page.wait_for_selector(f"[data-g='step:{step}'].{status}.person")
    turns = (
        lambda: hands.two("[data-g=foundation]", turn=-25, apart=60),
        lambda: [hands.wheel("[data-g=foundation]", "Shift", -80) for _ in range(2)],  # quick ones add up
        lambda: hands.key("[data-g=foundation]" if forms == 3 else node("foundation"), "]"),
    )
    for turn, ratio in list(zip(turns, (70, 50, 60), strict=True))[:forms]:
        turn()
        sized.until(f"d.settings.act_agent.compact_at === {ratio}")
        sized.panel("ratio")
        sized.shut()
    depths = (
        lambda: hands.two("[data-g=history]", turn=30, apart=36),
        lambda: hands.wheel("[data-g=history] .strip", "Shift", -80),
        lambda: hands.key("[data-g=history]", "["),
    )
    for turn, depth in list(zip(depths, ("full", "auto", "micro"), strict=True))[:forms]:
        turn()
        page.get_by_text(f"{depth} at the next boundary").wait_for()
    at = int(page.locator(".timeline").get_attribute("aria-valuenow"))
    flicks = (
        lambda: hands.swipe(".timeline", 0, 120),
        lambda: hands.pull(".timeline", 0, 90),
        lambda: hands.key(".timeline", "Alt+ArrowUp"),
    )
    for flick in flicks[:forms]:
        flick()
        at -= 1
        page.wait_for_function("(n) => document.querySelector('.timeline').ariaValueNow === String(n)", arg=at)
    hands.tap("[data-g=padlock]")
    page.wait_for_selector(".padlock.open")
    assert sized.until("d.plan.approved")["plan"]["approved_by"] == "ada", "whom the studio speaks for"
    for form in FORMS["spread"][:forms]:
        form(hands, "[data-g=telemetry]")
        page.wait_for_selector(".fleet .card")
        sized.show()


@pytest.mark.req("CV-15", "CV-16", "CV-17")
@HANDHELD
def test_calls_and_endings_are_opened_by_fingers(sized: Loop) -> None:
    sized.open("CHIPS", "stopped")
    hands, page = sized.hands, sized.page
    if _forms(sized) == 1:
        zones = [f".chips [data-g='{one.get_attribute('data-g')}']" for one in page.locator(".chips button.chip").all()]
        for zone, words in zip(zones, ("fits its schema", "refused"), strict=True):
            hands.tap(zone)
            assert words in sized.panel("call").inner_text()
            sized.shut()
        hands.tap(zones[0], 2)
        sized.panel("output").get_by_text("stored ·").wait_for()
        sized.shut()
    else:
        hands.tap("[data-g=act]")
        good, wrong = (f"[data-g='{one.get_attribute('data-g')}']" for one in page.locator(".callface").all())
        for form in FORMS["tap"]:
            form(hands, good)
            page.locator(".call.ok .right dt", has_text="command").wait_for()
            form(hands, good)
            page.locator(".schema").wait_for(state="detached")
        hands.tap(wrong)
        page.locator(".call.invalid p.wrong").wait_for()
        for form in FORMS["double"]:
            form(hands, good)
            page.get_by_text("stored ·").wait_for()
            form(hands, good)
            page.get_by_text("stored ·").wait_for(state="detached")
    hands.two("[data-g=executing]", scale=0.4, apart=60)
    sized.panel("ring").locator(".ticks .failed").first.wait_for(state="attached")
    sized.shut()
    for form in FORMS["double"][: _forms(sized)]:
        form(hands, "[data-g=failed]")
        sized.panel("outcome").locator(".outcometag.amber").wait_for()
        sized.shut()


@pytest.mark.req("CV-01", "CV-02", "CV-09")
@HANDHELD
def test_a_loop_is_drawn_by_fingers(sized: Loop) -> None:
    hands, page = sized.hands, sized.page
    page.evaluate("location.hash = '#/compose'; location.reload()")
    page.get_by_text("Drag Planning here").wait_for()
    hands.drag(hands.middle("[data-palette=planning]"), hands.middle(".react-flow"))
    page.wait_for_selector(".anchor.armed")
    page.locator("[data-palette=act]").press("Enter")

    def way(source: str, target: str) -> None:
        hands.drag(
            hands.middle(f"{node(source)} .source.connectable"), hands.middle(f"{node(target)} .target.connectable")
        )

    page.wait_for_selector(node("act"))
    way("executing", "failed")
    page.wait_for_selector("[data-id='executing-failed'] .way.legal", state="attached")
    way("completed", "planning")
    page.wait_for_selector(".way.illegal", state="attached")
    page.locator(".toast.bad", has_text="It is an end").wait_for()
    page.wait_for_selector(".way.illegal", state="detached")
    assert page.locator("[data-id='completed-planning']").count() == 0
    for kind, sort in (("timeout", "transient"), ("permission", "deterministic")):
        way("act", "error_recovery")
        hands.tap(f"[data-panel=kind] button:text-is('{kind}')")
        page.locator(f".way-label.{sort}", has_text=kind).wait_for()
