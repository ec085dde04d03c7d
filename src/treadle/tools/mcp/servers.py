"""Which MCP servers an agent has: values, from `NAME=COMMAND`, `NAME=URL`, or a file in the `mcpServers` shape that clients share."""

from __future__ import annotations

import difflib
import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from treadle.core.errors import ConfigurationError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}")
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_KEYS = ("command", "args", "env", "cwd", "url", "headers", "type", "disabled")
_OWN_KEYS = ("readOnlyTools", "includeTools", "excludeTools", "timeoutSeconds", "connectTimeoutSeconds")
_LONGEST_TIMEOUT_S = 24 * 3600.0


def _nothing() -> Mapping[str, str]:
    return {}


@dataclass(frozen=True, kw_only=True)
class MCPServer:
    """One server: a `command` that is talked to over its pipes, or the `url` of one that speaks streamable HTTP.

    `env`, `headers`, `command` and `url` may name variables of the environment as `${NAME}` or `${NAME:-otherwise}`.
    A tool is taken to change something unless `read_only` names it ("*" names all): what the server says of its own
    tools can only make that stricter. `include` and `exclude` choose tools. Times are in seconds; `call_timeout_s`
    bounds one call, `connect_timeout_s` start and handshake. ConfigurationError for what contradicts itself.
    """

    name: str
    command: Sequence[str] = ()
    url: str = ""
    env: Mapping[str, str] = field(default_factory=_nothing)
    headers: Mapping[str, str] = field(default_factory=_nothing)
    cwd: str = ""  # of the command; empty: the workspace
    read_only: Sequence[str] = ()
    include: Sequence[str] | None = None
    exclude: Sequence[str] = ()
    call_timeout_s: float = 120.0
    connect_timeout_s: float = 60.0

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name) or "__" in self.name:
            text = "has 1 to 32 letters, digits, - and _ (no __), and begins with a letter or digit"
            raise ConfigurationError(f"The name of an MCP server {text}; {self.name!r} does not.")
        if bool(self.command) == bool(self.url):
            raise ConfigurationError(f"The MCP server {self.name} needs either a command or a URL.")
        if self.url and not _VARIABLE.search(self.url):
            _check_url(self.name, self.url)
        for what, value in (("timeout", self.call_timeout_s), ("connect timeout", self.connect_timeout_s)):
            if not 0 < value <= _LONGEST_TIMEOUT_S:
                raise ConfigurationError(
                    f"The {what} of the MCP server {self.name} must be above 0 s and at most a day."
                )

    def identity(self) -> list[Any]:
        """What it is known by in a definition's fingerprint; values of the environment are no part of it."""
        return [
            "mcp",
            self.name,
            list(self.command),
            self.url,
            sorted(self.read_only),
            self.include,
            list(self.exclude),
        ]


def expanded(server: str, text: str, environ: Mapping[str, str]) -> str:
    """The text with its variables replaced. ConfigurationError for one that is not set and has no other value."""

    def value(match: re.Match[str]) -> str:
        found = environ.get(match[1], match[2])
        if found is None:  # pyright: ignore[reportUnnecessaryComparison] - a group that did not match is None
            raise ConfigurationError(
                f"The MCP server {server} needs the environment variable {match[1]}, which is not set."
            )
        return found

    return _VARIABLE.sub(value, text)


def server_from_text(text: str) -> MCPServer:
    """`NAME=COMMAND...` or `NAME=URL`. ConfigurationError."""
    name, equals, what = text.partition("=")
    name, what = name.strip(), what.strip()
    if not equals or not what:
        raise ConfigurationError(f"--mcp {text!r} is neither NAME=COMMAND nor NAME=URL.")
    if what.startswith(("http://", "https://")):
        return MCPServer(name=name, url=what)
    try:
        return MCPServer(name=name, command=tuple(shlex.split(what)))
    except ValueError as error:
        raise ConfigurationError(f"--mcp {text!r}: the command cannot be read: {error}") from error


