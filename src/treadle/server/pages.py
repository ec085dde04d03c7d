"""What a browser gets: the built bundle where it is there, otherwise a plain page that says what to run."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.responses import HTMLResponse

BUNDLE = Path(__file__).with_name("static")
_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Treadle studio</title><style>body{{font:17px/1.6 system-ui,sans-serif;margin:12vh auto;max-width:34em;padding:0 1.2em;
background:#0b1017;color:#e9eff6}}code{{background:#17202d;padding:.15em .4em;border-radius:6px}}h1{{font-size:1.5em}}
@media(prefers-color-scheme:light){{body{{background:#f3f6fa;color:#0f1b2a}}code{{background:#dfe6ee}}}}</style>
<main><h1>{title}</h1>{body}</main></html>"""


def _html(title: str, body: str, status: int) -> HTMLResponse:
    from starlette.responses import HTMLResponse

    return HTMLResponse(_PAGE.format(title=escape(title), body=body), status, headers={"cache-control": "no-store"})


def locked_page() -> HTMLResponse:
    """For whoever has no cookie."""
    return _html(
        "This studio is locked",
        "<p>Open the link that <code>treadle studio</code> printed in its terminal. It is good as long as that runs.</p>",
        401,
    )


def unbuilt_page() -> HTMLResponse:
    """Where there is no bundle: the service works all the same."""
    return _html(
        "The canvas is not built",
        "<p>The service runs; its page is built once, in a clone: <code>make page</code>, or by hand with Node 20 or newer:</p>"
        "<p><code>npm ci --prefix web</code><br><code>npm run --prefix web build</code></p><p>A wheel from PyPI has it.</p>"
        '<p>The API describes itself at <a href="/api/openapi.json" style="color:inherit">/api/openapi.json</a>.</p>',
        200,
    )


def install(app: FastAPI) -> None:
    """The page at every address that is not the API's, so that a reload of any view works."""
    from starlette.responses import FileResponse, Response
    from starlette.staticfiles import StaticFiles

    if (BUNDLE / "assets").is_dir():
        app.mount("/assets", StaticFiles(directory=BUNDLE / "assets"), name="assets")

    async def page(path: str) -> Response:
        file = BUNDLE / "index.html"
        if path.startswith(("api/", "assets/")):
            from .problems import Problem

            raise Problem(404, "not-found", f"There is nothing at /{path}.")
        if not file.is_file():
            return unbuilt_page()
        return FileResponse(file, headers={"cache-control": "no-cache"})

    app.add_api_route("/{path:path}", page, include_in_schema=False, response_model=None)
