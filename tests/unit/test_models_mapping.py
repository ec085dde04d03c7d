"""Our messages as the model library's: pairs, merging, increments, and reasoning that goes back to its own model only."""

from __future__ import annotations

import re
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ThinkingPart, ToolCallPart, ToolReturnPart

from fixtures.wire.replay import extend, finished, prompted, responded, view_of
from treadle.core.errors import ProviderError
from treadle.kernel.view import View
from treadle.models.extra import extra_of
from treadle.models.mapping import PLAIN_ID, MappedView

ME = "anthropic:claude-sonnet-4-6"


def mapped(*messages: Any, model: str = ME, **more: Any) -> list[ModelMessage]:
    return MappedView(model, **more).update(view_of(*messages))


def shape(messages: list[ModelMessage]) -> list[tuple[str, list[str]]]:
    return [(message.kind, [part.part_kind for part in message.parts]) for message in messages]


def pairs(messages: list[ModelMessage]) -> list[tuple[str, str, str, str]]:
    """(tool, arguments, tool of the result, result) of every call, matched as a provider matches them: by id."""
    calls: dict[str, ToolCallPart] = {}
    found: list[tuple[str, str, str, str]] = []
    for message in messages:
        for part in message.parts:
            if isinstance(part, ToolCallPart):
                assert part.tool_call_id not in calls
                calls[part.tool_call_id] = part
            elif isinstance(part, ToolReturnPart):
                call = calls[part.tool_call_id]
                found.append((call.tool_name, call.args_as_json_str(), part.tool_name, str(part.content)))
    return found


def test_a_batch_answered_in_pieces_is_answered_by_one_request() -> None:
    messages = mapped(
        prompted("go"),
        responded("two", ("a", "read_file", {"path": "x"}), ("b", "glob", {"pattern": "*"})),
        finished(("a", "X")),
        finished(("b", "Y")),
        prompted("wrap up"),
    )
    assert shape(messages) == [
        ("request", ["user-prompt"]),
        ("response", ["text", "tool-call", "tool-call"]),
        ("request", ["tool-return", "tool-return", "user-prompt"]),
    ]
    assert pairs(messages) == [
        ("read_file", '{"path":"x"}', "read_file", "X"),
        ("glob", '{"pattern":"*"}', "glob", "Y"),
    ]


def test_prompts_that_follow_one_another_are_one_request() -> None:
    assert shape(mapped(prompted("a"), prompted("b"))) == [("request", ["user-prompt", "user-prompt"])]


def test_a_response_with_nothing_in_it_is_left_out() -> None:
    assert shape(mapped(prompted("a"), responded(), prompted("b"))) == [("request", ["user-prompt", "user-prompt"])]


@pytest.mark.parametrize("id", ["call_1", "", "x" * 200, "a b"])
def test_ids_that_repeat_or_are_illegal_keep_their_pairs(id: str) -> None:
    messages = mapped(
        prompted("go"),
        responded("", (id, "read_file", {"n": 1}), (id, "glob", {"n": 2})),
        finished((id, "one"), (id, "two")),
        responded("", (id, "search", {"n": 3})),
        finished((id, "three")),
    )
    assert pairs(messages) == [
        ("read_file", '{"n":1}', "read_file", "one"),
        ("glob", '{"n":2}', "glob", "two"),
        ("search", '{"n":3}', "search", "three"),
    ]


@pytest.mark.parametrize("legal", [PLAIN_ID, re.compile(r"[A-Za-z0-9]{9}")])
def test_ids_take_the_form_that_the_provider_wants(legal: re.Pattern[str]) -> None:
    messages = mapped(
        prompted("go"), responded("", ("functions.read:0", "r", {})), finished(("functions.read:0", "")), legal_id=legal
    )
    (call,) = messages[1].parts
    assert isinstance(call, ToolCallPart)
    assert legal.fullmatch(call.tool_call_id)


