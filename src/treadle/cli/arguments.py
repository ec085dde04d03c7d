"""Arguments of a subcommand, and those that several share. argparse, since it is there at once: see main."""

from __future__ import annotations

import argparse
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, Self

from treadle.core.errors import ConfigurationError
from treadle.core.settings import guard_names
from treadle.settings import guard_thresholds

from .values import whole

__all__ = ["Namespace", "Parser", "Words"]

Run = Callable[[Namespace], int]


class Row(NamedTuple):
    """One argument, as typed and in words."""

    name: str
    help: str
    section: str = ""


class Thresholds(argparse.Action):
    """Gathers NAME=N into one mapping. ConfigurationError for anything else."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: Namespace, values: Any, option_string: str | None = None
    ) -> None:
        known: dict[str, int] = getattr(namespace, self.dest) or {}
        setattr(namespace, self.dest, {**known, **guard_thresholds(values)})


class Words(argparse.Action):
    """Takes words that say something. ConfigurationError where what was typed is empty: that is not the same as nothing."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: Namespace, values: Any, option_string: str | None = None
    ) -> None:
        """Keeps them without white space around."""
        if not (said := str(values).strip()):
            raise ConfigurationError(f"{option_string} is empty: say something, or leave it out.")
        setattr(namespace, self.dest, said)


class Parser(argparse.ArgumentParser):
    """The parser of one subcommand. `run` gets what was parsed and gives the exit code."""

    def __init__(self, name: str, run: Run, description: str) -> None:
        super().__init__(
            prog=f"treadle {name}",
            description=description,
            allow_abbrev=False,  # an abbreviation would mean something else once there is a new flag
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        self.rows: list[Row] = []  # what the reference page says
        self._section: Any = None  # where argparse shows the next argument
        self.set_defaults(run=run)

    def error(self, message: str) -> NoReturn:
        """Like every other mistake in what was typed."""
        raise ConfigurationError(f"{message}. See {self.prog} --help.")

    def add_argument(self, *names: str, **more: Any) -> argparse.Action:
        """As argparse does; noted for the reference page, unless it is hidden."""
        section = getattr(self, "_section", None)  # argparse adds --help before there can be one
        action = section.add_argument(*names, **more) if section else super().add_argument(*names, **more)
        if action.help and action.help != argparse.SUPPRESS and "--help" not in names and hasattr(self, "rows"):
            metavar = str(action.metavar or "")
            shown = ", ".join(f"{name} {metavar}".rstrip() for name in action.option_strings) or metavar
            self.rows.append(Row(shown, action.help, section.title if section else ""))
        return action

    def section(self, title: str) -> Self:
        """What is added from now on stands under this title: for a command with more options than one reads at once."""
        self._section = self.add_argument_group(title)
        self.usage = f"{self.prog} [OPTIONS]" + "".join(
            f" [{a.metavar}]" for a in self._actions if not a.option_strings
        )
        return self

    def option(self, *flags: str, metavar: str, help: str, **more: Any) -> Self:  # noqa: A002 - argparse's word
        """An option with a value."""
        self.add_argument(*flags, metavar=metavar, help=help, **more)
        return self

    def flag(self, *flags: str, help: str) -> Self:  # noqa: A002 - argparse's word
        """An option without one."""
        self.add_argument(*flags, action="store_true", help=help)
        return self

    def execution(self) -> Self:
        """Which execution is meant."""
        self.add_argument("execution", metavar="EXEC", help="its id, a unique beginning of it, or 'last'")
        return self

    def store(self) -> Self:
        """Where it is kept."""
        return self.option(
            "--store",
            metavar="URL",
            help="sqlite:///FILE or postgresql://… (default: a file of your own, which treadle doctor names)",
        )

    def json(self) -> Self:
        """For programs."""
        return self.flag("--json", help="print JSON on stdout, and nothing else there")

    def quiet(self) -> Self:
        """For scripts."""
        return self.flag("-q", "--quiet", help="no progress and no banner; a failure is one line")

    def sinks(self) -> Self:
        """Who hears of progress."""
        return self.option(
            "--sink",
            dest="sinks",
            metavar="SINK",
            action="append",
            help="where progress goes: stderr (the default), json:FILE, otel, none; may be repeated",
        )

    def actor(self) -> Self:
        """Who says something."""
        return self.option(
            "--as", dest="actor", metavar="NAME", action=Words, default="", help="who says so (default: your user name)"
        )

    def reason(self, what: str) -> Self:
        """Why it is said."""
        return self.option("--reason", metavar="TEXT", action=Words, default="", help=what)

    def round(self) -> Self:
        """One round of it."""
        return self.option("--round", metavar="N", type=whole("--round"), help="only this round")

    def guard(self) -> Self:
        """Thresholds of guards."""
        return self.option(
            "--guard",
            metavar="NAME=N",
            action=Thresholds,
            help="when a guard trips; may be repeated; 0 is off. NAME: " + ", ".join(guard_names()),
        )

    def workspace(self) -> Self:
        """The folder."""
        return self.option(
            "--workspace", metavar="DIR", type=Path, help="the folder to work in (default: the current one)"
        )

    def notify(self) -> Self:
        """Who is told."""
        return self.option("--notify", metavar="CMD|URL", help="told as JSON when it waits, pauses or has ended")
