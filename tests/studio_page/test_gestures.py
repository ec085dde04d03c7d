"""The interactions of a loop that is watched, in Chromium on loops that really run: by fingers, by mouse, by keys."""

from __future__ import annotations

import pytest

from support.watching import Loop, node


@pytest.mark.req("CV-07")
@pytest.mark.parametrize("by", ["touch", "mouse", "key"])
def test_the_padlock_approves_the_plan_that_is_shown(loop: Loop, by: str) -> None:
    loop.open("PLANNED", "waiting-input")
    loop.page.wait_for_selector(".padlock.locked.asks")
    assert not loop.detail()["plan"]["approved"]
    if by == "touch":
        loop.hands.tap("[data-g=padlock]")
    elif by == "mouse":
        loop.page.mouse.click(*loop.hands.middle("[data-g=padlock]"))
    else:
        loop.hands.key("[data-g=padlock]", "Space")
    loop.page.wait_for_selector(".padlock.open")
    assert loop.until("d.plan.approved")["plan"]["approved_by"]


@pytest.mark.req("CV-08")
def test_a_step_is_marked_by_a_flick_with_a_reason(planned: Loop) -> None:
    def reason(words: str, status: str, step: str) -> None:
        field = planned.page.locator(".markform input")
        field.wait_for()
        assert planned.page.locator(".markform button").is_disabled()
        field.fill(words)
        field.press("Enter")
        planned.page.wait_for_selector(f"[data-g='step:{step}'].{status}.person")

    planned.hands.swipe("[data-g='step:1']", 110, 3)
    reason("seen", "done", "1")
    planned.hands.pull("[data-g='step:2']", -90, 2)
    reason("wrong", "failed", "2")
    planned.hands.key("[data-g='step:3']", "Alt+ArrowRight")
    reason("rested", "done", "3")
    plan = planned.detail()["plan"]
    assert (plan["done"], plan["verified"], plan["steps"][1]["reason"]) == (2, 0, "wrong")


@pytest.mark.req("CV-06")
def test_the_plan_is_edited_and_reordered(planned: Loop) -> None:
    planned.hands.tap("[data-g=reason]", 2)
    panel = planned.panel("plan")
    first, third = (planned.hands.middle(f"[data-panel=plan] li:nth-child({n}) .grip") for n in (1, 3))
    planned.hands.drag(first, (third[0], third[1] + 16))
    panel.get_by_role("button", name="Save the plan").click()
    assert [one["text"] for one in planned.until("d.plan.steps[0].text === 'Write'")["plan"]["steps"]] == [
        "Write",
        "Rest",
        "Look",
    ]
    planned.hands.double_click("[data-g=reason]")
    planned.panel("plan")
    planned.shut()
    planned.hands.key(node("reason"), "Enter")
    planned.panel("plan").get_by_label("Step 1", exact=True).fill("Write it")
    planned.page.locator("[data-panel=plan] li:nth-child(1) .grip").press("ArrowDown")
    panel.get_by_role("button", name="Save the plan").click()
    planned.until("d.plan.steps[1].text === 'Write it' && d.plan.request_id")


@pytest.mark.req("CV-11")
def test_pinching_the_hub_shows_dials_that_retune_the_guards(planned: Loop) -> None:
    zoom = planned.page.locator(".react-flow__viewport").get_attribute("style")
    planned.hands.two("[data-g=hub]", scale=0.4, apart=80)
    dial = planned.panel("dials").locator("[data-guard=repeat] input")
    before = int(dial.input_value())
    dial.press("ArrowRight")
    planned.until(f"d.guards.find((g) => g.name === 'repeat').threshold === {before + 1}")
    assert planned.page.locator(".react-flow__viewport").get_attribute("style") == zoom, "the canvas stays as it is"
    planned.shut()
    planned.hands.wheel("[data-g=hub]", "Control", 80)
    planned.panel("dials")
    planned.shut()
    planned.hands.key(node("hub"), "-")
    planned.panel("dials")


