"""The main screens by the rules of axe (WCAG 2.1, A and AA), in both themes, at a desk and on a phone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.browser import opened
from support.scenes import SCENES
from support.watching import Loop
from treadle.testing import ScriptedEndpoint

AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
RUN = """async () => {
  const found = await axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa'] });
  const said = (node) => `${node.target.join(' ')} ${node.any[0]?.message ?? ''}`;
  return found.violations.map((one) => `${one.id}: ${one.nodes.map(said).join('; ')}`);
}"""

pytestmark = pytest.mark.skipif(not AXE.exists(), reason="the page's own dependencies are not installed: make page")


@pytest.fixture(scope="module", params=["desk", "phone"])
def looked(browser: Any, link: str, endpoint: ScriptedEndpoint, request: pytest.FixtureRequest) -> Iterator[Loop]:
    """A page with axe in it."""
    with opened(browser, link, request.param) as page:
        page.evaluate(AXE.read_text())
        yield Loop(page, endpoint)


@pytest.mark.req("CV-26")
@pytest.mark.parametrize("scene", ["plan", "compose", "fleet"])
def test_a_screen_breaks_no_rule_of_access_in_either_theme(looked: Loop, scene: str) -> None:
    SCENES[scene](looked)
    for theme in ("dark", "light"):
        looked.page.evaluate("(theme) => { document.documentElement.dataset.theme = theme }", theme)
        assert looked.page.evaluate(RUN) == [], theme
