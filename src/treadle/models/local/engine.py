"""The weights, loaded: llama.cpp in this process, one request after another."""

from __future__ import annotations

import secrets
import threading
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Protocol

from . import MODEL_NAME
from .completion import completion, error_body, llama_query, offered_functions
from .request import ChatRequest, UnsupportedRequest

if TYPE_CHECKING:
    from pathlib import Path

LOOPBACK = "127.0.0.1"
CONTEXT_TOKENS = 8192  # what the model was trained for
_CACHE_MIB = 256


class Llama(Protocol):
    """llama.cpp's server, as far as it is used here."""

    def handle_chat_completions(self, query: dict[str, Any], /) -> dict[str, Any]:
        """Runs a request to its end: a completion, or `error`."""
        ...


def load(weights: Path, threads: int) -> Llama:
    """The weights ready for use, after about a second."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(weights)
    params.n_ctx, params.n_parallel, params.cache_ram_mib = CONTEXT_TOKENS, 1, _CACHE_MIB
    params.use_jinja, params.warmup, params.fit_params = True, False, False
    params.verbosity = 1
    # The library opens a port of its own besides: nobody knows the key to it.
    params.hostnames, params.port, params.api_keys = [LOOPBACK], 0, [secrets.token_hex(16)]
    for cpu in (params.cpuparams, params.cpuparams_batch):
        cpu.n_threads, cpu.poll = threads, 0
    return xllamacpp.Server(params)


class Engine:
    """Answers chat completions, one at a time: others wait for their turn.

    The prompt of the last request is kept, so that a conversation which goes on is not read again.
    """

    def __init__(self, llama: Llama) -> None:
        self._llama, self._turn = llama, threading.Lock()

    def answer(self, request: ChatRequest) -> tuple[HTTPStatus, dict[str, Any]]:
        """The completion, or why there is none."""
        try:
            offered = offered_functions(request)
            query = llama_query(request, offered)
        except UnsupportedRequest as error:
            return HTTPStatus.BAD_REQUEST, error_body(str(error))
        with self._turn:
            answer: dict[str, Any] = self._llama.handle_chat_completions(query)
        if "error" not in answer:
            return HTTPStatus.OK, completion(answer, offered, MODEL_NAME)
        fault = answer["error"]
        if fault["type"] == "exceed_context_size_error":
            return HTTPStatus.BAD_REQUEST, error_body(fault["message"], code="context_length_exceeded")
        if fault["code"] == HTTPStatus.BAD_REQUEST:
            return HTTPStatus.BAD_REQUEST, error_body(fault["message"])
        return HTTPStatus.INTERNAL_SERVER_ERROR, error_body(fault["message"], "server_error")
