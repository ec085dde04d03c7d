"""Garbage from a provider, of every kind and on every wire: a Reply or a ProviderError, and never anything else (SE-03)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from fixtures.wire import replay
from treadle.core.codec import encode
from treadle.core.errors import ProviderError
from treadle.models.reply import arguments, whole
from treadle.ports.model import Model, Reply
from treadle.testing import Answer

WIRES = ["openai:gpt-4o", "anthropic:claude-sonnet-4-6", "google:gemini-2.5-pro"]
UNSHRUNK = [Phase.explicit, Phase.reuse, Phase.generate]  # an example is a request: making it smaller takes minutes
KEYS = (
    "choices message content tool_calls function name arguments finish_reason usage prompt_tokens completion_tokens "
    "error type code delta index id text input stop_reason content_block candidates parts functionCall args "
    "finishReason usageMetadata promptTokenCount thoughtSignature reasoning_content refusal model"
).split()
WORDS = (
    "stop length tool_calls tool_use end_turn text thinking content_block_start content_block_delta message_delta "
    'message_start message_stop STOP MALFORMED_FUNCTION_CALL {} {"a": NaN} \\ud800 error'
).split(" ")
LEAVES = (
    st.none() | st.booleans() | st.integers(-5, 10**20) | st.floats() | st.sampled_from(WORDS) | st.text(max_size=5)
)
JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=15,
)


@contextmanager
def asking(name: str) -> Iterator[tuple[replay.Replay, BlockingPortal, Model]]:
    """One server, one event loop and one model for all examples of a test."""
    with replay.Replay(Answer()) as server, start_blocking_portal() as portal:
        model = server.model(name)
        try:
            yield server, portal, model
        finally:
            portal.call(model.close)


def check(server: replay.Replay, portal: BlockingPortal, model: Model, *, stream: bool) -> None:
    async def ask() -> Reply | None:
        try:
            view = replay.view_of(replay.TASK)
            return await model.request(replay.request(view), (lambda _: None) if stream else None)
        except ProviderError:
            return None

    reply = portal.call(ask)
    if reply is not None:
        reply.usage.checked()
        encode(replay.stored(reply))  # what a provider said can always be stored


def mutated(recorded: Any, path: list[int], value: Any) -> Any:
    """The recorded answer with one of its values, at any depth, replaced."""
    if not path or not isinstance(recorded, (dict, list)) or not recorded:
        return value
    keys = list(recorded) if isinstance(recorded, dict) else list(range(len(recorded)))
    key = keys[path[0] % len(keys)]
    copy = dict(recorded) if isinstance(recorded, dict) else list(recorded)
    copy[key] = mutated(recorded[key], path[1:], value)
    return copy


@pytest.mark.req("SE-03")
@pytest.mark.parametrize("name", WIRES)
def test_any_body_is_a_reply_or_a_provider_error(name: str) -> None:
    with asking(name) as (server, portal, model):

        @given(
            status=st.sampled_from([200, 200, 400, 429, 500]), body=JSON | st.binary(max_size=40), stream=st.booleans()
        )
        @settings(suppress_health_check=list(HealthCheck), phases=UNSHRUNK)
        def any_body(status: int, body: Any, stream: bool) -> None:
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            chunks = [b"data: " + data + b"\n\n"] if stream else [data]
            kind = "text/event-stream" if stream else "application/json"
            server.given = Answer(status=status, headers={"content-type": kind}, chunks=chunks, stream=stream)
            check(server, portal, model, stream=stream)

        any_body()


# Google's SDK leaves the generators of a stream that broke to the collector, which may close them twice.
@pytest.mark.filterwarnings("ignore:Exception ignored in.*aiter_:pytest.PytestUnraisableExceptionWarning")
@pytest.mark.req("SE-03")
@pytest.mark.parametrize("name", WIRES)
def test_any_damage_to_a_good_answer_is_a_reply_or_a_provider_error(name: str) -> None:
    wire = name.partition(":")[0]
    good = [replay.case(case)["response"] for case in replay.cases() if case.startswith(wire) and "/4" not in case]
    recorded = [response for response in good if response["status"] == 200]

    with asking(name) as (server, portal, model):

        @given(
            which=st.integers(0, len(recorded) - 1),
            path=st.lists(st.integers(0, 20), min_size=2, max_size=10),
            value=JSON,
            cut=st.booleans(),
        )
        @settings(suppress_health_check=list(HealthCheck), phases=UNSHRUNK)
        def any_damage(which: int, path: list[int], value: Any, cut: bool) -> None:
            response = dict(recorded[which])
            part = "events" if "events" in response else "body"
            response[part] = mutated(response[part], path, value)
            if part == "events":
                response["events"] = [
                    event if isinstance(event, list) and len(event) == 2 else [None, event]
                    for event in (response["events"] if isinstance(response["events"], list) else [])
                ]
                response["events"] = [
                    [name if isinstance(name, str) else None, data] for name, data in response["events"]
                ]
                response["close_early"] = cut
            server.given = replay.answer(response)
            check(server, portal, model, stream=part == "events")

        any_damage()


@given(
    st.text(max_size=60) | st.sampled_from(["[" * 5000, '{"a":' * 5000, '{"a": 1e999}', '{"a": "\\ud800"}', "\ud800"])
)
def test_any_arguments_can_be_stored(text: str) -> None:
    found = arguments(text)
    assert isinstance(found, (dict, str))
    msgspec.json.encode(found)


@given(st.text(alphabet=st.characters(min_codepoint=0xD700, max_codepoint=0xE010), max_size=10))
def test_text_is_made_whole(text: str) -> None:
    whole(text).encode()
    assert whole(whole(text)) == whole(text)


def test_arguments_that_are_no_object_stay_text() -> None:
    assert arguments("[1]") == "[1]"
    assert arguments('{"a": NaN}') == '{"a": NaN}'
    assert arguments("") == {}
    assert arguments('{"a": [1, "x"]}') == {"a": [1, "x"]}
