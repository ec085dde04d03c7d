"""The main screens by the rules of axe (WCAG 2.1, A and AA), in both themes, at a desk and on a phone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.browser import opened
from support.gallery import SCREENS, Gallery

AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
# All rules in one theme; in the other those that colours decide.
RUN = """async (all) => {
  const found = await axe.run(document, { runOnly: all ? ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa'] : ['color-contrast'] });
  const said = (node) => `${node.target.join(' ')} ${node.any[0]?.message ?? ''}`;
  return found.violations.map((one) => `${one.id}: ${one.nodes.map(said).join('; ')}`);
}"""

pytestmark = pytest.mark.skipif(not AXE.exists(), reason="the page's own dependencies are not installed: make page")


@pytest.mark.req("CV-26")
@pytest.mark.parametrize("size", ["desk", "phone"])
def test_no_screen_breaks_a_rule_of_access_in_either_theme(browser: Any, hung: Gallery, size: str) -> None:
    wrong: list[str] = []
    with opened(browser, hung.link, size) as page:
        page.evaluate(AXE.read_text())
        for name, show in SCREENS.items():
            show(page, hung.names)
            for theme in ("dark", "light"):
                page.evaluate("(theme) => { document.documentElement.dataset.theme = theme }", theme)
                wrong += [f"{name}, {theme}: {one}" for one in page.evaluate(RUN, theme == "dark")]
    assert wrong == []
