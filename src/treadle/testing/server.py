"""A local HTTP server whose answers are values: the scripted endpoint and replays of recorded formats stand on it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, Self


class Received(NamedTuple):
    """One request as it arrived. Header names are lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What is sent back. `chunks` are written one by one when `stream` is set, and as one body otherwise.

    `delay_s` comes before the first byte. `hang`: no byte is ever sent. `close_early`: the connection is closed before
    the body is whole; with no chunks, before anything is sent.
    """

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    chunks: Sequence[bytes] = ()
    stream: bool = False
    delay_s: float = 0.0
    hang: bool = False
    close_early: bool = False


Respond = Callable[[Received], Answer]


class LocalServer:
    """Serves `respond` on 127.0.0.1 from threads until it is closed; `respond` is called from many of them at once."""

    def __init__(self, respond: Respond, *, port: int = 0) -> None:
        self._server = _Server(("127.0.0.1", port), respond)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """http://127.0.0.1:PORT, with no slash at its end."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def wait(self) -> None:
        """Returns when the server has been closed."""
        self._thread.join()

    def close(self) -> None:
        """Ends it and every connection that is still open. Idempotent."""
        self._server.stopping.set()
        self._server.shutdown()
        self._server.server_close()
        self._server.drop_connections()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 256

    def __init__(self, address: tuple[str, int], respond: Respond) -> None:
        self.respond = respond
        self.stopping = threading.Event()
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        super().__init__(address, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._open.discard(request)
        super().shutdown_request(request)

    def drop_connections(self) -> None:
        with self._lock:
            left = list(self._open)
        for connection in left:
            try:
                connection.shutdown(socket.SHUT_RDWR)  # wakes the thread that reads from it, which then closes it
            except OSError:  # the peer was faster
                continue

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news; whatever else went wrong shows in the client as a broken answer."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server  # pyright: ignore[reportIncompatibleVariableOverride]  # the base class knows any server

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the base class names it so
        """Nothing: tests and terminals stay quiet."""

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        headers = {name.lower(): value for name, value in self.headers.items()}
        self._send(self.server.respond(Received(self.command, self.path, headers, self.rfile.read(length))))

    do_GET = do_POST  # noqa: N815  # the base class finds methods by these names

    def _send(self, answer: Answer) -> None:
        if answer.delay_s:
            self.server.stopping.wait(answer.delay_s)
        if answer.hang:
            self.server.stopping.wait()
        if answer.hang or (answer.close_early and not answer.chunks):
            self.close_connection = True
            return
        body = b"".join(answer.chunks)
        head = [f"HTTP/1.1 {answer.status} {self.responses.get(answer.status, ('Unknown',))[0]}"]
        head += [f"{name}: {value}" for name, value in answer.headers.items()]
        head.append("transfer-encoding: chunked" if answer.stream else f"content-length: {len(body)}")
        start = ("\r\n".join(head) + "\r\n\r\n").encode("latin-1")
        if answer.stream:
            self._send_chunks(start, answer)
        else:
            self.wfile.write(start + (body[: len(body) // 2] if answer.close_early else body))
        self.close_connection = self.close_connection or answer.close_early

    def _send_chunks(self, start: bytes, answer: Answer) -> None:
        self.wfile.write(start)
        for chunk in answer.chunks:
            if chunk:  # an empty one would end the body
                self.wfile.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
        if not answer.close_early:
            self.wfile.write(b"0\r\n\r\n")
