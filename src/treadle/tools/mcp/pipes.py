"""The transport to a server over its pipes: lines of JSON, within bounds, from a process that cannot outlive the engine."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio

from treadle.tools.conversing import Conversation, conversation

if TYPE_CHECKING:
    from anyio.abc import ByteReceiveStream, ObjectReceiveStream, ObjectSendStream
    from mcp.client._transport import TransportStreams
    from mcp.shared.message import SessionMessage

LONGEST_MESSAGE = 64 * 1024 * 1024  # bytes of one line; what is longer ends the connection
_KEPT_WORDS = 4_000  # bytes of what it last wrote to stderr


class Link:
    """What is known of a server's process besides its messages."""

    def __init__(self) -> None:
        self.ended = False  # it closed its output, or wrote more than may be read
        self.fault = ""  # what it did wrong, in words
        self.strays = 0  # lines on stdout that were no message
        self._words = b""

    def heard(self, chunk: bytes) -> None:
        """Keeps the end of what it writes to stderr."""
        self._words = (self._words + chunk)[-_KEPT_WORDS:]

    @property
    def last_words(self) -> str:
        """The last lines of its stderr, for the message of an error."""
        text = self._words.decode(errors="replace").strip()
        return "\n".join(text.splitlines()[-8:])


@asynccontextmanager
async def piped(
    argv: Sequence[str], cwd: str | os.PathLike[str], env: Mapping[str, str], link: Link
) -> AsyncGenerator[TransportStreams]:
    """Starts the server. OSError where that cannot be done."""
    async with conversation(argv, cwd=cwd, env=env) as talk:
        incoming, received = anyio.create_memory_object_stream["SessionMessage | Exception"](0)
        to_send, outgoing = anyio.create_memory_object_stream["SessionMessage"](0)
        async with anyio.create_task_group() as group:
            group.start_soon(_listen, talk.stdout, incoming, link)
            group.start_soon(_speak, talk, outgoing, incoming, link)
            group.start_soon(_overhear, talk.stderr, link)
            try:
                yield received, to_send
            finally:
                for end in (received, to_send, incoming, outgoing):
                    end.close()
                group.cancel_scope.cancel()


async def _listen(
    stdout: ByteReceiveStream, incoming: ObjectSendStream[SessionMessage | Exception], link: Link
) -> None:
    from mcp.shared.message import SessionMessage
    from mcp_types import jsonrpc_message_adapter

    try:
        async for line in _lines(stdout, link):
            try:
                message = jsonrpc_message_adapter.validate_json(line, by_name=False)
            except ValueError:  # a server that prints what belongs on stderr
                link.strays += 1
                continue
            await incoming.send(SessionMessage(message))
    except (anyio.ClosedResourceError, anyio.BrokenResourceError):  # we have hung up
        return
    finally:
        link.ended = True
        await incoming.aclose()


async def _lines(stdout: ByteReceiveStream, link: Link) -> AsyncIterator[bytes]:
    """Lines, without copying what has come of one for each piece of it."""
    pieces: list[bytes] = []
    size = 0
    while True:
        try:
            chunk = await stdout.receive()
        except anyio.EndOfStream:
            return
        *whole, rest = chunk.split(b"\n")
        for piece in whole:
            yield b"".join((*pieces, piece))
            pieces, size = [], 0
        pieces.append(rest)
        size += len(rest)
        if size > LONGEST_MESSAGE:
            link.fault = f"it sent more than {LONGEST_MESSAGE // 1024 // 1024} MiB as one message"
            return


async def _speak(
    talk: Conversation,
    outgoing: ObjectReceiveStream[SessionMessage],
    incoming: ObjectSendStream[SessionMessage | Exception],
    link: Link,
) -> None:
    try:
        async for sent in outgoing:
            text = sent.message.model_dump_json(by_alias=True, exclude_unset=True)
            await talk.stdin.send(text.encode() + b"\n")
    except (anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
        link.ended = True
        await incoming.aclose()  # waiting requests see that the connection has ended


async def _overhear(stderr: ByteReceiveStream, link: Link) -> None:
    try:
        async for chunk in stderr:
            link.heard(chunk)
    except (anyio.ClosedResourceError, anyio.BrokenResourceError):
        return
