"""The interactions of a loop that is drawn (CV-01, CV-02, CV-09): by fingers, by mouse, by keys."""

from __future__ import annotations

import pytest

from support.watching import Loop, node


@pytest.fixture
def compose(loop: Loop) -> Loop:
    loop.page.evaluate("location.hash = '#/fleet'; location.reload()")
    loop.page.wait_for_selector(".fleet")
    loop.page.get_by_role("button", name="Compose", exact=True).click()
    loop.page.get_by_text("Drag Planning here").wait_for()
    return loop


@pytest.mark.req("CV-01", "CV-02")
def test_planning_is_the_one_entry_and_edges_are_those_of_the_table(compose: Loop) -> None:
    """Case 51 of the field, too: there, edges could not be drawn by finger."""
    hands, page = compose.hands, compose.page
    area = hands.middle(".react-flow")
    hands.drag(hands.middle("[data-palette=planning]"), area)
    page.wait_for_selector(".anchor.armed")
    page.locator("[data-palette=planning]").press("Enter")
    page.get_by_text("A loop has one entry").first.wait_for(state="attached")
    page.get_by_role("button", name="Undo").click()
    page.wait_for_selector(".anchor.armed", state="detached")
    x, y = hands.middle("[data-palette=planning]")
    hands.pull("[data-palette=planning]", area[0] - x, area[1] - y)
    page.wait_for_selector(".anchor.armed")
    hands.drag(
        hands.middle(f"{node('executing')} .source.connectable"), hands.middle(f"{node('failed')} .target.connectable")
    )
    page.wait_for_selector("[data-id='executing-failed']", state="attached")
    hands.key(node("executing"), "c")
    for _ in range(2):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_selector("[data-id='executing-completed']", state="attached")
    hands.key(node("completed"), "c")
    page.keyboard.press("Enter")
    page.get_by_text("It is an end: nothing leads out of it.").first.wait_for(state="attached")
    assert page.locator("[data-id='completed-planning']").count() == 0


@pytest.mark.req("CV-09")
def test_a_way_from_tools_to_recovery_has_the_class_of_error(compose: Loop) -> None:
    page = compose.page
    for name in ("planning", "act"):
        page.locator(f"[data-palette={name}]").press("Enter")
    page.wait_for_selector(node("act"))
    hands = compose.hands
    hands.drag(
        hands.middle(f"{node('act')} .source.connectable"),
        hands.middle(f"{node('error_recovery')} .target.connectable"),
    )
    compose.panel("kind").get_by_role("button", name="timeout").click()
    page.locator(".way-label.transient", has_text="timeout").wait_for()
    hands.key(node("act"), "c")
    for _ in range(2):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    compose.panel("kind").get_by_role("button", name="permission").press("Enter")
    page.locator(".way-label.deterministic", has_text="permission").wait_for()
