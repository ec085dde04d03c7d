"""The page on loops that really run, at a desk, on a tablet and on a phone: the fleet, watched, steered, composed."""

from __future__ import annotations

import pytest

from support.watching import Loop


@pytest.mark.req("CV-24", "SV-05")
def test_the_fleet_opens_an_execution_and_the_token_is_in_no_address(sized: Loop) -> None:
    sized.start("FINE")
    page = sized.page
    page.evaluate("location.hash = '#/fleet'")
    assert "token" not in page.url
    page.locator("input[type=search]").fill("nothing has this name")
    page.get_by_text("Nothing fits the filter").wait_for()
    page.locator("input[type=search]").fill(sized.name)
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
