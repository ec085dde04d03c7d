"""One request as a loop makes it: on the wire once, static before dynamic, reasoning to its own model, cancellable."""

from __future__ import annotations

import json
import traceback
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from fixtures.wire import replay
from fixtures.wire.replay import Replay, finished, prompted, request, responded, stored, view_of
from treadle.core.errors import ProviderError
from treadle.models.adapter import PydanticAIModel
from treadle.models.clients import Connection, anthropic_wire, google_wire, openai_wire
from treadle.models.service import Service
from treadle.models.wire import SecondRequest, http_client, one_request
from treadle.ports.model import Model, ToolDef
from treadle.testing import Answer

MODELS = ["openai:gpt-4o", "anthropic:claude-sonnet-4-6", "google:gemini-2.5-pro"]
GOOD = {
    "openai": "openai/whole-tool-call",
    "anthropic": "anthropic/whole-tool-use",
    "google": "google/whole-text",
}
JSON = {"content-type": "application/json"}


def good(name: str) -> Answer:
    return replay.answer(replay.case(GOOD[name.partition(":")[0]])["response"])


def fails(status: int) -> Answer:
    return Answer(status=status, headers=JSON, chunks=[b'{"error": {"message": "no"}}'])


def run(server: Replay, name: str, use: Callable[[Model], Awaitable[Any]], **more: Any) -> Any:
    async def main() -> Any:
        model = server.model(name, **more)
        try:
            return await use(model)
        finally:
            await model.close()

    return anyio.run(main)


@pytest.mark.req("LG-04")
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("status", [408, 409, 429, 500, 503])
@pytest.mark.parametrize("name", MODELS)
def test_nothing_is_sent_again_by_an_sdk(name: str, status: int, stream: bool) -> None:
    async def use(model: Model) -> None:
        asked = request(view_of(prompted("go")), settings={"max_retries": 3})
        with pytest.raises(ProviderError, match=f"answered {status}"):  # and not: was kept from sending again
            await model.request(asked, (lambda _: None) if stream else None)

    with Replay(fails(status)) as server:
        run(server, name, use)
        assert len(server.received) == 1


@pytest.mark.req("LG-04")
@pytest.mark.parametrize("name", MODELS)
def test_a_redirect_is_not_followed(name: str) -> None:
    async def use(model: Model) -> None:
        with pytest.raises(ProviderError):
            await model.request(request(view_of(prompted("go"))))

    with Replay(Answer(status=307, headers={"location": "/elsewhere"})) as server:
        run(server, name, use)
        assert len(server.received) == 1


@pytest.mark.req("LG-04")
def test_reasoning_that_has_become_stale_is_dropped_and_not_sent_twice() -> None:
    stale = {"error": {"type": "invalid_request_error", "message": "The block is bound to a different conversation."}}

    async def use(model: Model) -> None:
        with pytest.raises(ProviderError):
            await model.request(request(view_of(prompted("go"))))

    with Replay(Answer(status=400, headers=JSON, chunks=[json.dumps(stale).encode()])) as server:
        run(server, "anthropic:claude-opus-5-5", use)
        assert len(server.received) == 1
        assert server.body()["thinking"]["block_binding"] == {"prefix_mismatch_behavior": "drop_block"}


