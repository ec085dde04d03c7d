"""Asks a person at the terminal what an execution waits with."""

from __future__ import annotations

import os
import sys
from typing import Literal, Protocol, TextIO

import anyio

from treadle.core.spoken import plain
from treadle.core.values import replace
from treadle.kernel.steering import Answer

Decision = Literal["answer", "approve", "reject"]


class Asked(Protocol):
    """A question, of a loop or of a task of a workflow. Its kind is `question` where a decision is not enough."""

    @property
    def id(self) -> str:
        """What an answer names."""
        ...

    @property
    def kind(self) -> str:
        """Of what sort it is."""
        ...

    @property
    def prompt(self) -> str:
        """In words."""
        ...

    @property
    def choices(self) -> tuple[str, ...]:
        """Empty: any text."""
        ...


class Later(Exception):
    """The person leaves it for later."""


class Terminal:
    """Lines that a person types. Waiting for one can be cancelled, and what was typed is then not lost."""

    def __init__(self, stdin: int, stream: TextIO, actor: str) -> None:
        self._stdin, self._stream, self._actor = stdin, stream, actor
        self._buffer = b""

    async def ask(self, pending: Asked | None) -> Answer:
        """The person's answer. Later: none for now."""
        if pending is None:
            raise Later
        self._stream.write(f"\n{plain(pending.prompt)}\n")
        if pending.kind == "question":
            return self._answer(pending, "answer", await self._one_of(pending.choices))
        if pending.kind == "plan":
            return await self._plan(pending)
        word = await self._word("Accept? [y]es, [n]o, [l]ater: ", {"y": "approve", "n": "reject"})
        if word == "approve":
            return self._answer(pending, "approve", "")
        reason = ""
        while not reason:
            reason = await self._line("What is to be done better? ")
        return self._answer(pending, "reject", reason)

    async def _plan(self, pending: Asked) -> Answer:
        words = {"y": "approve", "n": "reject", "e": "end"}
        word = await self._word("Approve it? [y]es, [n]o, [e]nd it here, [l]ater: ", words)
        if word == "approve":
            return self._answer(pending, "approve", "")
        if word == "end":
            return replace(self._answer(pending, "reject", ""), end=True)
        reason = ""
        while not reason:
            reason = await self._line("What is wrong with it? ")
        return self._answer(pending, "reject", reason)

    def _answer(self, pending: Asked, decision: Decision, text: str) -> Answer:
        return Answer(request_id=pending.id, decision=decision, text=text, actor=self._actor)

    async def _one_of(self, choices: tuple[str, ...]) -> str:
        for number, choice in enumerate(choices, 1):
            self._stream.write(f"  {number}  {plain(choice)}\n")
        while True:
            text = await self._line("Answer ([l]ater leaves it): ")
            if text.lower() in ("l", "later"):
                raise Later
            if choices and text.isdigit() and 1 <= int(text) <= len(choices):
                return choices[int(text) - 1]
            if text and (not choices or text in choices):
                return text

    async def _word(self, prompt: str, words: dict[str, str]) -> str:
        while True:
            typed = (await self._line(prompt)).lower()[:1]
            if typed == "l":
                raise Later
            if typed in words:
                return words[typed]

    async def _line(self, prompt: str) -> str:
        self._stream.write(prompt)
        self._stream.flush()
        while b"\n" not in self._buffer:
            await anyio.wait_readable(self._stdin)
            more = os.read(self._stdin, 4096)
            if not more:
                raise Later
            self._buffer += more
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line.decode(errors="replace").strip()


def terminal(actor: str) -> Terminal | None:
    """The terminal, where a person sits at both ends of it."""
    if sys.stdin is None or not sys.stdin.isatty() or not sys.stderr.isatty():  # pyright: ignore[reportUnnecessaryComparison]
        return None
    return Terminal(sys.stdin.fileno(), sys.stderr, actor)
