"""What every failure means: its class, when to try again, whether it may have been charged, and no secret in its words."""

from __future__ import annotations

import ssl
from typing import Any

import httpx2
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai.exceptions import UserError

from treadle.core.errors import ProviderError
from treadle.models.failures import failure, http_failure
from treadle.models.resets import moment_us, span_us
from treadle.models.service import Service
from treadle.models.wire import SecondRequest

NOW = 1_764_500_000_000_000  # 2025-11-30T10:53:20Z
SERVICE = Service(
    name="acme", url="https://user:pass@api.acme.test/v1?key=abc", key_variable="ACME_KEY", secrets=("hunter2-key",)
)


def of_status(status: int, body: Any = None, headers: dict[str, str] | None = None) -> ProviderError:
    return http_failure(status, headers or {}, body, SERVICE, now_us=NOW)


@pytest.mark.parametrize(
    ("status", "kind", "maybe_charged"),
    [
        (400, "bad-request", False),
        (401, "auth", False),
        (402, "quota", False),
        (403, "auth", False),
        (404, "bad-request", False),
        (405, "bad-request", False),
        (408, "overload", True),
        (409, "overload", False),
        (413, "context-too-long", False),
        (418, "bad-request", False),
        (422, "bad-request", False),
        (429, "quota", False),
        (500, "overload", True),
        (502, "overload", True),
        (503, "overload", False),
        (504, "overload", True),
        (524, "overload", True),
        (529, "overload", False),
    ],
)
def test_a_status_has_its_class(status: int, kind: str, maybe_charged: bool) -> None:
    error = of_status(status, {"error": {"message": "no"}})
    assert (error.kind, error.maybe_charged) == (kind, maybe_charged)


def test_an_error_in_the_middle_of_a_stream_may_have_been_charged() -> None:
    error = http_failure(529, {}, None, SERVICE, now_us=NOW, in_stream=True)
    assert (error.kind, error.maybe_charged) == ("overload", True)


TOO_LONG = [
    "This model's maximum context length is 8192 tokens. However, you requested 9100 tokens",
    "prompt is too long: 204521 tokens > 200000 maximum",
    "input length and `max_tokens` exceed context limit: 190000 + 16384 > 200000",
    "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    "the request exceeds the available context size, try increasing it",
    "request (66202 tokens) exceeds the available context size (65536 tokens)",
    "Input length 131393 exceeds the maximum allowed input length of 131040 tokens.",
    "Input length (265330) exceeds model's maximum context length (262144).",
    "Please reduce the length of the messages or completion.",
    "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    "the number of tokens to keep from the initial prompt is greater than the context length",
    "Prompt contains 40000 tokens, too large for model with 32768 maximum context length",
    "Range of input length should be [1, 129024]",
    "Prompt too long: 5152 tokens exceeds max_seq_len 2048 (leave room for output tokens)",
    "Your input exceeds the context window of this model. Please adjust your input and try again.",
    "invalid params, context window exceeds limit (2013)",
    "Input is too long for requested model.",
]


@pytest.mark.parametrize("text", TOO_LONG)
def test_a_prompt_that_does_not_fit_is_told_from_other_bad_requests(text: str) -> None:
    assert of_status(400, {"error": {"message": text}}).kind == "context-too-long"


@pytest.mark.parametrize(
    "text",
    [
        "Invalid value: 'bogus'",
        "tool_use ids must be unique",
        "max_tokens: 32000 > 8192, which is the maximum allowed number of output tokens",
        "The model `x` does not exist",
        "Unsupported parameter: 'max_tokens' is not supported with this model.",
        "messages: at least one message is required",
    ],
)
def test_other_bad_requests_are_not_taken_for_long_prompts(text: str) -> None:
    assert of_status(400, {"error": {"message": text}}).kind == "bad-request"


def test_a_throttle_that_speaks_of_tokens_is_a_quota() -> None:
    assert of_status(429, {"message": "Too many tokens, please wait before trying again."}).kind == "quota"


