"""Hooks of the documentation site: pages that live outside docs/ stand in it, too, and pictures follow the reader's look.

In the repository the same Markdown is read without the site, so nothing here may change what a page says.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
OUTSIDE = {"CHANGELOG.md": "project/changelog.md", "AGENTS.md": "project/contributing.md"}
_LINK = re.compile(r"\]\((?:\.\./)*(README|CHANGELOG|AGENTS)\.md(#[\w-]+)?\)")
_PICTURE = re.compile(r'<picture><source[^>]*srcset="([^"]+)"><img alt="([^"]*)" src="([^"]+)"></picture>')
_FROM_ROOT = re.compile(r"\]\(docs/([^)]+)\)")


def on_files(files: Files, config: Any) -> Files:
    """Adds what stands at the root of the repository."""
    for name, address in OUTSIDE.items():
        text = _FROM_ROOT.sub(r"](../\1)", (ROOT / name).read_text(encoding="utf-8"))
        files.append(File.generated(config, address, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links to such pages, and one picture for each look."""
    up = "../" * page.file.src_uri.count("/")
    targets = {"README": "index.md", **{name.removesuffix(".md"): address for name, address in OUTSIDE.items()}}
    text = _LINK.sub(lambda found: f"]({up}{targets[found[1]]}{found[2] or ''})", markdown)
    return _PICTURE.sub(r"![\2](\3#only-light)![\2](\1#only-dark)", text)
