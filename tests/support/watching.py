"""A loop on the page: started through the API from within the page, watched until it rests, shown, and its panels."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import uuid4

from support.browser import LOOPS, PATIENCE_MS
from support.fingers import Hands
from treadle.demo.studio import FILES, sample
from treadle.testing import ScriptedEndpoint

ASK = """async ([method, path, body]) => {
  const headers = { 'Content-Type': 'application/json', 'Idempotency-Key': crypto.randomUUID() };
  const found = await fetch(path, { method, headers, body: body ? JSON.stringify(body) : undefined });
  return await found.json();
}"""
UNTIL = """async (path) => {
  for (const end = performance.now() + %d; performance.now() < end; ) {
    const d = await (await fetch(path)).json();
    if (%s) return d;
    await new Promise((go) => setTimeout(go, 15));
  }
  throw new Error('never');
}"""


def node(name: str) -> str:
    """The selector of a node of the canvas."""
    return f".react-flow__node[data-id={name}]"


class Loop:
    """An execution that is open on a page."""

    def __init__(self, page: Any, endpoint: ScriptedEndpoint) -> None:
        self.page, self.hands, self.url, self.name = page, Hands(page), endpoint.url, ""

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """The JSON of a request of the page's own."""
        return self.page.evaluate(ASK, [method, path, body])

    def detail(self) -> Any:
        """What the service knows of it now."""
        return self.ask("GET", f"/api/executions/{self.name}")

    def until(self, what: str) -> Any:
        """Waits until a JavaScript condition on the detail `d` holds, and gives it."""
        return self.page.evaluate(UNTIL % (PATIENCE_MS, what), f"/api/executions/{self.name}")

    def open(self, task: str, status: str) -> None:
        """Starts it, waits until it rests so, and shows it."""
        self.start(task)
        self.until(f"d.live.status === '{status}' && !d.here")
        self.show()

    def start(self, task: str) -> None:
        """Starts one of the loops of these tests, or the studio's own sample."""
        url = self.url
        if task == "SAMPLE":  # it mends the workspace, so that the one before has left nothing to do
            folder = Path(self.ask("GET", "/api/studio")["workspace"])
            for name, text in FILES.items():
                (folder / name).write_text(text)
        begin = f"treadle: 1\nname: {task}\nfoundation: {{model: 'openai:scripted', base_url: '{url}', price: '1,4'}}\n"
        text = sample(url) if task == "SAMPLE" else begin + LOOPS[task]
        wish = {"text": text, "task": "" if task == "SAMPLE" else f"{task} {uuid4().hex}"}
        self.name = self.ask("POST", "/api/executions", wish)["execution_id"]

    def show(self) -> None:
        """Goes to it."""
        self.page.evaluate("(hash) => { location.hash = hash }", f"#/watch/{self.name}")
        self.page.wait_for_selector("[data-g=hub]")
        self.page.locator(".brand code", has_text=self.name[:8]).wait_for(state="attached")

    def shut(self) -> None:
        """Closes what is open."""
        self.page.keyboard.press("Escape")
        self.page.wait_for_selector("[data-panel]", state="detached")

    def panel(self, kind: str) -> Any:
        """A panel that is open, or opens."""
        found = self.page.locator(f"[data-panel={kind}]")
        found.wait_for()
        return found
