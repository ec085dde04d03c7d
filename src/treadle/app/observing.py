"""What observes executions of this process, as named on the command line: which sinks, and the view among them (AG-18)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from treadle.core.errors import ConfigurationError
from treadle.core.redaction import Redactor, secrets_of
from treadle.ports.observer import Observer
from treadle.settings import Settings
from treadle.telemetry.bus import Bus, Ring, Subscription
from treadle.telemetry.throughput import Snapshot, Throughput, Window

from .views import View, progress_view

__all__ = ["Bus", "Ring", "Sinks", "Snapshot", "Subscription", "Throughput", "Window", "open_sinks"]

SINKS = ("stderr", "json:FILE", "otel", "none")


@dataclass(frozen=True, slots=True)
class Sinks:
    """The view at the terminal, and whatever else is told. Close both."""

    view: View
    others: tuple[Observer, ...]

    def close(self) -> None:
        """Everything that waits is written, as far as there is time."""
        self.view.close()
        for observer in self.others:
            observer.close()


def open_sinks(names: Sequence[str], settings: Settings, stderr: TextIO, *, quiet: bool = False) -> Sinks:
    """The sinks with these names; none named: stderr. ConfigurationError for what is no sink, or cannot be opened."""
    names = tuple(dict.fromkeys(names)) or ("stderr",)
    if "none" in names and len(names) > 1:
        raise ConfigurationError("--sink none is given beside another one: leave one of them out.")
    redact = Redactor(secrets_of(settings.environ)).redact
    with ExitStack() as opened:
        others = [_opened(opened, name, settings, redact) for name in names if name not in ("stderr", "none")]
        opened.pop_all()
    return Sinks(progress_view(stderr, quiet=quiet or "stderr" not in names), tuple(others))


def _opened(stack: ExitStack, name: str, settings: Settings, redact: Callable[[str], str]) -> Observer:
    kind, _, rest = name.partition(":")
    if kind == "json" and rest:
        made = _json_lines(Path(rest).expanduser(), redact)
    elif name == "otel":
        from treadle.telemetry.otel import traces

        made = traces(settings.environ, redact)
    else:
        raise ConfigurationError(f"There is no sink {name!r}. There are {', '.join(SINKS)}.")
    stack.callback(made.close)
    return made


def _json_lines(path: Path, redact: Callable[[str], str]) -> Observer:
    from treadle.telemetry.sinks import Aside, JsonLines

    if str(path) == "-":
        raise ConfigurationError("--sink json:- would mix with what stdout carries. Name a file.")
    try:
        stream = path.open("ab")
    except OSError as error:
        raise ConfigurationError(f"--sink json:{path}: it cannot be written: {error.strerror}.") from error
    return Aside(JsonLines(stream, redact=redact, owned=True))
