"""Case 48: after a model switch the provider refused foreign reasoning signatures. Another model does not get them."""

import json

import pytest
from pydantic_ai.messages import TextPart, ThinkingPart, ToolCallPart

from treadle.core.messages import ModelResponded, ToolCall
from treadle.core.usage import Usage
from treadle.models.extra import response_of

PARTS = [
    {"kind": "thinking", "content": "between us", "signature": "SIGNED", "provider": "anthropic"},
    {"kind": "text", "size": 4},
    {"kind": "call", "call": 0},
]


@pytest.mark.parametrize(("model", "kept"), [("anthropic:small", True), ("anthropic:big", False), ("openai:x", False)])
def test_reasoning_goes_to_the_model_that_signed_it_and_to_no_other(model: str, kept: bool) -> None:
    message = ModelResponded(
        parent=1,
        call="c",
        text="Look",
        calls=(ToolCall(id="i", name="look", args={}),),
        usage=Usage(),
        finish="tool_call",
        us=1,
        extra=json.dumps({"model": "anthropic:small", "parts": PARTS, "provider": "anthropic"}),
    )
    sent = response_of(message, model, ["i"])
    assert ("SIGNED" in repr(sent), "between us" in repr(sent)) == (kept, kept)
    assert [type(part) for part in sent.parts][-2:] == [TextPart, ToolCallPart]
    assert any(isinstance(part, ThinkingPart) for part in sent.parts) is kept
