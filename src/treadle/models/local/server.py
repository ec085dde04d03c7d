"""The local model's OpenAI-compatible endpoint, on loopback only: python -m treadle.models.local.server [--port N]

It prints its base URL once it is ready.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from treadle.core.errors import ConfigurationError

from . import MODEL_NAME
from .completion import error_body, event_stream
from .engine import LOOPBACK, Engine, load
from .request import UnsupportedRequest, read_request
from .weights import model_file

_MAX_BODY = 4 << 20
_MODELS = {
    "object": "list",
    "data": [{"id": MODEL_NAME, "object": "model", "created": 0, "owned_by": "treadle"}],
}


class Endpoint(ThreadingHTTPServer):
    """Connections have threads of their own; the engine takes them one at a time. It has to be set before serving."""

    daemon_threads = True

    engine: Engine

    def __init__(self, port: int) -> None:
        super().__init__((LOOPBACK, port), _Handler)

    @property
    def base_url(self) -> str:
        """What a client is given."""
        return f"http://{LOOPBACK}:{self.server_port}/v1"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Endpoint  # pyright: ignore[reportIncompatibleVariableOverride]

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base's own name
        """Says nothing: standard output is for the base URL alone."""

    def do_GET(self) -> None:
        """The list of models, of one."""
        if self.path == "/v1/models":
            self._send(HTTPStatus.OK, _MODELS)
        else:
            self._not_found()

    def do_POST(self) -> None:
        """A chat completion."""
        length = self.headers.get("content-length", "")
        if not length.isdecimal() or int(length) > _MAX_BODY:
            self.close_connection = True
            return self._send(HTTPStatus.BAD_REQUEST, error_body(f"a body of at most {_MAX_BODY} bytes is needed"))
        body = self.rfile.read(int(length))
        if self.path != "/v1/chat/completions":
            return self._not_found()
        try:
            request = read_request(body)
        except UnsupportedRequest as error:
            return self._send(HTTPStatus.BAD_REQUEST, error_body(str(error)))
        status, answer = self.server.engine.answer(request)
        if status == HTTPStatus.OK and request.stream:
            usage = request.stream_options is not None and request.stream_options.include_usage
            return self._write(status, "text/event-stream", event_stream(answer, usage=usage))
        return self._send(status, answer)

    def _not_found(self) -> None:
        self._send(HTTPStatus.NOT_FOUND, error_body(f"no such page: {self.path}", code="not_found"))

    def _send(self, status: HTTPStatus, answer: dict[str, Any]) -> None:
        self._write(status, "application/json", json.dumps(answer).encode())

    def _write(self, status: HTTPStatus, kind: str, payload: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)


def _end_with_stdin() -> None:
    """Ends the process when standard input closes, as it does however the parent dies. There is nothing to save."""
    while os.read(sys.stdin.fileno(), 4096):
        pass
    os._exit(0)


def main() -> int:
    """Serves until it is stopped. 2 where it cannot start."""
    parser = argparse.ArgumentParser(prog="python -m treadle.models.local.server", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0: any that is free")
    parser.add_argument("--threads", type=int, default=1, help="more than there are idle cores make it slower")
    parser.add_argument("--end-with-stdin", action="store_true", help="end when standard input closes")
    options = parser.parse_args()
    if options.end_with_stdin:
        threading.Thread(target=_end_with_stdin, daemon=True).start()
    try:
        weights = model_file()
        endpoint = Endpoint(options.port)
    except (ConfigurationError, OSError, OverflowError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    endpoint.engine = Engine(load(weights, options.threads))
    sys.stdout.write(f"{endpoint.base_url}\n")
    sys.stdout.flush()
    try:
        endpoint.serve_forever()
    except KeyboardInterrupt:
        os._exit(130)  # threads of the library outlive every other way out
    return 0


if __name__ == "__main__":
    sys.exit(main())