@pytest.mark.parametrize(("level", "effort"), [("high", "high"), ("minimal", "low"), (True, None)])
def test_a_level_of_thinking_is_kept_beside_the_binding(level: Any, effort: str | None) -> None:
    async def use(model: Model) -> None:
        await model.request(request(view_of(prompted("go")), settings={"thinking": level}))

    with Replay(good("anthropic")) as server:
        run(server, "anthropic:claude-opus-5-5", use)
        body = server.body()
    assert body["thinking"] == {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
    assert body.get("output_config", {}).get("effort") == effort


def test_thinking_can_be_turned_off() -> None:
    async def use(model: Model) -> None:
        await model.request(request(view_of(prompted("go")), settings={"thinking": False}))

    with Replay(good("anthropic")) as server:
        run(server, "anthropic:claude-opus-5-5", use)
        assert "block_binding" not in json.dumps(server.body().get("thinking"))


@pytest.mark.req("LG-04")
def test_a_library_that_wants_to_send_again_is_stopped() -> None:
    async def use(model: Model) -> ProviderError:
        thinking = {"type": "adaptive"}  # without the setting that makes the library's own second request needless
        with pytest.raises(ProviderError) as caught:
            await model.request(request(view_of(prompted("go")), settings={"anthropic_thinking": thinking}))
        return caught.value

    stale = {"error": {"type": "invalid_request_error", "message": "The block is bound to a different conversation."}}
    with Replay(Answer(status=400, headers=JSON, chunks=[json.dumps(stale).encode()])) as server:
        error = run(server, "anthropic:claude-opus-5-5", use)
        assert len(server.received) == 1
        assert "second request" in str(error)


@pytest.mark.req("LG-04")
def test_a_ticket_is_good_for_one_request() -> None:
    async def main() -> None:
        async with http_client(5.0) as client:
            with Replay(Answer()) as server:
                with one_request():
                    await client.get(server.url)
                    with pytest.raises(SecondRequest):
                        await client.get(server.url)
                assert len(server.received) == 1

    anyio.run(main)


@pytest.mark.req("AG-14")
@pytest.mark.parametrize("name", MODELS)
def test_the_static_part_and_the_tools_are_the_same_bytes_on_every_turn(name: str) -> None:
    def prefix(server: Replay) -> str:
        body = server.body()
        system = body.get("system") or body.get("systemInstruction", {}).get("parts") or body["messages"][0]["content"]
        static = system if isinstance(system, str) else json.dumps(system[0])
        assert "You mend code." in static
        return static.partition("Turn")[0] + json.dumps(body["tools"])

    async def use(model: Model) -> None:
        view = view_of(prompted("go"))
        await model.request(request(view))
        first = prefix(server)
        replay.extend(view, responded("I read.", ("c1", "read_file", {"path": "x"})), finished(("c1", "X")))
        await model.request(request(view, dynamic="Turn 4 of 60.", tools=tuple(reversed(replay.TOOLS))))
        assert prefix(server) == first
        assert "Turn 4 of 60." in server.received[-1].body.decode()

    with Replay(good(name)) as server:
        run(server, name, use)


def own(wire: str, server: Replay) -> PydanticAIModel:
    """A model that believes to be at the provider's own address."""
    client = http_client(20.0)
    name = next(name for name in MODELS if name.startswith(wire)).partition(":")[2]
    to = Connection(provider=wire, model=name, url=server.url, own_url=False, key=replay.KEY, client=client)
    if wire == "openai":
        classes = ("pydantic_ai.providers.openai:OpenAIProvider", "pydantic_ai.models.openai:OpenAIChatModel")
        built = openai_wire(to, provider_class=classes[0], model_class=classes[1], profile={})
    else:
        built = anthropic_wire(to) if wire == "anthropic" else google_wire(to)
    return PydanticAIModel(
        f"{wire}:{name}",
        built.model,
        client=client,
        service=Service(name=wire),
        context_window=1000,
        max_output_tokens=100,
        timeout_s=20.0,
        now_us=lambda: replay.NOW_US,
        price=lambda _: None,
        settings=built.settings,
    )


def sent_by_own(wire: str) -> dict[str, Any]:
    async def main(server: Replay) -> dict[str, Any]:
        model = own(wire, server)
        await model.request(request(view_of(prompted("go"))))
        await model.close()
        return server.body()

    with Replay(good(wire)) as server:
        return anyio.run(main, server)


@pytest.mark.req("AG-14")
def test_anthropic_caches_tools_static_part_and_conversation_and_not_the_dynamic_part() -> None:
    body = sent_by_own("anthropic")
    marker = {"type": "ephemeral", "ttl": "5m"}
    assert body["cache_control"] == marker
    assert body["tools"][-1]["cache_control"] == marker
    assert body["system"] == [
        {"type": "text", "text": "You mend code.", "cache_control": marker},
        {"type": "text", "text": "Turn 3 of 60."},
    ]


@pytest.mark.req("AG-14")
@pytest.mark.parametrize("name", MODELS)
def test_tools_are_sent_in_the_order_of_their_names_however_they_are_listed(name: str) -> None:
    tools = (
        *replay.TOOLS,
        ToolDef("a_tool", "Does it.", {"type": "object"}, "read"),
        ToolDef("z_tool", "Does it.", {"type": "object"}, "read"),
    )
    sent: list[Any] = []
    for listed in (tools, tools[::-1]):

        async def use(model: Model, listed: tuple[ToolDef, ...] = listed) -> None:
            await model.request(request(view_of(prompted("go")), tools=listed))

        with Replay(good(name)) as server:
            run(server, name, use)
            sent.append(server.body()["tools"])
    assert sent[0] == sent[1]


def test_openai_itself_is_sent_its_newer_field_for_the_output_limit() -> None:
    body = sent_by_own("openai")
    assert body["max_completion_tokens"] == 1024
    assert [message["content"] for message in body["messages"][:2]] == ["You mend code.", "Turn 3 of 60."]


@pytest.mark.parametrize(
    ("name", "where", "value"),
    [
        ("openai:gpt-4o", ["tool_choice"], "required"),
        ("anthropic:claude-sonnet-4-6", ["tool_choice", "type"], "any"),
        ("google:gemini-2.5-pro", ["toolConfig", "functionCallingConfig", "mode"], "ANY"),
        ("anthropic:claude-opus-5-5", ["tool_choice", "type"], "auto"),  # this one refuses to be told
    ],
)
def test_a_call_is_required_of_models_that_can_be_told_so(name: str, where: list[str], value: str) -> None:
    async def use(model: Model) -> None:
        await model.request(request(view_of(prompted("go")), tool_choice="required"))

    with Replay(good(name)) as server:
        run(server, name, use)
        found: Any = server.body()
        for key in where:
            found = found[key]
        assert found == value


def test_settings_of_the_request_reach_the_provider_and_the_limit_stays_ours() -> None:
    async def use(model: Model) -> None:
        settings = {"temperature": 0.5, "seed": 7, "max_tokens": 9, "extra_headers": {"x-team": "blue"}}
        await model.request(request(view_of(prompted("go")), settings=settings))

    with Replay(good("openai")) as server:
        run(server, "openai:gpt-4o", use)
        body = server.body()
        assert (body["temperature"], body["seed"], body["max_tokens"]) == (0.5, 7, 1024)
        assert server.received[0].headers["x-team"] == "blue"


@pytest.mark.req("FR-21")
def test_after_a_change_of_model_no_foreign_signature_is_sent() -> None:
    thinking = replay.case("anthropic/stream-thinking")

    async def think(model: Model) -> Any:
        return stored(await model.request(request(view_of(prompted("go"))), lambda _: None))

    with Replay(replay.answer(thinking["response"])) as server:
        thought = run(server, "anthropic:claude-sonnet-4-6", think)
    view = view_of(prompted("go"), thought, finished(("toolu_01B", "X")))

    async def use(model: Model) -> None:
        await model.request(request(view))

    sent: dict[str, str] = {}
    for name in ("anthropic:claude-sonnet-4-6", "anthropic:claude-opus-4-8", "openai:gpt-4o", "google:gemini-2.5-pro"):
        with Replay(good(name)) as server:
            run(server, name, use)
            sent[name] = server.received[0].body.decode()
    mine = sent.pop("anthropic:claude-sonnet-4-6")
    assert "EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pk=" in mine
    assert "Read the file first." in mine
    for body in sent.values():
        assert "EqQB" not in body
        assert "Read the file first." not in body
        assert body.count("toolu_01B") == 2 or "functionResponse" in body


def test_a_signature_on_a_call_goes_back_with_the_call() -> None:
    async def use(model: Model) -> None:
        view = view_of(prompted("go"))
        reply = await model.request(request(view), lambda _: None)
        replay.extend(view, stored(reply), finished((reply.calls[0].id, "X")))
        await model.request(request(view), lambda _: None)

    with Replay(replay.answer(replay.case("google/stream-function-call")["response"])) as server:
        run(server, "google:gemini-2.5-pro", use)
        part = server.body()["contents"][1]["parts"][-1]
        assert part["functionCall"]["name"] == "read_file"
        assert part["thoughtSignature"] == "CikB0e2Kb9d7Yw0aXk1q"


def test_a_provider_that_refuses_the_usage_option_is_asked_for_a_whole_answer() -> None:
    deltas: list[str] = []

    async def use(model: Model) -> str:
        return (await model.request(request(view_of(prompted("go"))), deltas.append)).text

    body = {
        "id": "m1",
        "object": "chat.completion",
        "created": 1,
        "model": "mistral-large",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "Bonjour."}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 4, "completion_tokens": 2, "total_tokens": 6},
    }
    with Replay(Answer(headers=JSON, chunks=[json.dumps(body).encode()])) as server:
        assert run(server, "mistral:mistral-large-latest", use) == "Bonjour."
        sent = server.body()
        assert not sent["stream"]
        assert "stream_options" not in sent
        assert sent["max_tokens"] == 1024
    assert deltas == ["Bonjour."]


