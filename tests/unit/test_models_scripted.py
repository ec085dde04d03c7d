"""The scripted endpoint and model: the right next turn for whoever asks, faults as providers make them, and an own bill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from fixtures.wire.replay import KEY, NOW_US, extend, finished, prompted, request, stored, view_of
from treadle.core.errors import ConfigurationError, ProviderError
from treadle.core.usage import Usage
from treadle.models.prices import parse_price
from treadle.models.registry import model_from_name
from treadle.ports.model import Model
from treadle.testing import Bill, Fault, ScriptedEndpoint, ScriptedModel, Turn, read_bill

PRICE = parse_price("1,2")
READ = Turn(
    text="I read it.", calls=[("read_file", {"path": "kit.py"})], usage=Usage(input_tokens=100, output_tokens=10)
)
DONE = Turn(text="Done.", usage=Usage(input_tokens=200, output_tokens=20, cache_read_tokens=150))
Run = Callable[[Model], Awaitable[Any]]


def over_http(script: Any, use: Run, **more: Any) -> tuple[Any, ScriptedEndpoint]:
    with ScriptedEndpoint(script, price=PRICE, **more) as endpoint:

        async def main() -> Any:
            model = model_from_name(
                "openai:scripted", base_url=endpoint.url, price=PRICE, now_us=lambda: NOW_US, environ={}, timeout_s=20.0
            )
            try:
                return await use(model)
            finally:
                await model.close()

        return anyio.run(main), endpoint


def in_process(script: Any, use: Run, **more: Any) -> tuple[Any, ScriptedModel]:
    model = ScriptedModel(script, price=PRICE, now_us=NOW_US, **more)

    async def main() -> Any:
        try:
            return await use(model)
        finally:
            await model.close()

    return anyio.run(main), model


BOTH = pytest.mark.parametrize("through", [over_http, in_process])


@BOTH
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_turns_follow_the_history_and_not_the_number_of_requests(through: Any, stream: bool) -> None:
    deltas: list[str] = []

    async def use(model: Model) -> list[Any]:
        on_delta = deltas.append if stream else None
        view = view_of(prompted("go"))
        first = await model.request(request(view), on_delta)
        again = await model.request(request(view_of(prompted("go"))), on_delta)  # a resumed run that lost the answer
        extend(view, stored(first), finished((first.calls[0].id, "X")))
        return [first, again, await model.request(request(view), on_delta)]

    (first, again, last), teller = through([READ, DONE], use)
    assert first == again
    assert [(call.name, call.args) for call in first.calls] == [("read_file", {"path": "kit.py"})]
    assert (first.text, first.finish) == ("I read it.", "tool_call")
    assert (last.text, last.finish, last.usage.cache_read_tokens) == ("Done.", "stop", 150)
    assert "".join(deltas) == ("I read it." * 2 + "Done." if stream else "")
    assert [charge.usage for charge in teller.bill.charges] == [first.usage, again.usage, last.usage]
    assert teller.bill.total_usd == Decimal("0.00012") * 2 + Decimal("0.00024")
    assert teller.bill.charges[0].key == "execution:1.act.3.1"


@BOTH
def test_by_arrival_every_request_gets_the_next_step(through: Any) -> None:
    async def use(model: Model) -> list[str]:
        return [(await model.request(request(view_of(prompted("go"))))).text for _ in range(2)]

    assert through([READ, DONE], use, order="arrival")[0] == ["I read it.", "Done."]


@BOTH
def test_each_fault_comes_up_once_before_its_turn(through: Any) -> None:
    async def use(model: Model) -> list[Any]:
        found: list[Any] = []
        for _ in range(5):
            try:
                found.append((await model.request(request(view_of(prompted("go"))))).text)
            except ProviderError as error:
                wait = None if error.retry_at_us is None else (error.retry_at_us - NOW_US) // 1_000_000
                found.append((error.kind, wait, error.maybe_charged))
        return found

    script = [
        Fault(status=429, headers={"retry-after": "7"}),
        Fault(status=500, bill=True, usage=Usage(input_tokens=50)),
        Fault(close_early=True, bill=True, turn=READ),
        READ,
    ]
    found, teller = through(script, use)
    assert found == [
        ("quota", 7, False),
        ("overload", None, True),
        ("network", None, True),
        "I read it.",
        "I read it.",
    ]
    assert [charge.usage.input_tokens for charge in teller.bill.charges] == [50, 100, 100, 100]


@BOTH
def test_a_callable_decides_by_the_body(through: Any) -> None:
    def script(body: dict[str, Any]) -> Turn:
        return Turn(text=f"{len(body['messages'])} {body['messages'][-1]['content']} {len(body['tools'])}")

    async def use(model: Model) -> str:
        return (await model.request(request(view_of(prompted("go"))))).text

    assert through(script, use)[0].endswith(" go 2")


@BOTH
def test_after_the_script_every_request_is_refused(through: Any) -> None:
    async def use(model: Model) -> ProviderError:
        with pytest.raises(ProviderError) as caught:
            await model.request(request(view_of(prompted("go"))))
        return caught.value

    error, teller = through([], use)
    assert error.kind == "bad-request"
    assert "script is over" in str(error)
    assert teller.bill.charges == []


@BOTH
def test_broken_arguments_arrive_broken(through: Any) -> None:
    async def use(model: Model) -> Any:
        return (await model.request(request(view_of(prompted("go"))))).calls[0].args

    assert through([Turn(calls=[("read_file", '{"path": ')])], use)[0] == '{"path": '


@BOTH
def test_one_that_hangs_hangs(through: Any) -> None:
    async def use(model: Model) -> bool:
        with anyio.move_on_after(0.1) as scope:
            await model.request(request(view_of(prompted("go"))))
        return scope.cancelled_caught

    assert through([Fault(hang=True)], use)[0]


def test_usage_is_counted_from_the_texts_where_none_is_given() -> None:
    async def use(model: Model) -> Usage:
        return (await model.request(request(view_of(prompted("go"))))).usage

    usage, endpoint = over_http([Turn(text="x" * 400)], use)
    assert usage.output_tokens == 100
    assert usage.input_tokens > 10
    assert endpoint.bill.charges[0].usage == usage


def test_a_bill_goes_on_where_it_stopped_and_forgets_a_torn_line(tmp_path: Path) -> None:
    path = tmp_path / "bill.jsonl"
    with Bill(path, price=PRICE) as bill:
        bill.charge("a", Usage(input_tokens=1_000_000))
    with path.open("ab") as file:
        file.write(b'{"n": 2, "key"')
    assert [charge.key for charge in read_bill(path)] == ["a"]
    with Bill(path, price=PRICE) as bill:
        bill.charge("b", Usage(output_tokens=1_000_000))
        assert bill.total_usd == Decimal(3)
    assert [(charge.n, charge.key, charge.usage.cost_usd) for charge in read_bill(path)] == [
        (1, "a", Decimal(1)),
        (2, "b", Decimal(2)),
    ]


def test_the_endpoint_answers_clients_that_lose_their_way() -> None:
    with ScriptedEndpoint([DONE]) as endpoint, httpx2.Client(base_url=endpoint.url) as client:
        assert client.get("/models").json()["data"][0]["id"] == "scripted"
        assert client.post("/embeddings", json={}).status_code == 404
        assert client.post("/chat/completions", content=b"{").status_code == 400
        assert client.post("/chat/completions", json={"messages": 1}).status_code == 400
        assert endpoint.bill.charges == []


SCRIPT = [
    {"status": 429, "headers": {"retry-after": "1"}},
    {"text": "Hello.", "calls": [["read_file", {"path": "x"}]], "usage": {"input_tokens": 10, "output_tokens": 5}},
    {"close_early": True, "bill": True, "turn": {"text": "lost"}},
    {"text": "Done."},
]


def test_a_script_is_a_json_file_too(tmp_path: Path) -> None:
    path = tmp_path / "script.json"
    path.write_text(json.dumps(SCRIPT))

    async def use(model: Model) -> str:
        with pytest.raises(ProviderError):
            await model.request(request(view_of(prompted("go"))))
        return (await model.request(request(view_of(prompted("go"))))).text

    assert in_process(path, use)[0] == "Hello."


@pytest.mark.parametrize(
    "content",
    ["{", "{}", '[{"words": "x"}]', "[1]", '[{"text": "x", "usage": {"input_tokens": -1}}]', '[{"calls": [1]}]'],
)
def test_a_script_that_is_none_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "script.json"
    path.write_text(content)
    with pytest.raises(ConfigurationError, match=r"step 1|script\.json"):
        ScriptedModel(path)
    with pytest.raises(ConfigurationError, match="cannot be read"):
        ScriptedModel(tmp_path / "missing.json")


def test_the_command_serves_a_script_and_its_bill_outlives_it(tmp_path: Path) -> None:
    path, bill = tmp_path / "script.json", tmp_path / "bill.jsonl"
    path.write_text(json.dumps(SCRIPT[1:2]))
    command = [sys.executable, "-W", "error", "-m", "treadle.testing.endpoint", str(path), "--bill", str(bill)]
    process = subprocess.Popen([*command, "--price", "1,2"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        url = process.stdout.readline().strip()
        answer = httpx2.post(
            f"{url}/chat/completions",
            json={"model": "m", "messages": [{"role": "user", "content": "go"}]},
            headers={"Idempotency-Key": KEY},
            timeout=20.0,
        ).json()
        assert answer["choices"][0]["message"]["content"] == "Hello."
    finally:
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait(20) == -signal.SIGKILL
        assert process.stderr.read() == ""
        process.stdout.close()
        process.stderr.close()
    (charge,) = read_bill(bill)
    assert (charge.key, charge.usage.cost_usd) == (KEY, Decimal("0.00002"))


def test_the_command_refuses_a_bad_script_with_2(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "treadle.testing.endpoint", str(tmp_path / "none.json")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "cannot be read" in done.stderr


def test_the_scripted_model_counts_only_what_is_new() -> None:
    class Once(list[Any]):
        """Messages that may be looked at once each."""

        looked = 0

        def __getitem__(self, index: Any) -> Any:
            found = super().__getitem__(index)
            self.looked += len(found) if isinstance(index, slice) else 1
            return found

    async def use(model: Model) -> int:
        view = view_of(prompted("go"))
        view.messages = messages = Once(view.messages)
        for _ in range(30):
            reply = await model.request(request(view))
            extend(view, stored(reply), finished((reply.calls[0].id, "X")))
        return messages.looked

    looked, _ = in_process([READ] * 31, use)
    assert looked == 1 + 2 * 29