@pytest.mark.req("CV-10")
def test_holding_the_hub_pins_and_a_pin_is_forked(planned: Loop) -> None:
    first = planned.name

    def pins(count: int) -> None:
        planned.page.wait_for_function("(n) => document.querySelectorAll('.bead.pinned').length === n", arg=count)

    planned.hands.hold("[data-g=hub]")
    pins(1)
    planned.page.mouse.click(*planned.hands.middle("[data-g=hub]"), button="right")
    pins(2)
    planned.hands.key(node("hub"), "h")
    pins(3)
    planned.hands.key(".timeline", "Enter")
    planned.panel("pin")
    planned.shut()
    planned.hands.tap(".bead.pinned")
    planned.panel("pin").get_by_role("button", name="Fork from here").click()
    planned.page.wait_for_function("(old) => !location.hash.includes(old)", arg=planned.name)
    planned.name = planned.page.evaluate("location.hash.split('/').pop()")
    assert planned.until("d.live.status === 'waiting-input'")["plan"]["steps"]
    family = planned.page.locator(".family .kin")
    planned.page.locator(".family [aria-current]", has_text="fork at").wait_for()
    family.first.click()  # the line above the canvas leads back
    planned.page.wait_for_function("(old) => location.hash.endsWith(old)", arg=first)
    planned.page.locator(".family .kin:first-child[aria-current]").wait_for()
    assert family.count() == 2


@pytest.mark.req("CV-03", "CV-04")
def test_executing_shows_its_ring_and_its_warning_bands(planned: Loop) -> None:
    for gesture in (
        lambda: planned.hands.two("[data-g=executing]", scale=0.4, apart=60),
        lambda: planned.hands.wheel("[data-g=executing]", "Control", 80),
        lambda: planned.hands.key(node("executing"), "-"),
    ):
        gesture()
        assert "of 60" in planned.panel("ring").inner_text()
        planned.shut()
    planned.page.mouse.click(*planned.hands.middle("[data-g=executing]"), button="right")
    planned.panel("bands")
    planned.shut()
    planned.hands.key(node("executing"), "h")
    planned.panel("bands")
    planned.shut()
    planned.hands.hold("[data-g=executing]")
    planned.panel("bands").locator("input").first.press("ArrowLeft")
    planned.until("d.settings.act_agent.bands[0] === 79")


@pytest.mark.req("CV-05", "CV-14")
def test_perceive_opens_the_map_and_the_prompt_opens_its_slabs(planned: Loop) -> None:
    for zone, kind, holds in (("perceive", "map", "config.py"), ("foundation", "prompt", "cache boundary")):
        planned.hands.two(f"[data-g={zone}]", scale=2.5, apart=24)
        planned.panel(kind).get_by_text(holds).first.wait_for()
        planned.panel(kind).locator(".full em, .skeleton em, .bigslab.static small").first.wait_for()
        planned.shut()
        planned.hands.wheel(f"[data-g={zone}]", "Control", -80)
        planned.panel(kind)
        planned.shut()
        planned.hands.key(node(zone), "+")
        planned.panel(kind)
        planned.shut()


@pytest.mark.req("CV-13")
def test_turning_the_foundation_sets_the_content_ratio(planned: Loop) -> None:
    planned.hands.two("[data-g=foundation]", turn=-25, apart=60)
    planned.until("d.settings.act_agent.compact_at === 70")
    planned.page.get_by_text("ratio 70 %").wait_for()
    planned.panel("ratio")
    planned.shut()
    planned.hands.wheel("[data-g=foundation]", "Shift", -80)
    planned.until("d.settings.act_agent.compact_at === 60")
    planned.page.get_by_text("ratio 60 %").wait_for()
    planned.shut()
    planned.hands.key(node("foundation"), "]")
    planned.until("d.settings.act_agent.compact_at === 70")


@pytest.mark.req("CV-12")
def test_turning_the_history_strip_compacts_at_a_depth(planned: Loop) -> None:
    def asked(depth: str) -> None:
        planned.page.get_by_text(f"{depth} at the next boundary").wait_for()
        assert planned.ask("GET", f"/api/executions/{planned.name}/window")["requested"] == depth

    planned.hands.two("[data-g=history]", turn=30, apart=36)
    asked("full")
    planned.hands.wheel("[data-g=history] .strip", "Shift", -80)
    asked("auto")
    planned.hands.key("[data-g=history]", "[")
    asked("micro")


