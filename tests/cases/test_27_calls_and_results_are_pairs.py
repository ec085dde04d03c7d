"""Case 27: a missing tool result made every later request fail. That each call is followed by its result is an invariant."""

from pathlib import Path
from typing import Any

from support.commandline import InProcess
from support.loops import DONE, FIRST, WRITE, run, unpaired
from treadle.testing import ScriptedEndpoint, Turn

ODD = (
    Turn(calls=[("nothing_of_this_name", {}), ("list_dir", {})]),
    Turn(calls=[("read_file", '{"path": "half of a js')]),
    Turn(calls=[("read_file", {"wrong": 1}), ("list_dir", {}), ("list_dir", {})]),
    Turn(calls=[("write_file", {"path": "../outside", "text": "x"}), ("read_file", {"path": "missing"})]),
    Turn(calls=[("ask_person", {"question": "Go on?"}), ("list_dir", {})]),
)


def test_whatever_a_model_calls_the_next_request_is_sound(tmp_path: Path) -> None:
    cli = InProcess(tmp_path)
    with ScriptedEndpoint([FIRST, *ODD, WRITE, DONE]) as endpoint:
        ran = run(cli, endpoint, check="grep -q 42 answer.txt")
        assert ran.code == 3, ran.err
        assert cli("answer", "last", "go on").code == 0
        ran = cli("resume", "last", "--json")
        assert ran.document["code"] == "accepted", ran.err
        assert len(endpoint.requests) == 8
        assert [unpaired(body) for body in endpoint.requests] == [[]] * 8


def test_a_compaction_parts_no_call_from_its_result(tmp_path: Path) -> None:
    cli = InProcess(tmp_path)
    cli.write("page.txt", "lorem ipsum dolor sit amet\n" * 100)
    left = iter(range(20))

    def model(body: dict[str, Any]) -> Turn:
        if "hand-over note" in str(body["messages"][0]["content"]):
            return Turn(text="Pages were read.")
        if (number := next(left, None)) is None:
            return DONE
        return Turn(text="on " * 30, calls=[("read_file", {"path": "page.txt"}), ("read_file", {"path": f"{number}"})])

    with ScriptedEndpoint(model) as endpoint:
        ran = run(cli, endpoint, "--window", "8000", "--guard", "repeat=0", task="Read the book", check="true")
        assert ran.code == 0, ran.err
        assert cli("context", "last", "--json").document["compactions"]
        assert [unpaired(body) for body in endpoint.requests] == [[]] * len(endpoint.requests)