@pytest.mark.req("TC-24")
@pytest.mark.parametrize(
    ("headers", "body", "seconds"),
    [
        ({"Retry-After": "20"}, None, 20),
        ({"retry-after": "0.5"}, None, 0.5),
        ({"retry-after-ms": "1500", "retry-after": "2"}, None, 1.5),
        ({"retry-after": "Sun, 30 Nov 2025 11:00:00 GMT"}, None, 400),
        ({"retry-after": "Sun, 30 Nov 2025 10:00:00 GMT"}, None, 0),
        ({"x-ratelimit-reset-requests": "1s", "x-ratelimit-reset-tokens": "6m0s"}, None, 360),
        (
            {
                "x-ratelimit-reset-requests": "1s",
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-tokens": "6m0s",
                "x-ratelimit-remaining-tokens": "5",
            },
            None,
            1,
        ),
        ({"x-ratelimit-reset-tokens": "1h2m3.5s"}, None, 3723.5),
        ({"x-ratelimit-reset-requests": "120ms"}, None, 0.12),
        ({"x-ratelimit-reset": "1764500060"}, None, 60),
        ({"x-ratelimit-reset": "1764500060000"}, None, 60),
        ({"anthropic-ratelimit-tokens-reset": "2025-11-30T10:54:00Z"}, None, 40),
        ({"anthropic-ratelimit-tokens-reset": "2025-11-30T11:54:00+01:00"}, None, 40),
        ({}, {"error": {"details": [{"@type": "…RetryInfo", "retryDelay": "34.07s"}]}}, 34.07),
        ({}, {"error": {"message": "Please try again in 20s. Visit us"}}, 20),
        ({}, {"error": {"message": "Please try again in 7m12.5s."}}, 432.5),
        ({}, {"error": {"message": "Please retry after 26 seconds."}}, 26),
        ({}, {"error": {"message": "Try again in 5 minutes"}}, 300),
        ({"retry-after": "soon"}, {"error": {"message": "Slow down."}}, None),
        ({"retry-after": "-5"}, None, None),
        ({"x-ratelimit-reset-tokens": "9" * 15}, None, None),
    ],
)
def test_the_reset_of_a_quota_is_read(headers: dict[str, str], body: Any, seconds: float | None) -> None:
    error = of_status(429, body, headers)
    assert error.kind == "quota"
    assert error.retry_at_us == (None if seconds is None else NOW + round(seconds * 1_000_000))


@pytest.mark.parametrize("code", ["insufficient_quota", "billing_hard_limit_reached", "exceeded_current_quota_error"])
def test_spent_credit_has_no_reset(code: str) -> None:
    error = of_status(429, {"error": {"message": "no", "code": code}}, {"x-ratelimit-reset-requests": "1s"})
    assert (error.kind, error.retry_at_us) == ("quota", None)


def test_an_overload_waits_as_long_as_it_is_told_to() -> None:
    assert of_status(503, None, {"retry-after": "3"}).retry_at_us == NOW + 3_000_000
    assert of_status(529, None, {"x-ratelimit-reset-requests": "1s"}).retry_at_us is None


def test_a_bad_request_is_never_tried_again_by_itself() -> None:
    assert of_status(400, None, {"retry-after": "3"}).retry_at_us is None


def caused(outer: Exception, *causes: Exception) -> Exception:
    link = outer
    for cause in causes:
        link.__cause__ = cause
        link = cause
    return outer


REQUEST = httpx2.Request("POST", "http://x/")


