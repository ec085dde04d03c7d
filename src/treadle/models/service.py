"""Who is asked, and what it said: a provider's own words and codes, on one line and without secrets."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlsplit

_CLIP = 400
_SECRETS = re.compile(
    r"\b(?:sk|pk|rk|gsk|xai|key)[-_][\w*.-]{6,}"
    r"|\bAIza[\w-]{10,}"
    r"|(?<=bearer )[^\s\"',}]+"
    r"|(?<=[?&]key=)[^\s&\"']+",
    re.IGNORECASE,
)
_SAID_IN = ("error", "message", "detail", "msg", "error_description")
_CODED_IN = ("code", "type", "status")


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A provider, for messages. `key_variable` names where its key comes from; the `secrets` stand in no message."""

    name: str
    url: str = ""
    key_variable: str = ""
    secrets: tuple[str, ...] = ()

    @property
    def address(self) -> str:
        """The URL without credentials and query."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}" if parts.netloc else self.name

    def clean(self, text: str) -> str:
        """The text on one line, shortened, without anything that looks like a secret."""
        for secret in self.secrets:
            if len(secret) > 3:
                text = text.replace(secret, "[key]")
        text = " ".join(_SECRETS.sub("[key]", text.encode("utf-8", "replace").decode()).split())
        return text if len(text) <= _CLIP else text[: _CLIP - 1] + "…"


def said(body: Any) -> str:
    """The provider's own words in an error answer, wherever it puts them; empty where there are none."""
    if isinstance(body, bytes):
        body = body.decode("utf-8", "replace")
    if isinstance(body, str):
        return _said_in_text(body)
    if isinstance(body, list):
        return said(cast("list[Any]", body)[0]) if body else ""
    if not isinstance(body, dict):
        return ""
    fields = cast("dict[str, Any]", body)
    for name in _SAID_IN:
        value = fields.get(name)
        if isinstance(value, str) and value.strip():
            return value
        if isinstance(value, (dict, list)) and (inner := said(value)):
            return inner
    return ""


def _said_in_text(text: str) -> str:
    try:
        parsed: Any = json.loads(text)
    except (ValueError, RecursionError):  # no JSON: a proxy's page, most likely
        return re.sub(r"<[^>]{0,200}>", " ", text)
    return said(parsed) if isinstance(parsed, (dict, list)) else text


def codes(body: Any) -> set[str]:
    """The machine-readable names that an error answer gives itself."""
    fields = cast("dict[str, Any]", body) if isinstance(body, dict) else {}
    error = cast("dict[str, Any]", fields["error"]) if isinstance(fields.get("error"), dict) else fields
    return {value for name in _CODED_IN if isinstance(value := error.get(name), str)}