@pytest.mark.parametrize(
    "messages",
    [
        (prompted("go"), responded("", ("a", "r", {}))),
        (prompted("go"), responded("", ("a", "r", {}), ("b", "r", {})), finished(("a", "A"))),
        (prompted("go"), responded("", ("a", "r", {})), prompted("and?")),
        (prompted("go"), responded("", ("a", "r", {})), responded("well")),
        (prompted("go"), finished(("a", "A"))),
        (prompted("go"), responded("", ("a", "r", {})), finished(("b", "B"))),
        (prompted("go"), responded("", ("a", "r", {})), finished(("a", "A"), ("a", "A"))),
    ],
)
def test_a_call_without_its_result_is_never_sent(messages: tuple[Any, ...]) -> None:
    with pytest.raises(ProviderError) as caught:
        mapped(*messages)
    assert caught.value.kind == "bad-request"
    assert not caught.value.maybe_charged


def test_a_refused_view_is_mapped_once_its_calls_are_answered() -> None:
    view = view_of(prompted("go"), responded("", ("a", "r", {})))
    conversation = MappedView(ME)
    with pytest.raises(ProviderError):
        conversation.update(view)
    extend(view, finished(("a", "A")))
    assert pairs(conversation.update(view)) == [("r", "{}", "r", "A")]


def turn(number: int) -> list[Any]:
    return [responded("", (f"c{number}", "r", {"n": number})), finished((f"c{number}", f"result {number}"))]


def test_a_turn_maps_what_is_new_and_nothing_else() -> None:
    view = view_of(prompted("go"))
    conversation = MappedView(ME)
    before = list(conversation.update(view))
    for number in range(50):
        extend(view, *turn(number))
        after = conversation.update(view)
        assert all(old is new for old, new in zip(before, after, strict=False))
        before = list(after)
    assert pairs(before) == pairs(MappedView(ME).update(view))


def test_another_branch_is_mapped_anew() -> None:
    view = view_of(prompted("go"), *turn(1))
    conversation = MappedView(ME)
    conversation.update(view)
    other: list[Any] = [prompted("summary"), *turn(2)]
    view.reset([(seq, message, b"") for seq, message in enumerate(other, 10)])
    assert pairs(conversation.update(view)) == [("r", '{"n":2}', "r", "result 2")]
    assert view.leaf == 12


def thought() -> ModelResponse:
    return ModelResponse(
        parts=[
            ThinkingPart("Look first.", signature="sig==", provider_name="anthropic"),
            TextPart("I look."),
            TextPart("Then I write.", provider_name="anthropic", provider_details={"n": 1}),
            ToolCallPart("r", {"n": 1}, "c1", provider_name="anthropic", provider_details={"thought_signature": "t=="}),
        ],
        provider_name="anthropic",
        canonical_system="anthropic",
    )


def with_thought(text: str = "I look.\n\nThen I write.", made_by: str = ME) -> View:
    extra = extra_of(thought(), made_by)
    return view_of(prompted("go"), responded(text, ("c1", "r", {"n": 1}), extra=extra), finished(("c1", "A")))


@pytest.mark.req("FR-21")
def test_reasoning_goes_back_to_the_model_that_thought_it() -> None:
    response = MappedView(ME).update(with_thought())[1]
    assert isinstance(response, ModelResponse)
    assert response.parts == thought().parts
    assert (response.provider_name, response.canonical_system) == ("anthropic", "anthropic")


@pytest.mark.req("FR-21")
@pytest.mark.parametrize("other", ["openai:gpt-5", "anthropic:claude-opus-4-8"])
def test_another_model_gets_the_pairs_without_the_reasoning(other: str) -> None:
    messages = MappedView(other).update(with_thought())
    response = messages[1]
    assert [part.part_kind for part in response.parts] == ["text", "tool-call"]
    assert pairs(messages) == [("r", '{"n":1}', "r", "A")]
    assert "sig==" not in repr(messages)
    assert "t==" not in repr(messages)


def test_text_that_was_redacted_since_goes_back_redacted() -> None:
    response = MappedView(ME).update(with_thought("I look [key]."))[1]
    assert [part.content for part in response.parts if isinstance(part, TextPart)] == ["I look [key]."]
    assert response.parts[0] == thought().parts[0]


@pytest.mark.parametrize("extra", ["{", "[]", '{"model": 1}', '{"model":"' + ME + '","parts":[{"kind":"new"}]}'])
def test_reasoning_that_cannot_be_read_is_left_out(extra: str) -> None:
    messages = mapped(prompted("go"), responded("hm", extra=extra), prompted("on"))
    assert shape(messages)[1] == ("response", ["text"])