@pytest.mark.req("CV-15", "CV-16")
def test_a_chip_turns_to_its_schema_check_and_unfolds_its_whole_output(loop: Loop) -> None:
    loop.open("CHIPS", "stopped")
    good, wrong = loop.page.locator(".chips button.chip").all()
    zones = [f".chips [data-g='{one.get_attribute('data-g')}']" for one in (good, wrong)]
    loop.hands.tap(zones[0])
    loop.panel("call").locator(".right dt", has_text="command").wait_for()
    loop.shut()
    loop.page.mouse.click(*loop.hands.middle(zones[1]))
    assert "refused" in loop.panel("call").inner_text()
    assert loop.panel("call").locator(".wrong dt").all_inner_texts()
    loop.shut()
    loop.hands.key(zones[0], "Space")
    loop.panel("call")
    loop.shut()
    for gesture in (
        lambda: loop.hands.tap(zones[0], 2),
        lambda: loop.hands.double_click(zones[0]),
        lambda: loop.hands.key(zones[0], "Enter"),
    ):
        gesture()
        loop.panel("output").get_by_text("stored ·").wait_for()
        assert loop.page.locator("[data-panel=call]").count() == 0, "a double tap is no tap"
        loop.shut()


@pytest.mark.req("CV-17")
@pytest.mark.parametrize(
    ("task", "status", "name", "tag"), [("FINE", "done", "completed", "green"), ("CHIPS", "stopped", "failed", "amber")]
)
def test_a_terminal_node_opens_its_outcome(loop: Loop, task: str, status: str, name: str, tag: str) -> None:
    loop.open(task, status)
    for gesture in (
        lambda: loop.hands.tap(f"[data-g={name}]", 2),
        lambda: loop.hands.double_click(f"[data-g={name}]"),
        lambda: loop.hands.key(node(name), "Enter"),
    ):
        gesture()
        loop.panel("outcome").locator(f".outcometag.{tag}").wait_for()
        loop.panel("outcome").locator(".artifact").wait_for()
        loop.shut()


@pytest.mark.req("CV-20")
def test_the_timeline_is_stepped_by_flicks(planned: Loop) -> None:
    def now() -> int:
        return int(planned.page.locator(".timeline").get_attribute("aria-valuenow"))

    def came(value: int) -> None:
        planned.page.wait_for_function(
            "(n) => document.querySelector('.timeline').ariaValueNow === String(n)", arg=value
        )

    last = now()
    planned.hands.swipe(".timeline", 0, 120)
    came(last - 1)
    planned.hands.pull(".timeline", 0, 90)
    came(last - 2)
    planned.hands.key(".timeline", "Alt+ArrowUp")
    came(last - 3)
    planned.hands.key(".timeline", "Alt+ArrowDown")
    came(last - 2)
    assert planned.page.locator(".bead.now").count() == 1
    said = planned.page.locator(".timeline").get_attribute("aria-valuetext")
    number = planned.page.locator(".beadcard small").inner_text().rsplit(" ", 1)[-1]
    assert said.startswith(f"event {number}, {planned.page.locator('.beadcard b').inner_text()}: ")


@pytest.mark.req("CV-18", "CV-19")
def test_telemetry_has_sinks_to_attach_and_leads_to_the_fleet(planned: Loop) -> None:
    planned.hands.tap("[data-g=telemetry]")
    planned.panel("sinks").get_by_label("record").check()
    planned.page.wait_for_selector(".satellite.on")
    assert [one["name"] for one in planned.ask("GET", "/api/sinks") if one["attached"]] == ["record"]
    planned.panel("sinks").get_by_label("record").uncheck()
    planned.page.wait_for_selector(".satellite.on", state="detached")
    planned.shut()
    planned.page.mouse.click(*planned.hands.middle("[data-g=telemetry]"))
    planned.panel("sinks")
    planned.shut()
    planned.hands.key(node("telemetry"), "Space")
    planned.panel("sinks")
    planned.shut()
    for gesture in (
        lambda: planned.hands.two("[data-g=telemetry]", scale=2.5, apart=24),
        lambda: planned.hands.wheel("[data-g=telemetry]", "Control", -80),
        lambda: planned.hands.key(node("telemetry"), "+"),
    ):
        gesture()
        planned.page.wait_for_selector(".fleet .card")
        planned.show()
