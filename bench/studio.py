"""The studio's page in Chromium on this machine: first paint of a long loop, ten thousand log lines scrolled, size of the bundle.

python bench/studio.py [--turns 1000] [--json FILE]. Each figure is printed with its aim and a verdict; it exits with 1 where one is missed.
A headless Chromium without a GPU paints in software, so frames are a worst case: a bare page that pans 200 boxes is measured beside it.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
for place in ("tools", "tests", "bench"):
    sys.path.insert(0, str(ROOT / place))

from page import node  # noqa: E402
from subject import InstantModel, loop  # noqa: E402

from support.browser import launched  # noqa: E402
from treadle.app.runtime import Runtime  # noqa: E402
from treadle.app.stores import open_store  # noqa: E402
from treadle.ports.clock import NO_CRASH_POINTS  # noqa: E402
from treadle.server.pages import BUNDLE  # noqa: E402
from treadle.settings import Settings  # noqa: E402

AIMS = {
    "first paint, ms": 1_000,
    "log scrolled, p95 frame ms": 20,
    "200 nodes panned, p95 frame ms": 20,
    "bundle of the first view, kB gzip": 220,
    "all of the bundle, kB gzip": 220,
}
LINES = 10_000
# The time of the first frame after the canvas is in the page, counted from the navigation.
PAINTED = """
new MutationObserver((_, watch) => {
  if (!document.querySelector('[data-g=hub]')) return;
  watch.disconnect();
  const channel = new MessageChannel();
  channel.port1.onmessage = () => { window.painted = performance.now() };
  requestAnimationFrame(() => channel.port2.postMessage(0));
}).observe(document, { childList: true, subtree: true });
"""
SCROLLED = """async () => {
  const box = document.querySelector('.loglist');
  box.scrollTop = 200;
  await new Promise((go) => setTimeout(go, 300));
  const frames = [];
  let last = await new Promise((go) => requestAnimationFrame(go));
  for (let n = 0; n < 240; n++) {
    box.scrollTop += 130;
    const now = await new Promise((go) => requestAnimationFrame(go));
    frames.push(now - last);
    last = now;
  }
  return frames.sort((a, b) => a - b);
}"""


PANNED = """async () => {
  const frames = [];
  let last = await new Promise((go) => requestAnimationFrame(go));
  while (!window.enough) {
    const now = await new Promise((go) => requestAnimationFrame(go));
    frames.push(now - last);
    last = now;
  }
  return frames.sort((a, b) => a - b);
}"""


async def record(folder: Path, turns: int) -> str:
    """A finished loop in a store."""
    ledger = await open_store(f"sqlite:///{folder / 'treadle.db'}", NO_CRASH_POINTS)
    runtime = Runtime(ledger, Settings(environ={}, state_dir=folder))
    session = await runtime.start(loop(turns, "read", InstantModel(turns)), "Collect every record.")
    await session.run()
    await session.close()
    await runtime.close()
    return session.execution_id


@contextmanager
def service(folder: Path) -> Iterator[str]:
    """The link of a studio on that store."""
    environ = {
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "HOME": str(folder),
        "TREADLE_STATE": str(folder),
    }
    store = f"sqlite:///{folder / 'treadle.db'}"
    command = [str(Path(sys.executable).parent / "treadle"), "studio", "--port", "0", "--store", store]
    with subprocess.Popen(
        [*command, "--workspace", str(folder)], stdout=subprocess.PIPE, env=environ, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def painted(browser: Any, link: str, name: str, repeats: int) -> list[float]:
    """First paints in fresh contexts, the cache of each empty."""
    found: list[float] = []
    for _ in range(repeats):
        context = browser.new_context(viewport={"width": 1440, "height": 900})
        context.request.get(link)  # the cookie alone: nothing of the page is in a cache
        fresh = context.new_page()
        fresh.add_init_script(PAINTED)
        fresh.goto(f"{link.rpartition('/open')[0]}/#/watch/{name}")
        fresh.wait_for_function("() => window.painted")
        found.append(fresh.evaluate("window.painted"))
        context.close()
    return found


def scrolled(browser: Any, link: str, name: str) -> tuple[list[float], float]:
    """Frames of a log that is scrolled, sorted, in ms; what a frame costs the main thread."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    page.goto(link)
    page.wait_for_selector(".fleet")
    page.goto(f"{page.url.split('#')[0]}#/watch/{name}")
    page.locator(".react-flow__node[data-id=learn]").click()
    page.wait_for_selector(".logline")
    cdp = context.new_cdp_session(page)
    cdp.send("Performance.enable", {"timeDomain": "threadTicks"})
    before = _busy(cdp)
    frames = page.evaluate(SCROLLED)
    work = (_busy(cdp) - before) * 1000 / len(frames)
    context.close()
    return frames, work


def _busy(cdp: Any) -> float:
    """Processor seconds of the page's main thread."""
    found = {one["name"]: one["value"] for one in cdp.send("Performance.getMetrics")["metrics"]}
    return found["TaskDuration"]


