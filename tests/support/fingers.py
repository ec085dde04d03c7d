"""A person at the page: fingers through the browser's own touch input, a mouse, and keys."""

from __future__ import annotations

import math
import time
from typing import Any

STEPS = 12
STEP_S = 0.012  # between two points of a finger that moves, as the browser is told: a slow machine does not make a slow flick
HOLD_MS = 520  # a little more than the page takes for a long press
STILL = """async (element) => {
  const now = () => { const box = element.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2] };
  for (let [last, same] = [now(), 0]; ; ) {
    await new Promise((go) => requestAnimationFrame(go));
    const next = now();
    same = next[0] === last[0] && next[1] === last[1] ? same + 1 : 0;
    if (same === 3) return next;
    last = next;
  }
}"""


class Hands:
    """On one page."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self._cdp = page.context.new_cdp_session(page)

    def middle(self, selector: str) -> tuple[float, float]:
        """Where the first such element is, once it stands still."""
        found = self.page.locator(selector).first
        found.wait_for()
        found.scroll_into_view_if_needed()
        x, y = found.evaluate(STILL)
        return x, y

    def _touch(self, kind: str, *points: tuple[float, float], at: float | None = None) -> None:
        touches = [{"x": x, "y": y, "id": number} for number, (x, y) in enumerate(points)]
        when = {} if at is None else {"timestamp": at}
        self._cdp.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": touches, **when})

    def tap(self, selector: str, times: int = 1) -> None:
        at = self.middle(selector)
        began = time.time()
        for number in range(times):
            self._touch("touchStart", at, at=began + number * 2 * STEP_S)
            self._touch("touchEnd", at=began + (number * 2 + 1) * STEP_S)

    def double_click(self, selector: str) -> None:
        x, y = self.middle(selector)
        began = time.time()
        where: dict[str, Any] = {"x": x, "y": y, "button": "left"}
        for number, kind in enumerate(("mousePressed", "mouseReleased") * 2):
            event = {"type": kind, "clickCount": number // 2 + 1, "timestamp": began + number * STEP_S}
            self._cdp.send("Input.dispatchMouseEvent", {**where, **event})

    def hold(self, selector: str) -> None:
        self._touch("touchStart", self.middle(selector))
        self.page.wait_for_timeout(HOLD_MS)
        self._touch("touchEnd")

    def swipe(self, selector: str, dx: float, dy: float) -> None:
        x, y = self.middle(selector)
        self.drag((x, y), (x + dx, y + dy), 6)

    def drag(self, start: tuple[float, float], end: tuple[float, float], steps: int = STEPS) -> None:
        began = time.time()
        self._touch("touchStart", start, at=began)
        for step in range(1, steps + 1):
            part = step / steps
            point = (start[0] + (end[0] - start[0]) * part, start[1] + (end[1] - start[1]) * part)
            self._touch("touchMove", point, at=began + step * STEP_S)
        self._touch("touchEnd", at=began + (steps + 1) * STEP_S)

    def two(self, selector: str, *, scale: float = 1.0, turn: float = 0.0, apart: float = 40.0) -> None:
        """Two fingers round the middle: pinch below 1, spread above it, or turned by degrees."""
        x, y = self.middle(selector)

        def at(part: float) -> tuple[tuple[float, float], tuple[float, float]]:
            away, angle = apart * (1 + (scale - 1) * part), math.radians(turn * part)
            dx, dy = away * math.cos(angle), away * math.sin(angle)
            return (x - dx, y - dy), (x + dx, y + dy)

        self._touch("touchStart", at(0)[0])
        self._touch("touchStart", *at(0))
        for step in range(1, STEPS + 1):
            self._touch("touchMove", *at(step / STEPS))
        self._touch("touchEnd")

    def wheel(self, selector: str, key: str, delta: float) -> None:
        self.page.mouse.move(*self.middle(selector))
        self.page.keyboard.down(key)
        self.page.mouse.wheel(0, delta)
        self.page.keyboard.up(key)

    def pull(self, selector: str, dx: float, dy: float) -> None:
        """Drag with the mouse, and let go."""
        x, y = self.middle(selector)
        self.page.mouse.move(x, y)
        self.page.mouse.down()
        self.page.mouse.move(x + dx, y + dy, steps=4)
        self.page.mouse.up()

    def key(self, selector: str, key: str) -> None:
        found = self.page.locator(selector).first
        found.focus()
        self.page.keyboard.press(key)
