"""`treadle studio`: serves the canvas and its API from this machine."""

from __future__ import annotations

import logging
import sys
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING

import anyio

from treadle.core.errors import ConfigurationError

from .arguments import Namespace, Parser
from .person import speaker
from .values import named

if TYPE_CHECKING:
    import uvicorn

    from treadle.server.feed import Feed
    from treadle.server.security import Access
    from treadle.server.studio import Studio
    from treadle.spec.commandline import CommandLineLoop
    from treadle.spec.loopfile import LoopFile

    from .place import Place

HOST, PORT = "127.0.0.1", 8765
GRACE_S = 2
BACKLOG = 128


def parser(name: str) -> Parser:
    """Its arguments."""
    made = Parser(
        name,
        studio,
        "Compose, watch and steer loops in a browser. Prints a link with a token, once; it is good as long as this runs.\n\n"
        "Only this machine can reach it, unless --host says otherwise. Loops that run elsewhere on the same store, in\n"
        "other processes or workers, are seen and steered as well.",
    )
    made.option("--host", metavar="ADDRESS", default=HOST, help=f"where to listen (default: {HOST}, this machine only)")
    made.option("--port", metavar="N", type=_port, default=PORT, help=f"0 takes any free one (default: {PORT})")
    made.flag("--open", help="open the link in a browser")
    made.flag("--example", help="start an example loop with a scripted model, to try everything on")
    return made.workspace().actor().store()


def _port(value: str) -> int:
    if not value.isascii() or not value.isdigit() or int(value) > 65_535:
        raise ConfigurationError(f"--port {value!r} is no port: 0 to 65535.")
    return int(value)


_port = named(_port, "port")  # pyright: ignore[reportAssignmentType]


def studio(given: Namespace) -> int:
    """Serves until it is interrupted."""
    from .place import place

    try:
        import fastapi  # noqa: F401  # pyright: ignore[reportUnusedImport]
        import uvicorn  # noqa: F401  # pyright: ignore[reportUnusedImport]
    except ImportError as error:
        raise ConfigurationError("The studio needs its extra: pip install 'treadle[studio]'") from error
    folder = (given.workspace or Path()).expanduser().resolve()
    if not folder.is_dir():
        raise ConfigurationError(f"The workspace {folder} is not a folder.")
    where = place(given.store, folder)
    serve = partial(_serve, where, folder, given.host, given.port, speaker(given.actor))
    return anyio.run(partial(serve, open_it=given.open, example=given.example))


async def _serve(where: Place, folder: Path, host: str, port: int, actor: str, *, open_it: bool, example: bool) -> int:
    import time

    from treadle.app.observing import Bus
    from treadle.server.feed import Feed
    from treadle.server.follower import Follower
    from treadle.server.security import Access, is_loopback
    from treadle.server.sinks import Switchboard
    from treadle.server.studio import Studio

    from .output import warn
    from .place import running

    bus = Bus(16_384)
    listening = _listen(host, port)
    with listening:
        access = Access.new(host, listening.getsockname()[1])
        board = Switchboard(where.settings)
        async with running(where, create=True, observers=(bus, board)) as runtime:
            follower = Follower(runtime.ledger, bus, Feed(start=time.time_ns() // 1_000))
            define = partial(_define, where=where, folder=folder)
            made = Studio(runtime, follower, workspace=folder, actor=actor, define=define, notes=warn, sinks=board)
            if not is_loopback(host):
                warn(
                    f"anybody who reaches {host} and has the link can steer your loops; the connection is not encrypted."
                )
            try:
                await _run(made, access, listening.fileno(), open_it=open_it, example=example)
            finally:
                board.close()
    return 0


async def _run(made: Studio, access: Access, socket: int, *, open_it: bool, example: bool) -> None:
    import uvicorn

    from treadle.server.asgi import guarded

    config = uvicorn.Config(
        guarded(made, access),
        fd=socket,
        log_level="warning",
        access_log=False,
        lifespan="on",
        timeout_graceful_shutdown=GRACE_S,
        server_header=False,
    )
    logging.getLogger("uvicorn.error").addFilter(_is_news)
    sys.stdout.write(f"{access.link}\n")
    sys.stdout.flush()
    if open_it:
        import webbrowser

        webbrowser.open(access.link)
    with ExitStack() as stack:
        if example:
            made.on_start = partial(_example, made, stack)
        await _until_signal(uvicorn.Server(config), made.follower.feed)


def _is_news(record: logging.LogRecord) -> bool:
    """A viewer that stood still was cut off on purpose, and comes back by itself: nobody's error."""
    return "without completing response" not in record.getMessage()


async def _until_signal(server: uvicorn.Server, feed: Feed) -> None:
    """Serves until Ctrl-C or SIGTERM; streams end first, and what runs here is handed back by the service itself."""
    import signal
    from contextlib import nullcontext

    server.capture_signals = nullcontext  # type: ignore[method-assign]

    async def stop() -> None:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as received:
            async for _ in received:
                feed.close()
                server.force_exit, server.should_exit = server.should_exit, True

    async with anyio.create_task_group() as group:
        group.start_soon(stop)
        await server.serve()
        group.cancel_scope.cancel()


async def _example(made: Studio, stack: ExitStack) -> None:
    from treadle.demo.studio import answer, prepare, sample
    from treadle.spec.loopyaml import parse
    from treadle.testing import ScriptedEndpoint

    prepare(made.workspace)
    endpoint = stack.enter_context(ScriptedEndpoint(answer))
    granted = await made.start(parse(sample(endpoint.url), name="sample.yaml"), "", key=token_hex(8))
    made.example = granted.execution_id


def _listen(host: str, port: int):  # noqa: ANN202
    import socket

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(BACKLOG)  # whoever opens the link at once waits a moment and is not refused
    except OSError as error:
        listening.close()
        raise ConfigurationError(
            f"Cannot listen on {host}:{port}: {error.strerror or error}. Choose another: --port N (0: any free one)."
        ) from error
    return listening


def _define(file: LoopFile, *, where: Place, folder: Path) -> CommandLineLoop:
    from .loopfile import define

    return define(file, {}, where.settings.defaults, folder)
