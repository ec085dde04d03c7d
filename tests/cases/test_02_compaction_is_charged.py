"""Case 2: a compaction billed 192,000 tokens and the run reported 1,800. Each summary is a request like any other in the accounts."""

from pathlib import Path
from typing import Any

from support.commandline import InProcess
from support.loops import run
from treadle.models.prices import parse_price
from treadle.testing import ScriptedEndpoint, Turn

PAGE = "lorem ipsum dolor sit amet consectetur\n" * 60


def test_what_the_summaries_cost_is_in_tokens_and_dollars(tmp_path: Path) -> None:
    cli = InProcess(tmp_path)
    pages = iter(range(25))
    summaries: list[str] = []
    for number in range(25):
        cli.write(f"page{number}.txt", f"page {number}\n{PAGE}")

    def model(body: dict[str, Any]) -> Turn:
        if "hand-over note" in str(body["messages"][0]["content"]):
            summaries.append("asked")
            return Turn(text="A voyage so far.")
        if (page := next(pages, None)) is None:
            return Turn(calls=[("finish", {"summary": "read"})])
        return Turn(text="I read on. " * 30, calls=[("read_file", {"path": f"page{page}.txt"})])

    with ScriptedEndpoint(model, price=parse_price("1,2")) as endpoint:
        ran = run(cli, endpoint, "--window", "8000", task="Read the book", check="true")
        assert ran.code == 0, ran.err
        billed = endpoint.bill
        assert summaries
        assert ran.document["usage"]["requests"] == len(billed.charges)
        assert float(ran.document["cost_usd"]) == float(billed.total_usd)
        assert ran.document["usage"]["input_tokens"] == sum(one.usage.input_tokens for one in billed.charges)