def test_a_provider_that_falls_silent_is_given_up_on() -> None:
    async def use(model: Model) -> ProviderError:
        with pytest.raises(ProviderError) as caught:
            await model.request(request(view_of(prompted("go"))))
        return caught.value

    with Replay(Answer(hang=True)) as server:
        error = run(server, "openai:gpt-4o", use, timeout_s=0.2)
    assert (error.kind, error.maybe_charged) == ("network", True)


@pytest.mark.parametrize("name", MODELS)
def test_nobody_at_the_address_costs_nothing(name: str) -> None:
    async def use(model: Model) -> ProviderError:
        server.close()
        with pytest.raises(ProviderError) as caught:
            await model.request(request(view_of(prompted("go"))))
        return caught.value

    with Replay(Answer()) as server:
        error = run(server, name, use)
        assert (error.kind, error.maybe_charged) == ("network", False)
        assert server.url in str(error)


@pytest.mark.req("SE-01")
@pytest.mark.parametrize("name", MODELS)
def test_a_key_that_comes_back_shows_in_no_trace(name: str) -> None:
    async def use(model: Model) -> str:
        with pytest.raises(ProviderError) as caught:
            await model.request(request(view_of(prompted("go"))))
        return "".join(traceback.format_exception(caught.value))

    echo = json.dumps({"error": {"message": f"bad key {replay.KEY}", "headers": {"authorization": replay.KEY}}})
    with Replay(Answer(status=401, headers=JSON, chunks=[echo.encode()])) as server:
        trace = run(server, name, use)
        assert "bad key [key]" in trace
        assert replay.KEY not in trace


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_request_under_way_can_be_cancelled(stream: bool) -> None:
    async def use(model: Model) -> bool:
        with anyio.move_on_after(0.2) as scope:
            await model.request(request(view_of(prompted("go"))), (lambda _: None) if stream else None)
        return scope.cancelled_caught

    with Replay(Answer(hang=True)) as server:
        assert run(server, "openai:gpt-4o", use)


