"""Provider-specific parts of a response as JSON: reasoning, signatures. They go back to the same model only (FR-21)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec

from treadle.core.messages import ModelResponded

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse, ModelResponsePart, TextPart, ThinkingPart, ToolCallPart

SEPARATOR = "\n\n"  # between the text parts of one response, where they are joined to one text


class _Part(msgspec.Struct, omit_defaults=True):
    """One part, in the order of the response. Texts and arguments are not stored twice: `size` and `call` find them."""

    kind: Literal["text", "call", "thinking"]
    size: int = 0  # of a text: its length within the whole
    call: int = 0  # of a call: its index
    content: str = ""  # of reasoning
    id: str | None = None
    signature: str | None = None
    provider: str | None = None
    details: dict[str, Any] | None = None


class _Extra(msgspec.Struct, omit_defaults=True):
    model: str
    parts: list[_Part]
    provider: str | None = None
    system: str | None = None


_decode = msgspec.json.Decoder(_Extra).decode


def extra_of(response: ModelResponse, model: str) -> str:
    """What text and calls alone would lose, as JSON; empty where they lose nothing."""
    parts: list[_Part] = []
    calls = 0
    for part in response.parts:
        stored = _store(part, calls)
        if stored is not None:
            parts.append(stored)
            calls += stored.kind == "call"
    if not any(part.kind == "thinking" or part.id or part.details for part in parts):
        return ""
    extra = _Extra(model, parts, response.provider_name, response.canonical_system)
    try:
        return msgspec.json.encode(extra, enc_hook=str).decode()
    except UnicodeEncodeError:  # lone surrogates: no provider would take this reasoning back
        return ""


def response_of(message: ModelResponded, model: str, ids: list[str]) -> ModelResponse:
    """The stored message as the model library's own; provider-specific parts only where this very model made them."""
    from pydantic_ai.messages import ModelResponse

    extra = _readable(message.extra)
    if extra is None or extra.model != model:
        return ModelResponse(parts=_plain_parts(message, ids))
    return ModelResponse(
        parts=_all_parts(message, extra, ids), provider_name=extra.provider, canonical_system=extra.system
    )


def _store(part: ModelResponsePart, call: int) -> _Part | None:
    if part.part_kind == "text":
        return _Part(
            "text", size=len(part.content), id=part.id, provider=part.provider_name, details=part.provider_details
        )
    if part.part_kind == "tool-call":
        return _Part("call", call=call, id=part.id, provider=part.provider_name, details=part.provider_details)
    if part.part_kind == "thinking":
        return _Part(
            "thinking",
            content=part.content,
            id=part.id,
            signature=part.signature,
            provider=part.provider_name,
            details=part.provider_details,
        )
    return None


def _readable(extra: str) -> _Extra | None:
    if not extra:
        return None
    try:
        return _decode(extra)
    except msgspec.DecodeError:  # of another adapter or release: reasoning is lost, the conversation is not
        return None


def _plain_parts(message: ModelResponded, ids: list[str]) -> list[ModelResponsePart]:
    from pydantic_ai.messages import TextPart, ToolCallPart

    parts: list[ModelResponsePart] = [TextPart(message.text)] if message.text else []
    parts += [ToolCallPart(call.name, call.args, id) for call, id in zip(message.calls, ids, strict=True)]
    return parts


def _all_parts(message: ModelResponded, extra: _Extra, ids: list[str]) -> list[ModelResponsePart]:
    sizes = [part.size for part in extra.parts if part.kind == "text" and part.size]
    if sum(sizes) + len(SEPARATOR) * max(len(sizes) - 1, 0) != len(message.text):
        sizes = [len(message.text)]  # redacted since: one part holds it all
    texts = iter(sizes)
    at = 0
    parts: list[ModelResponsePart] = []
    for part in extra.parts:
        if part.kind == "thinking":
            parts.append(_thinking(part))
        elif part.kind == "call" and part.call < len(message.calls):
            parts.append(_call(message, part, ids[part.call]))
        elif part.kind == "text" and not part.size:  # a signature without text
            parts.append(_text("", part))
        elif part.kind == "text" and (size := next(texts, None)) is not None:
            parts.append(_text(message.text[at : at + size], part))
            at += size + len(SEPARATOR)
    return parts


def _text(content: str, part: _Part) -> TextPart:
    from pydantic_ai.messages import TextPart

    return TextPart(content, id=part.id, provider_name=part.provider, provider_details=part.details)


def _call(message: ModelResponded, part: _Part, wire_id: str) -> ToolCallPart:
    from pydantic_ai.messages import ToolCallPart

    call = message.calls[part.call]
    return ToolCallPart(
        call.name, call.args, wire_id, id=part.id, provider_name=part.provider, provider_details=part.details
    )


def _thinking(part: _Part) -> ThinkingPart:
    from pydantic_ai.messages import ThinkingPart

    return ThinkingPart(
        part.content,
        id=part.id,
        signature=part.signature,
        provider_name=part.provider,
        provider_details=part.details,
    )
