"""Recorded wire formats of the three kinds of provider: what is sent, what is made of the answer, of every failure."""

from __future__ import annotations

from contextlib import nullcontext
from decimal import Decimal
from typing import Any

import anyio
import pytest

from fixtures.wire import replay
from treadle.core.errors import ProviderError
from treadle.core.usage import Usage
from treadle.models.prices import parse_price
from treadle.ports.model import Reply

PRICE = parse_price("2,8,0.5,2.5")


async def ask(recorded: dict[str, Any], server: replay.Replay, deltas: list[str]) -> Reply:
    model = server.model(recorded["model"], price=PRICE)
    view = replay.view_of(*replay.CONVERSATIONS[recorded["conversation"]])
    try:
        return await model.request(replay.request(view), deltas.append if recorded["stream"] else None)
    finally:
        await model.close()


@pytest.mark.req("LG-04", "TC-05")
@pytest.mark.parametrize("name", replay.cases())
def test_one_request_is_sent_whatever_is_answered(name: str) -> None:
    recorded = replay.case(name)
    with replay.Replay(replay.answer(recorded["response"])) as server:
        with nullcontext() if "reply" in recorded else pytest.raises(ProviderError):
            anyio.run(ask, recorded, server, [])
        assert len(server.received) == 1
        assert server.received[0].headers["idempotency-key"] == "execution:1.act.3.1"


@pytest.mark.parametrize("name", [name for name in replay.cases() if "request" in replay.case(name)])
def test_the_request_has_the_providers_form(name: str) -> None:
    recorded = replay.case(name)
    with replay.Replay(replay.answer(recorded["response"])) as server:
        anyio.run(ask, recorded, server, [])
        assert server.body() == recorded["request"]


@pytest.mark.parametrize("name", [name for name in replay.cases() if "reply" in replay.case(name)])
def test_a_good_answer_becomes_a_reply(name: str) -> None:
    recorded = replay.case(name)
    deltas: list[str] = []
    with replay.Replay(replay.answer(recorded["response"])) as server:
        reply = anyio.run(ask, recorded, server, deltas)
    expected = recorded["reply"]
    assert reply.text == expected["text"]
    assert "".join(deltas) == (reply.text if recorded["stream"] else "")
    assert [[call.name, call.args] for call in reply.calls] == [call[1:] for call in expected["calls"]]
    for call, (id, *_) in zip(reply.calls, expected["calls"], strict=True):
        assert call.id == id if id != "*" else call.id
    assert reply.finish == expected["finish"]
    assert bool(reply.extra) == expected["extra"]
    assert reply.usage_known == (expected["usage"] is not None)
    assert counts(reply.usage) == (expected["usage"] or [0, 0, 0, 0])
    assert reply.usage.requests == 1
    assert reply.usage.cost_usd == PRICE.cost(reply.usage)
    assert reply.usage.checked() is reply.usage


def counts(usage: Usage) -> list[int]:
    return [usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens]


@pytest.mark.parametrize("name", [name for name in replay.cases() if "error" in replay.case(name)])
def test_a_failure_is_classified(name: str) -> None:
    recorded = replay.case(name)
    with replay.Replay(replay.answer(recorded["response"])) as server, pytest.raises(ProviderError) as caught:
        anyio.run(ask, recorded, server, [])
    error, expected = caught.value, recorded["error"]
    assert error.kind == expected["kind"]
    assert error.maybe_charged == expected["maybe_charged"]
    wait = None if error.retry_at_us is None else Decimal(error.retry_at_us - replay.NOW_US) / 1_000_000
    assert wait == (None if expected["retry_in_s"] is None else Decimal(str(expected["retry_in_s"])))
    assert expected["says"] in str(error)
    assert replay.KEY not in str(error)
    assert len(str(error)) < 500


@pytest.mark.req("TC-24")
@pytest.mark.parametrize(
    ("name", "seconds"),
    [
        ("openai/429-limits", 360),
        ("openai/429-retry-after", 21),
        ("anthropic/429", 42),
        ("anthropic/429-retry-after", 17),
        ("google/429", 34),
    ],
)
def test_a_quota_names_its_reset(name: str, seconds: int) -> None:
    recorded = replay.case(name)
    with replay.Replay(replay.answer(recorded["response"])) as server, pytest.raises(ProviderError) as caught:
        anyio.run(ask, recorded, server, [])
    assert caught.value.kind == "quota"
    assert caught.value.retry_at_us == replay.NOW_US + seconds * 1_000_000


def test_a_client_has_the_librarys_settings_and_its_own_timeout() -> None:
    from treadle.models.wire import http_client

    client = http_client(7.0)
    assert (client.timeout.read, client.timeout.connect, http_client(60.0).timeout.connect) == (7.0, 7.0, 10.0)
    assert client.headers["user-agent"].startswith("pydantic-ai")
    assert len(client.event_hooks["request"]) == 2