def test_views_are_told_apart_and_forgotten_with_their_owners() -> None:
    async def use(model: Model) -> None:
        assert isinstance(model, PydanticAIModel)
        one, two = view_of(prompted("one")), view_of(prompted("two"))
        for view, text in ((one, "one"), (two, "two"), (one, "one")):
            await model.request(request(view))
            assert server.body()["messages"][-1]["content"] == text
        assert len(model._views) == 2
        del one, two, view
        assert len(model._views) == 0

    with Replay(good("openai")) as server:
        run(server, "openai:gpt-4o", use)


@pytest.mark.parametrize("case", ["openai/whole-tool-call", "openai/whole-reasoning"])
def test_a_server_that_answers_a_streamed_request_whole_is_understood(case: str) -> None:
    deltas: list[str] = []
    answer = replay.answer(replay.case(case)["response"])

    async def use(model: Model) -> tuple[Any, Any]:
        asked = request(view_of(prompted("go")))
        return await model.request(asked), await model.request(asked, deltas.append)

    with Replay(answer) as server:
        whole, streamed = run(server, "openai:gpt-4o", use)
        assert (server.body(0)["stream"], server.body(1)["stream"]) == (False, True)
    assert streamed._replace(extra="") == whole._replace(extra="")
    assert "".join(deltas) == whole.text