@pytest.mark.parametrize(
    ("error", "kind", "maybe_charged"),
    [
        (httpx2.ConnectError("refused"), "network", False),
        (httpx2.ConnectTimeout("slow"), "network", False),
        (httpx2.PoolTimeout("full"), "network", False),
        (httpx2.ReadTimeout(""), "network", True),
        (httpx2.ReadError("reset"), "network", True),
        (httpx2.WriteError("broken pipe"), "network", True),
        (httpx2.RemoteProtocolError("peer closed connection"), "network", True),
        (caused(openai.APIConnectionError(request=REQUEST), httpx2.ConnectError("x")), "network", False),
        (caused(openai.APITimeoutError(request=REQUEST), httpx2.ReadTimeout("x")), "network", True),
        (openai.APIConnectionError(request=REQUEST), "network", True),
        (ConnectionResetError("reset"), "network", True),
        (TimeoutError("slow"), "network", True),
        (ssl.SSLError("bad"), "network", True),
        (httpx2.UnsupportedProtocol("no scheme"), "bad-request", False),
        (UserError("not supported"), "bad-request", False),
        (caused(RuntimeError("?"), SecondRequest("POST /v1")), "protocol", True),
        (KeyError("choices"), "protocol", True),
        (ValueError("garbage"), "protocol", True),
        (ExceptionGroup("all", [ValueError("x"), httpx2.ConnectError("refused")]), "network", False),
        (caused(RuntimeError("?"), ProviderError("quota", "mine")), "quota", False),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else str(value),
)
def test_an_exception_has_its_class(error: Exception, kind: str, maybe_charged: bool) -> None:
    found = failure(error, SERVICE, now_us=NOW)
    assert (found.kind, found.maybe_charged) == (kind, maybe_charged)


def test_a_chain_that_bites_its_tail_ends() -> None:
    one, two = ValueError("one"), ValueError("two")
    one.__cause__, two.__cause__ = two, one
    assert failure(one, SERVICE, now_us=NOW).kind == "protocol"


@pytest.mark.req("SE-01")
@pytest.mark.parametrize(
    "text",
    [
        "bad key hunter2-key",
        "Incorrect API key provided: sk-proj-abcdefghijkl",
        "Authorization: Bearer abc.def.ghi",
        "https://x.test/v1beta/models?key=AIzaSyD-abcdefghijk",
        "AIzaSyD-abcdefghijk is not valid",
    ],
)
def test_secrets_stay_out_of_messages(text: str) -> None:
    for error in (
        of_status(401, {"error": {"message": text}}),
        of_status(500, text),
        failure(httpx2.ReadError(text), SERVICE, now_us=NOW),
        failure(ValueError(text), SERVICE, now_us=NOW),
    ):
        for secret in ("hunter2-key", "abcdefghijk", "abc.def.ghi"):
            assert secret not in str(error)
        assert "[key]" in str(error)


def test_an_unreachable_address_is_named_without_its_credentials() -> None:
    text = str(failure(httpx2.ConnectError("refused"), SERVICE, now_us=NOW))
    assert "https://api.acme.test/v1" in text
    assert "pass" not in text
    assert "abc" not in text


def test_a_refused_key_says_where_the_key_comes_from() -> None:
    assert "ACME_KEY" in str(of_status(401, {"error": {"message": "x" * 5000}}))


def test_long_words_are_cut_and_pages_are_stripped() -> None:
    text = str(of_status(502, "<html><body><h1>Bad\n Gateway</h1>" + "x" * 9999))
    assert "Bad Gateway" in text
    assert "<h1>" not in text
    assert len(text) <= 400


@given(st.text(max_size=40))
def test_any_text_is_a_span_a_moment_or_nothing(text: str) -> None:
    for found in (span_us(text), moment_us(text, NOW)):
        assert found is None or isinstance(found, int)


@pytest.mark.req("SE-03")
@given(
    st.dictionaries(
        st.sampled_from(["retry-after", "retry-after-ms", "x-ratelimit-reset-requests", "anthropic-ratelimit-reset"]),
        st.text(alphabet="0123456789.:-smhdTZ ,GMTSunNov", max_size=30),
    ),
    st.recursive(
        st.none() | st.integers() | st.text(max_size=20),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["error", "details", "retryDelay", "message", "code"]), inner)
        ),
        max_leaves=12,
    ),
    st.integers(300, 599),
)
def test_any_error_answer_is_a_provider_error(headers: dict[str, str], body: Any, status: int) -> None:
    error = http_failure(status, headers, body, SERVICE, now_us=NOW)
    assert error.retry_at_us is None or NOW <= error.retry_at_us <= NOW + 367 * 86_400 * 1_000_000
