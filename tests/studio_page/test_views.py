"""The page on loops that really run, at a desk, on a tablet and on a phone: the fleet, watched, steered, composed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.watching import Loop


@pytest.mark.req("CV-24", "SV-05")
def test_the_fleet_opens_an_execution_and_the_token_is_in_no_address(sized: Loop) -> None:
    sized.start("FINE")
    sized.until("d.live.status === 'done' && !d.here")
    page = sized.page
    page.evaluate("location.hash = '#/fleet'")
    assert "token" not in page.url
    page.locator("input[type=search]").fill("nothing has this name")
    page.get_by_text("Nothing fits the filter").wait_for()
    page.locator("input[type=search]").fill("")
    page.get_by_label("Status").select_option("done")
    page.locator(".card.green").first.wait_for()
    page.wait_for_selector(".card:not(.green)", state="detached")
    page.locator("input[type=search]").fill(sized.name)
    facts = page.locator(".card .facts")
    facts.filter(has_text=re.compile(r"done · no-change.*round 1.*1 turn.*\$0\.\d+.*s ago", re.DOTALL)).wait_for()
    page.locator(".card .open").first.click()
    page.wait_for_selector("[data-g=reason]")
    assert page.url.endswith(f"#/watch/{sized.name}")


@pytest.mark.req("CV-22", "CV-26")
def test_a_loop_is_watched_until_it_asks_and_steered_to_its_end(sized: Loop) -> None:
    sized.start("SAMPLE")
    sized.show()
    page = sized.page
    page.get_by_role("button", name="Approve", exact=True).click()
    page.get_by_text("Should a line without").first.wait_for()
    content = re.compile(
        r"Window by content: now [\d,]+: prompt, tools \d+, task, feedback \d+, model \d+, results \d+"
    )
    page.get_by_role("img", name=content).or_(page.locator(".phone")).first.wait_for(state="attached")
    page.get_by_role("button", name="skip", exact=True).click()
    page.get_by_label("Done:").or_(page.locator(".live.rest", has_text="done")).first.wait_for()
    assert sized.detail()["execution"]["rounds"] == 2


@pytest.mark.req("CV-01", "CV-21")
def test_the_sample_is_composed_changed_undone_and_found_sound(sized: Loop) -> None:
    page = sized.page
    page.evaluate("location.hash = '#/fleet'; location.reload()")
    page.wait_for_selector(".fleet")
    page.get_by_role("button", name="Compose", exact=True).click()
    page.get_by_role("button", name="start from the sample loop").click()
    page.wait_for_selector("[data-id=foundation]")
    page.wait_for_selector("[data-id=planning]")
    page.locator("[data-id=perceive]").click()
    page.keyboard.press("Delete")
    page.wait_for_selector("[data-id=perceive]", state="detached")
    page.locator("[data-palette=perceive]").press("Enter")
    page.wait_for_selector("[data-id=perceive]")
    page.locator("[data-palette=planning]").press("Enter")
    page.get_by_text("A loop has one entry").first.wait_for(state="attached")
    page.get_by_text("sound", exact=True).wait_for()
    page.get_by_role("button", name="Undo").click()
    page.wait_for_selector("[data-id=perceive]", state="detached")


@pytest.mark.req("CV-21")
def test_a_loop_is_saved_duplicated_and_loaded_again(loop: Loop) -> None:
    page = loop.page
    folder = Path(loop.ask("GET", "/api/studio")["workspace"]) / ".treadle" / "loops"
    page.evaluate("location.hash = '#/compose'; location.reload()")
    page.get_by_role("button", name="start from the sample loop").click()
    page.get_by_text("sound", exact=True).wait_for()
    turns = page.get_by_label("max turns", exact=False).first
    turns.fill("7")
    turns.press("Enter")
    page.get_by_role("button", name="Undo").click()
    assert turns.input_value() != "7"
    page.get_by_role("button", name="Redo").click()
    assert turns.input_value() == "7"
    for name, button in (("mine", "Duplicate"), ("another", "Duplicate")):
        page.get_by_label("File name").fill(name)
        page.get_by_role("button", name=button, exact=True).click()
        page.locator(".toast.good", has_text=f"Saved as {name}.").wait_for()
    assert all("max_turns: 7" in (folder / f"{name}.yaml").read_text() for name in ("mine", "another"))
    turns.fill("0")
    turns.press("Enter")
    page.get_by_role("heading", name="To mend").wait_for()  # what the checks find stands at the field and the node
    page.locator(".field.bad input").wait_for()
    page.wait_for_selector(".caution.error")
    assert page.get_by_role("button", name="Start this loop").is_disabled()
    page.reload()
    page.get_by_label("Loop files").select_option("mine")
    page.wait_for_selector("[data-id=perceive]")
    assert turns.input_value() == "7"


@pytest.mark.req("CV-25")
def test_two_are_put_side_by_side_with_what_differs(loop: Loop) -> None:
    page, names = loop.page, []
    note = Path(loop.ask("GET", "/api/studio")["workspace"]) / "note.txt"
    for text, task, status in (("one\n", "FINE", "done"), ("two\n", "CHIPS", "stopped")):
        note.write_text(text)
        loop.start(task)
        loop.until(f"d.live.status === '{status}' && !d.here")
        names.append(loop.name)
    note.unlink()
    page.evaluate("location.hash = '#/fleet'")
    for name in names:
        page.get_by_label(f"compare {name}").check()
    page.get_by_role("button", name="Compare two").click()
    rows = {}
    page.locator(".diff .more", has_text="+two").wait_for()
    assert page.locator(".diff .less", has_text="-one").count() == 1
    for row in page.locator(".compare tbody tr").all():
        name, *sides = row.locator("th, td").all_inner_texts()
        rows[name] = (*sides, row.get_attribute("class"))
    assert rows["ending"] == ("done, no-change", "stopped, limit", "differs")
    assert rows["model"] == ("openai:scripted", "openai:scripted", "same")
    assert (rows["turns"][:2], rows["rounds"][2]) == (("1", "2"), "same")
    assert rows["cost"][0].startswith("$0.")
    assert rows["round 1"][0].startswith("accepted · 1 turn")
    page.locator(".compare thead button", has_text=names[1]).click()
    page.wait_for_selector("[data-g=hub]")
    assert page.url.endswith(names[1])


@pytest.mark.req("CV-23")
def test_what_the_agent_may_touch_is_changed_by_hand(planned: Loop) -> None:
    page = planned.page
    page.get_by_role("button", name="Steer", exact=True).click()
    page.get_by_role("button", name="What it may touch").click()
    page.get_by_label("Capability").fill("fs.write:src/**")
    page.get_by_role("button", name="Grant", exact=True).click()
    page.locator(".leases li.grant", has_text="fs.write:src/**").wait_for()
    page.get_by_label("Capability").fill("process.spawn:*")
    page.get_by_label("For how long").select_option("turn")
    page.get_by_role("button", name="Revoke", exact=True).click()
    page.locator(".leases li.revoke", has_text="revoked for this turn").wait_for()
    found = planned.ask("GET", f"/api/executions/{planned.name}/leases")["leases"]
    assert [(one["op"], one["capability"], one["scope"]) for one in found] == [
        ("grant", "fs.write:src/**", "loop"),
        ("revoke", "process.spawn:*", "turn"),
    ]
