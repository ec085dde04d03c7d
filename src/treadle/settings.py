"""The only reader of environment and configuration files.

Flags win over the environment, that over the workspace's file, that over the user's.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from treadle.core.errors import ConfigurationError
from treadle.core.settings import Guards, with_guards

KNOWN = (
    "store",
    "model",
    "base_url",
    "price",
    "check",
    "max_rounds",
    "max_cost",
    "max_time",
    "max_turns",
    "map_budget",
    "protect",
    "notify",
    "sinks",
    "engine",
    "address",
    "mcp_config",
    "guard",
    "escalate_to",
    "window",
    "compact",
    "compact_at",
    "lessons",
)
WORKSPACE_FILE = Path(".treadle") / "config.toml"
# A workspace may come from anybody: its file can send no key elsewhere, run nothing on its own and move no store.
WORKSPACE_KNOWN = (
    "model",
    "check",
    "max_rounds",
    "max_cost",
    "max_time",
    "max_turns",
    "map_budget",
    "protect",
    "guard",
    "window",
    "compact",
    "compact_at",
    "lessons",
)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Where things are and what is taken when nothing is said."""

    environ: Mapping[str, str]
    state_dir: Path
    defaults: Mapping[str, Any] = field(default_factory=dict[str, Any])
    crash_at: str = ""  # tests only: the crash point at which this process kills itself

    @property
    def guards(self) -> Mapping[str, int]:
        """Thresholds of guards by name, for every loop that says nothing else. ConfigurationError."""
        return guard_thresholds(self.defaults.get("guard") or {})

    @property
    def store_url(self) -> str:
        """The store that is used when none is named: one for the user, so that `treadle ls` shows everything."""
        return str(self.defaults.get("store") or f"sqlite:///{self.state_dir / 'treadle.db'}")


def load_settings(workspace: Path | None = None, environ: Mapping[str, str] | None = None) -> Settings:
    """Reads the environment and both configuration files. ConfigurationError names the file and the key."""
    from platformdirs import user_config_path, user_state_path

    environ = os.environ if environ is None else environ
    state_dir = Path(environ["TREADLE_STATE"]) if environ.get("TREADLE_STATE") else user_state_path("treadle")
    config = environ.get("TREADLE_CONFIG")
    defaults = _read(Path(config) if config else user_config_path("treadle") / "config.toml", KNOWN)
    if workspace is not None:
        defaults |= _read(workspace / WORKSPACE_FILE, WORKSPACE_KNOWN)
    for name in KNOWN:
        if value := environ.get(f"TREADLE_{name.upper()}"):
            defaults[name] = value
    return Settings(
        environ=environ, state_dir=state_dir, defaults=defaults, crash_at=environ.get("TREADLE_CRASH_AT", "")
    )


def map_cache(environ: Mapping[str, str] | None = None) -> Path:
    """The folder in which maps of workspaces keep what they have read. It may be deleted at any time."""
    from platformdirs import user_cache_path

    environ = os.environ if environ is None else environ
    return (Path(environ["TREADLE_CACHE"]) if environ.get("TREADLE_CACHE") else user_cache_path("treadle")) / "maps"


def guard_thresholds(given: Any) -> dict[str, int]:
    """From a table of names to numbers, or texts NAME=N (one, several, or split by commas). ConfigurationError."""
    if isinstance(given, Mapping):
        pairs = list(cast("Mapping[Any, Any]", given).items())
    else:
        texts: list[Any] = [given] if isinstance(given, str) else list(given)
        pairs = [_threshold(part) for text in texts for part in str(text).split(",")]
    chosen = {str(name).strip(): value for name, value in pairs}
    with_guards(Guards(), chosen)
    return chosen


def _threshold(text: str) -> tuple[str, int]:
    name, equals, number = text.strip().partition("=")
    if not equals or not number.strip().isdecimal() or len(number) > 9:
        raise ConfigurationError(f"{text!r} is no guard with its threshold. Example: --guard repeat=6 (0: off)")
    return name.strip(), int(number)


def _read(file: Path, known: tuple[str, ...]) -> dict[str, Any]:
    if file.exists() and not file.is_file():  # a pipe would be waited for
        raise ConfigurationError(f"{file}: is no ordinary file.")
    try:
        values = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigurationError(f"{file}: cannot be read: {error}") from error
    if unknown := sorted(set(values) - set(known)):
        raise ConfigurationError(f"{file}: unknown setting {unknown[0]!r}. Known here: {', '.join(known)}.")
    return values
