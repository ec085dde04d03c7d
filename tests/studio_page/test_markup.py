"""Names and words with markup in them are text, wherever the page shows them."""

from __future__ import annotations

import pytest

from support.watching import Loop

NASTY = "<img src=x onerror=\"document.title='broken in'\"><b>bold</b>"


@pytest.mark.req("CV-22", "SV-05")
def test_markup_in_names_tasks_and_answers_is_shown_as_it_was_written(loop: Loop) -> None:
    text = (
        f"treadle: 1\nname: '{NASTY.replace(chr(39), chr(39) * 2)}'\n"
        f"foundation: {{model: 'openai:scripted', base_url: '{loop.url}', price: '1,4'}}\nverify: {{check: 'true'}}\n"
    )
    loop.name = loop.ask("POST", "/api/executions", {"text": text, "task": f"FINE {NASTY}"})["execution_id"]
    loop.until("d.live.status === 'done' && !d.here")
    loop.show()
    page = loop.page
    assert NASTY[:40] in page.locator(".brand b").inner_text()
    page.locator(".react-flow__node[data-id=learn]").click()
    page.wait_for_selector(".logline")
    page.evaluate("location.hash = '#/fleet'")
    page.locator(".card b", has_text=NASTY).first.wait_for()
    assert page.locator("img").count() == 0
    assert page.title() != "broken in"