BARE = """<!doctype html><style>body{margin:0;background:#0b1017;overflow:hidden}#w{position:absolute;transform-origin:0 0}
#w div{position:absolute;width:180px;height:66px;background:#17202d;border:2px solid #60a5fa;border-radius:18px;box-sizing:border-box}
</style><div id=w></div><script>
for (let n = 0; n < 200; n++) {
  const at = `left:${n % 20 * 240}px;top:${(n / 20 | 0) * 120}px`
  w.insertAdjacentHTML('beforeend', `<div data-id=${n} style="${at}">Stage ${n}</div>`)
}
let from = null
const to = (x, y) => { w.style.transform = `translate(${x}px,${y}px) scale(.28)` }
to(0, 0)
onmousedown = (e) => { from = e }
onmousemove = (e) => { if (from) to(e.clientX - from.clientX, e.clientY - from.clientY) }
</script>"""


def panned(browser: Any, folder: Path) -> dict[str, tuple[list[float], float]]:
    """The same of the studio's own canvas with 200 nodes, dragged by the mouse, and of a bare page. Empty without Node."""
    having = node()
    if having is None:
        return {}
    npm, home = having
    command = [*npm, "exec", "--offline", "--", "vite", "build", "bench", "--config", "vite.config.ts"]
    command += ["--outDir", str(folder / "canvas"), "--base", "./", "--logLevel", "error"]
    subprocess.run(command, cwd=ROOT / "web", env={**os.environ, "PATH": f"{home}:{os.environ['PATH']}"}, check=True)
    (folder / "canvas" / "bare.html").write_text(BARE)
    with files(folder / "canvas") as address:
        bare = f"{address.rpartition('/')[0]}/bare.html"
        return {"bare page": _panned(browser, bare), "canvas": _panned(browser, f"{address}#200")}


def _panned(browser: Any, address: str) -> tuple[list[float], float]:
    """Frames of what is dragged by the mouse, sorted, in ms; what a frame costs the main thread."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    page.goto(address)
    page.wait_for_selector("[data-id='199']")
    page.wait_for_timeout(500)
    page.mouse.move(700, 840)
    page.mouse.down()
    cdp = context.new_cdp_session(page)
    cdp.send("Performance.enable", {"timeDomain": "threadTicks"})
    before = _busy(cdp)
    page.evaluate(f"() => {{ window.frames_seen = ({PANNED})() }}")
    for step in range(120):
        page.mouse.move(700 + 3 * (step % 60), 840 - 2 * (step % 60))
    frames = page.evaluate("async () => { window.enough = true; return await window.frames_seen }")
    work = (_busy(cdp) - before) * 1000 / len(frames)
    context.close()
    return frames, work


@contextmanager
def files(folder: Path) -> Iterator[str]:
    """Serves a folder; modules do not load from files."""
    handler = partial(Quiet, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/index.html"
        server.shutdown()


class Quiet(SimpleHTTPRequestHandler):
    """Says nothing of each request."""

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Nothing."""


def bundle() -> tuple[float, float]:
    """(what the first view loads, everything): scripts and styles in kB gzip."""
    page = (BUNDLE / "index.html").read_text()
    files = [one for one in (BUNDLE / "assets").iterdir() if one.suffix in (".js", ".css")]
    sizes = {one.name: len(gzip.compress(one.read_bytes(), 9)) / 1000 for one in files}
    return sum(size for name, size in sizes.items() if name in page), sum(sizes.values())


def main() -> int:
    """Prints a line a figure; 1 where an aim is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=1_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        execution = asyncio.run(record(folder, given.turns))
        with service(folder) as link, launched() as browser:
            paints = painted(browser, link, execution, given.repeats)
            frames, work = scrolled(browser, link, execution)
            pan = panned(browser, folder)
    first, whole = bundle()
    figures = {
        "first paint, ms": statistics.median(paints),
        "log scrolled, p95 frame ms": _p95(frames),
        "bundle of the first view, kB gzip": first,
        "all of the bundle, kB gzip": whole,
    }
    if pan:
        figures["200 nodes panned, p95 frame ms"] = _p95(pan["canvas"][0])
    for what, (each, busy) in pan.items():
        said = f"p50 {statistics.median(each):.1f} ms, p95 {_p95(each):.1f} ms, main thread {busy:.1f} ms each"
        print(f"panned, {what}: {len(each)} frames, {said}")
    print(f"load of this machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    print(f"scrolled: frames p50 {statistics.median(frames):.1f} ms, main thread {work:.1f} ms each")
    print(f"first paints: {', '.join(f'{one:.0f}' for one in paints)} ms")
    for what, value in figures.items():
        print(f"{what:<36} {value:8.1f}  aim {AIMS[what]:>5}  {'met' if value <= AIMS[what] else 'MISSED'}")
    if given.json:
        given.json.write_text(json.dumps(figures, indent=2))
    return int(any(value > AIMS[what] for what, value in figures.items()))


def _p95(frames: list[float]) -> float:
    return frames[int(len(frames) * 0.95)]


if __name__ == "__main__":
    sys.exit(main())
