"""The twenty patterns that a loop is made of, as data: one card a file, and the loop objects that they hand to one another."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from treadle.core.errors import InputError
from treadle.core.values import Value

Stage = Literal["control", "foundation", "perceive", "reason", "act", "verify", "learn"]
Text = Annotated[str, Meta(min_length=1, max_length=1_000)]
OUTSIDE: dict[str, str] = {
    "task": "what is to be done",
    "workspace": "the folder to work in",
    "model": "a model that acts",
    "person": "whoever steers",
    "Budget": "limits; those that are left out have their defaults",
}
"""What comes from the file, the command line or a person, and from no pattern."""


class Card(Value, frozen=True, kw_only=True):
    """One pattern. `inputs` and `outputs` are names of OBJECTS and of OUTSIDE; `keys` are paths of the loop file that ask for it."""

    id: Annotated[str, Meta(pattern=r"^agent-\d\d$")]
    name: Text
    stage: Stage
    intent: Text
    wiring: Text
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    when: Literal[
        "model", "perceive", "plan"
    ]  # it is at work where a model acts; and there is that section, or that key is true
    keys: tuple[str, ...] = ()
    pitfall: Text
    test: Text  # file::name of the test that shows that Treadle does not fall into it

    @property
    def requirement(self) -> str:
        """The requirement that it answers: that of its number."""
        return f"AG-{self.id[-2:]}"


class LoopObject(Value, frozen=True, kw_only=True, rename={"others": "with"}):
    """What patterns hand to one another, and the type that does its work, as module:attribute."""

    type: str
    others: tuple[str, ...] = ()  # types and functions that work with it
    does: str


@cache
def cards() -> tuple[Card, ...]:
    """All of them, by number."""
    found = [one for one in files(__name__).iterdir() if re.fullmatch(r"agent-\d\d\.yaml", one.name)]
    return tuple(msgspec.convert(_read(one), Card) for one in sorted(found, key=lambda one: one.name))


@cache
def objects() -> dict[str, LoopObject]:
    """The loop objects by name, in the order of the page."""
    return msgspec.convert(_read(files(__name__) / "objects.yaml"), dict[str, LoopObject])


def card(name: str) -> Card:
    """By its id or its number. InputError for one that there is not."""
    number = re.fullmatch(r"(?:agent-)?0?(\d{1,2})", name.strip(), re.ASCII)
    found = next((one for one in cards() if number and one.id == f"agent-{int(number[1]):02}"), None)
    if found is None:
        raise InputError(
            f"There is no pattern {name!r:.60}. There are 1 to {len(cards())}: treadle patterns lists them."
        )
    return found


def _read(file: Any) -> Any:
    from ruamel.yaml import YAML

    reader: Any = YAML(typ="safe")
    return reader.load(file.read_text(encoding="utf-8"))