def read_servers(file: Path) -> tuple[MCPServer, ...]:
    """The servers of a file `{"mcpServers": {NAME: {...}}}`, those that are disabled left out. ConfigurationError names file and key."""
    try:
        document: Any = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, ValueError, RecursionError) as error:
        raise ConfigurationError(f"{file}: cannot be read as JSON: {error}") from error
    servers: Any = cast("dict[str, Any]", document).get("mcpServers") if isinstance(document, dict) else None
    if not isinstance(servers, dict):
        raise ConfigurationError(f'{file}: must be an object with "mcpServers", an object of servers by name.')
    found: list[MCPServer] = []
    for name, entry in cast("dict[str, Any]", servers).items():
        where = f"{file}: mcpServers.{name}"
        if not isinstance(entry, dict):
            raise ConfigurationError(f"{where}: must be an object.")
        settings = cast("dict[str, Any]", entry)
        if settings.get("disabled") is not True:
            found.append(_server(where, name, settings))
    return tuple(found)


def _server(where: str, name: str, entry: dict[str, Any]) -> MCPServer:
    for key in entry:
        if key not in (*_KEYS, *_OWN_KEYS) and (meant := difflib.get_close_matches(key, _OWN_KEYS, n=1, cutoff=0.75)):
            raise ConfigurationError(f"{where}.{key}: did you mean {meant[0]!r}?")  # other clients' keys are let be
    kind = entry.get("type")
    if kind not in (None, "stdio", "http", "streamable-http", "streamableHttp"):
        raise ConfigurationError(f"{where}.type: {kind!r} is not supported: stdio and streamable HTTP are.")
    command = _text(where, entry, "command")
    try:
        return MCPServer(
            name=name,
            command=(command, *(_texts(where, entry, "args") or ())) if command else (),
            url=_text(where, entry, "url"),
            env=_mapping(where, entry, "env"),
            headers=_mapping(where, entry, "headers"),
            cwd=_text(where, entry, "cwd"),
            read_only=_texts(where, entry, "readOnlyTools") or (),
            include=_texts(where, entry, "includeTools"),
            exclude=_texts(where, entry, "excludeTools") or (),
            call_timeout_s=_seconds(where, entry, "timeoutSeconds", 120.0),
            connect_timeout_s=_seconds(where, entry, "connectTimeoutSeconds", 60.0),
        )
    except ConfigurationError as error:
        text = str(error)
        raise error if text.startswith(where) else ConfigurationError(f"{where}: {text}") from error


def _check_url(name: str, url: str) -> None:
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        good, parts = False, urlsplit("")
    if not good:
        raise ConfigurationError(f"The MCP server {name} has no usable URL: {url!r} is not http(s)://HOST/PATH.")
    if parts.username or parts.password:
        raise ConfigurationError(
            f"The URL of the MCP server {name} holds a name or password, and it would be stored: "
            'put it into "headers" of an --mcp-config file, as "${VARIABLE}".'
        )


def _text(where: str, entry: dict[str, Any], key: str) -> str:
    value = entry.get(key, "")
    if not isinstance(value, str):
        raise ConfigurationError(f"{where}.{key}: must be a string.")
    return value


def _texts(where: str, entry: dict[str, Any], key: str) -> tuple[str, ...] | None:
    value = entry.get(key)
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(item, str) for item in cast("list[Any]", value)):
        raise ConfigurationError(f"{where}.{key}: must be a list of strings.")
    return tuple(cast("list[str]", value))


def _mapping(where: str, entry: dict[str, Any], key: str) -> dict[str, str]:
    value = entry.get(key, {})
    if not isinstance(value, dict) or not all(isinstance(item, str) for item in cast("dict[str, Any]", value).values()):
        raise ConfigurationError(f"{where}.{key}: must be an object of strings.")
    return cast("dict[str, str]", value)


def _seconds(where: str, entry: dict[str, Any], key: str, otherwise: float) -> float:
    value = entry.get(key, otherwise)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ConfigurationError(f"{where}.{key}: must be a number of seconds.")
    return float(value)
