"""The main screens at three sizes in both themes, pixel by pixel beside the pictures of them in looks/; `make looks` takes those anew.

What differs by a few pixels is an edge that was smoothed otherwise; what differs by more is a change that somebody must have meant.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageChops

from support.browser import SIZES, opened
from support.gallery import NOW_MS, SCREENS, Gallery

LOOKS = Path(__file__).with_name("looks")
THEMES = ("dark", "light")
COLOURS = 256
UNLIKE = 48  # of 255: a pixel that differs by less in every channel is the same
MOST_UNLIKE = 0.0003  # of all pixels
TRIES, PAUSE_MS = 25, 100
# What a process or a folder is called is another each time: it is written over.
HIDE = r"""() => {
  const names = [
    [/process group \d+/g, 'process group 4242'],
    [/\/\S*\/workspace/g, '/home/ada/config'],
    [/cache key \w+/g, 'cache key 26661f2b6fdd'],
    [/\bL[0-9a-f]{10}\b/g, 'L5d5a389178'],
    [/at most \$[\d.]+/g, 'at most $0.0400'],
  ];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const said = names.reduce((text, [from, to]) => text.replace(from, to), node.data);
    if (said !== node.data) node.data = said;
  }
}"""


@pytest.mark.req("CV-26")
@pytest.mark.parametrize("size", SIZES)
def test_the_main_screens_look_as_they_did(
    browser: Any, hung: Gallery, size: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    renew = bool(request.config.getoption("--renew", default=False))
    unlike: list[str] = []
    with opened(
        browser, hung.link, size, color_scheme="dark", timezone_id="UTC", locale="en-GB", now_ms=NOW_MS
    ) as page:
        for name, show in SCREENS.items():
            show(page, hung.names)
            for theme in THEMES:
                if page.evaluate("document.documentElement.dataset.theme") != theme:
                    page.locator(".topbar .controls button.round").last.click()
                file = LOOKS / f"{name}-{size}-{theme}.png"
                if renew:
                    _take(page, file)
                else:
                    unlike += _compared(page, file, tmp_path)
    assert not unlike, "\n".join([*unlike, "Where that was meant: make looks, look at each, commit them."])


def _shot(page: Any) -> Image.Image:
    page.evaluate(HIDE)
    taken = page.screenshot(animations="disabled")
    return Image.open(io.BytesIO(taken)).convert("RGB")


def _take(page: Any, file: Path) -> None:
    last = _shot(page)
    for _ in range(TRIES):
        page.wait_for_timeout(3 * PAUSE_MS)
        now = _shot(page)
        if now.tobytes() == last.tobytes():
            break
        last = now
    file.parent.mkdir(exist_ok=True)
    few = now.quantize(COLOURS, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    few.save(file, optimize=True)


def _compared(page: Any, file: Path, folder: Path) -> list[str]:
    wanted = Image.open(file).convert("RGB")
    for _ in range(TRIES):
        now = _shot(page)
        if now.size != wanted.size:
            break
        apart = ImageChops.difference(now, wanted).split()
        worst = ImageChops.lighter(ImageChops.lighter(apart[0], apart[1]), apart[2])
        count = sum(worst.histogram()[UNLIKE:])
        if count <= MOST_UNLIKE * now.width * now.height:
            return []
        page.wait_for_timeout(PAUSE_MS)
    now.save(folder / file.name)
    return [f"{file.name} differs: {folder / file.name}"]
