"""Where the service tells what the executions of this process do, besides the ledger and the page: sinks to attach and detach."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

from treadle.app.observing import open_sinks
from treadle.core.errors import ConfigurationError, InputError
from treadle.ports.observer import Observer, Progress
from treadle.settings import Settings


@dataclass(frozen=True, slots=True)
class Satellite:
    """A sink that may be attached. `where`: what it writes to, in words."""

    name: str
    where: str
    attached: bool


class Switchboard(Observer):
    """An observer that passes on to whichever sinks are attached now."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._file = settings.state_dir / "observed.jsonl"
        self._attached: dict[str, tuple[Observer, ...]] = {}

    def satellites(self) -> list[Satellite]:
        """All there are."""
        known = (("record", str(self._file)), ("terminal", "where the studio runs"), ("otel", "OpenTelemetry"))
        return [Satellite(name, where, name in self._attached) for name, where in known]

    def attach(self, name: str) -> None:
        """From now on it is told. InputError for what is no sink, or cannot be opened."""
        openers: dict[str, str] = {"record": f"json:{self._file}", "terminal": "stderr", "otel": "otel"}
        if name not in openers:
            raise InputError(f"There is no sink {name!r:.60}. There are {', '.join(openers)}.")
        if name in self._attached:
            return
        self._file.parent.mkdir(parents=True, exist_ok=True)
        try:
            opened = open_sinks((openers[name],), self._settings, sys.stderr)
        except (ConfigurationError, ImportError) as error:
            raise InputError(f"The sink {name} cannot be opened: {error}") from error
        self._attached = {**self._attached, name: (opened.view, *opened.others)}

    def detach(self, name: str) -> None:
        """It is told no more, and writes what it has."""
        gone = self._attached.get(name, ())
        self._attached = {key: sinks for key, sinks in self._attached.items() if key != name}
        for sink in gone:
            sink.close()

    def notify(self, progress: Progress) -> None:
        """Tells those that are attached."""
        self._each(lambda sink: sink.notify(progress))

    def flush(self) -> None:
        """The same."""
        self._each(lambda sink: sink.flush())

    def close(self) -> None:
        """Detaches all."""
        for name in list(self._attached):
            self.detach(name)

    def _each(self, tell: Callable[[Observer], None]) -> None:
        for sinks in self._attached.values():
            for sink in sinks:
                tell(sink)
