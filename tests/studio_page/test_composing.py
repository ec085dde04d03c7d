"""The interactions of a loop that is drawn (CV-01, CV-02, CV-09): by fingers, by mouse, by keys."""

from __future__ import annotations

import pytest

from support.watching import Loop, node

INSIDE = """async (name) => {
  const box = (one) => document.querySelector(one).getBoundingClientRect();
  for (let n = 0; n < 120; n++) {
    const [a, all] = [box(name), box('.react-flow')];
    if (a.left >= all.left && a.right <= all.right && a.top >= all.top && a.bottom <= all.bottom) return true;
    await new Promise((go) => requestAnimationFrame(go));
  }
  return false;
}"""
NEAR = """([name, x, y]) => {
  const a = document.querySelector(name).getBoundingClientRect();
  return Math.hypot(a.x + a.width / 2 - x, a.y + a.height / 2 - y) < 12;
}"""


@pytest.fixture
def compose(loop: Loop) -> Loop:
    loop.page.evaluate("location.hash = '#/fleet'; location.reload()")
    loop.page.wait_for_selector(".fleet")
    loop.page.get_by_role("button", name="Compose", exact=True).click()
    loop.page.get_by_text("Drag Planning here").wait_for()
    return loop


def _way(loop: Loop, source: str, target: str) -> tuple[float, float]:
    """How far it is from the handle of one to that of another."""
    (x, y), (to_x, to_y) = (
        loop.hands.middle(f"{node(name)} .{kind}.connectable")
        for name, kind in ((source, "source"), (target, "target"))
    )
    return to_x - x, to_y - y


@pytest.mark.req("CV-01", "CV-02")
def test_planning_is_the_one_entry_and_edges_are_those_of_the_table(compose: Loop) -> None:
    """Case 51 of the field, too: there, edges could not be drawn by finger."""
    hands, page = compose.hands, compose.page
    area = hands.middle(".react-flow")
    hands.drag(hands.middle("[data-palette=planning]"), area)
    page.wait_for_selector(".anchor.armed")
    page.wait_for_selector("[data-id='start-planning'] .way.legal", state="attached")
    assert page.locator(f"{node('planning')} .stage.breathe.tone-armed").count() == 1
    page.locator("[data-palette=planning]").press("Enter")
    page.get_by_text("A loop has one entry").first.wait_for(state="attached")
    page.get_by_role("button", name="Undo").click()
    page.wait_for_selector(".anchor.armed", state="detached")
    x, y = hands.middle("[data-palette=planning]")
    hands.pull("[data-palette=planning]", area[0] - x, area[1] - y)
    page.wait_for_selector(".anchor.armed")
    hands.pull(f"{node('completed')} .source.connectable", *_way(compose, "completed", "planning"))
    page.wait_for_selector(".way.illegal", state="attached")
    page.locator(".toast.bad", has_text="It is an end: nothing leads out of it.").wait_for()
    page.wait_for_selector(".way.illegal", state="detached")
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


@pytest.mark.req("CV-21")
def test_what_is_dragged_off_the_canvas_is_not_lost(compose: Loop) -> None:
    page, hands = compose.page, compose.hands
    x, y = hands.middle("[data-palette=act]")
    hands.pull("[data-palette=act]", 1300 - x, 300 - y)
    hands.pull("[data-palette=act]", -x + 2, 0)
    assert page.locator(node("act")).count() == 0, "let go beside the canvas, it is not placed"
    for name in ("planning", "act"):
        page.locator(f"[data-palette={name}]").press("Enter")
    page.wait_for_selector(node("act"))
    left = hands.middle(".react-flow")[0] * 2
    for drag in (
        lambda: hands.pull(node("act"), 0, -2_000),
        lambda: hands.drag(hands.middle(node("act")), (left + 900, 5)),
    ):
        before = hands.middle(node("act"))
        drag()
        page.get_by_role("button", name="Show all").click()
        assert page.evaluate(INSIDE, node("act"))
        page.get_by_role("button", name="Undo").click()
        page.get_by_role("button", name="Show all").click()
        page.wait_for_function(NEAR, arg=[node("act"), *before])
