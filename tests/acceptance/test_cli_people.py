"""What people and other processes do to an execution: accept, refuse, interrupt, cancel, take over, put back, carry away."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from support.commandline import PATIENCE_S, CommandLine, finish
from support.terminal import typed
from treadle.testing import Answer, LocalServer, Received

SLOW = "echo started > started; exec sleep 600"
ONCE_SLOW = "test -e started && exit 0; echo started > started; exec sleep 600"


def acting(command: str, *more: str) -> tuple[str, ...]:
    return ("Do it", "--agent-command", command, *more)


def wait_until(path: Path) -> None:
    """Until another process has made the file."""
    for _ in range(PATIENCE_S * 20):
        if path.exists():
            return
        time.sleep(0.05)
    raise AssertionError(f"{path} never came")


@pytest.mark.req("SV-02")
def test_an_exhausted_run_exits_1_and_cannot_be_extended(tmp_path: Path) -> None:
    cli = CommandLine(tmp_path)
    ran = cli("run", *acting("true", "--check", "echo nothing done; exit 3", "--max-rounds", "2", "--json"))
    assert (ran.code, ran.document["status"], ran.document["code"], ran.document["rounds"]) == (
        1,
        "failed",
        "exhausted",
        2,
    )
    assert "nothing done" in ran.document["outcome"]["evidence"]
    assert cli("extend", "last", "--max-rounds", "9").code == 2
    assert cli("resume", "last", "--retry-incomplete", "-q").code == 1


@pytest.mark.req("TC-23", "SV-01", "SV-02")
def test_without_a_check_a_person_accepts_and_each_answer_counts_once(tmp_path: Path) -> None:
    cli = CommandLine(tmp_path)
    waiting = cli("run", *acting('printf "%s" "$(cat)" > told', "--json"))
    assert (waiting.code, waiting.document["status"], waiting.document["code"]) == (3, "waiting-input", "approval")
    first = waiting.document["pending"]["request_id"]
    assert f"treadle approve {waiting.document['execution_id']}" in waiting.err
    assert cli("reject", "last").code == 2, "a rejected result needs a reason"
    assert cli("reject", "last", "--reason", "longer, please", "--as", "ada", "--json").document["status"] == "running"
    assert cli("approve", "last").code == 2, "nothing is open any more"
    assert cli("resume", "last", "-q").code == 3
    assert "longer, please" in (cli.workspace / "told").read_text()
    assert cli("approve", "last", "--request", first).code == 2, "a stale answer never answers a later question"
    assert cli("approve", "last", "--reason", "fine").code == 0
    assert cli("resume", "last", "--json", "-q").document["status"] == "done"


@pytest.mark.req("SV-01")
def test_at_a_terminal_the_person_is_asked_and_the_loop_goes_on(tmp_path: Path) -> None:
    cli = CommandLine(tmp_path)
    master, slave = pty.openpty()
    process = cli.start("run", *acting("cat >> told", "--json"), stdin=slave, stderr=slave)
    os.close(slave)
    screen = typed(master, [("Accept?", "n\n"), ("better?", "say it twice\n"), ("Accept?", "y\n")])
    out, _ = process.communicate(timeout=PATIENCE_S)
    os.close(master)
    document = json.loads(out)
    assert (process.returncode, document["status"], document["rounds"]) == (0, "done", 2)
    assert "say it twice" in (cli.workspace / "told").read_text()
    assert "● " in screen, "the banner"


@pytest.mark.req("SV-01")
@pytest.mark.parametrize("answer", ["l\n", "\x03"])
def test_at_a_terminal_later_and_ctrl_c_leave_the_question_open(tmp_path: Path, answer: str) -> None:
    cli = CommandLine(tmp_path)
    master, slave = pty.openpty()
    process = cli.start("run", *acting("true", "--json"), stdin=slave, stderr=slave, preexec_fn=lambda: own(slave))
    os.close(slave)
    typed(master, [("Accept?", answer)])
    out, _ = process.communicate(timeout=PATIENCE_S)
    os.close(master)
    assert (process.returncode, json.loads(out)["pending"]["kind"]) == (3, "evaluation")


def own(terminal: int) -> None:
    """Makes it the terminal of a session of its own, so that Ctrl-C is a signal."""
    os.setsid()
    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
@pytest.mark.req("SV-02", "RT-01")
def test_a_signal_stops_cleanly_and_says_how_to_go_on(tmp_path: Path, number: signal.Signals, code: int) -> None:
    cli = CommandLine(tmp_path)
    with cli.running(*acting("echo $$ > pid; " + ONCE_SLOW, "--check", "true", "--json")) as process:
        wait_until(cli.workspace / "started")
        process.send_signal(number)
        ran = finish(process)
    assert (ran.code, ran.document["exit_code"]) == (code, code)
    assert (ran.document["status"], ran.document["code"]) == ("paused", "interrupted")
    assert ran.err.rstrip().endswith(f"next: treadle resume {ran.document['execution_id']}")
    assert not Path(f"/proc/{(cli.workspace / 'pid').read_text().strip()}").exists(), "its child is gone"
    if number is signal.SIGINT:
        assert cli("resume", "last", "-q").code == 0


@pytest.mark.req("RT-01")
def test_a_second_signal_ends_the_process_at_once(tmp_path: Path) -> None:
    cli = CommandLine(tmp_path)
    hangs = cli.write("hangs.py", HANGS)
    process = subprocess.Popen([sys.executable, hangs], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for expected in ("ready", "asked to stop", "restored"):
        assert process.stdout.readline().strip() == expected
        if expected != "restored":
            process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE_S) == 130
    process.stdout.close()


HANGS = """
import threading
import anyio
from treadle.cli.signals import Stopping

def restore():
    print("restored", flush=True)
    threading.Event().wait()  # as a terminal that takes nothing would

async def main():
    async with anyio.create_task_group() as group:
        stopping = Stopping(restore)
        stopping.stop = lambda: print("asked to stop", flush=True)
        await group.start(stopping.watch)
        print("ready", flush=True)
        await anyio.sleep(600)

anyio.run(main)
"""


@pytest.mark.req("SV-01", "SV-02", "TC-26")
def test_a_running_loop_belongs_to_its_process_and_can_be_cancelled_from_another(tmp_path: Path) -> None:
    cli = CommandLine(tmp_path).git()
    with cli.running(*acting(SLOW, "--check", "true", "--json")) as process:
        wait_until(cli.workspace / "started")
        (listed,) = cli.documents()
        assert (listed["status"], listed["owner_alive"]) == ("running", True)
        refused = cli("resume", "last")
        assert refused.code == 2
        assert "is being run by" in refused.err
        assert cli("revert", "last", "--yes").code == 2
        assert cli("frame", "export", "last", str(tmp_path / "frame")).code == 2
        assert cli("cancel", "last", "--as", "ada", "--reason", "wrong idea").code == 0
        ran = finish(process)
    assert (ran.code, ran.document["status"], ran.document["code"]) == (1, "cancelled", "aborted")
    assert "ada: wrong idea" in ran.document["outcome"]["evidence"]
    assert cli("cancel", "last").code == 2


@pytest.mark.req("TC-26", "SV-03", "SV-02")
def test_a_killed_owner_is_seen_and_its_execution_taken_over(tmp_path: Path) -> None:
    cli = CommandLine(tmp_path)
    with cli.running(*acting(ONCE_SLOW, "--check", "true")) as process:
        wait_until(cli.workspace / "started")
        process.kill()
        process.wait()
        (listed,) = cli.documents()
        assert (listed["status"], listed["owner_alive"]) == ("running", False)
        assert "running (owner gone: resume)" in cli("ls").out
        assert cli("resume", "last", "--json").document["status"] == "done"


@pytest.mark.req("SV-07")
def test_a_detached_run_outlives_its_terminal_and_whoever_started_it(tmp_path: Path) -> None:
    cli = CommandLine(tmp_path)
    command = "echo started > started; while test ! -e release; do sleep 0.05; done"
    master, slave = pty.openpty()
    cli.write("anyio.py", "raise SystemExit('a module of the workspace was taken for a library')")
    flags = ("--check", "true", "--detach")
    process = cli.start("run", *acting(command, *flags), stderr=slave, preexec_fn=lambda: own(slave))
    os.close(slave)
    out, _ = process.communicate(timeout=PATIENCE_S)
    execution_id = out.strip()
    assert process.returncode == 0
    os.close(master)  # the terminal is gone
    wait_until(cli.workspace / "started")
    (listed,) = cli.documents()
    assert (listed["execution_id"], listed["status"], listed["owner_alive"]) == (execution_id, "running", True)
    cli.write("release", "")
    followed = cli("log", "-f", execution_id, "--json").out.splitlines()
    assert json.loads(followed[-1])["body"]["code"] == "accepted"
    assert cli("show", execution_id, "--json").document["status"] == "done"


@pytest.mark.req("SV-07")
def test_a_detached_run_that_cannot_start_says_so_and_leaves_nothing(tmp_path: Path) -> None:
    cli = CommandLine(tmp_path)
    ran = cli("run", *acting("true", "--check", "no-such-check", "--detach"))
    assert (ran.code, ran.out) == (2, "")
    assert "no-such-check" in ran.err
    assert cli.documents() == []


@pytest.mark.req("SV-07")
def test_a_command_and_an_address_are_told_of_each_rest_and_change_no_outcome(tmp_path: Path) -> None:
    cli = CommandLine(tmp_path)
    received: list[Received] = []

    def respond(request: Received) -> Answer:
        received.append(request)
        return Answer(status=500)

    told = tmp_path / "told"
    command = f'{{ cat; echo; echo "$TREADLE_STATUS $TREADLE_CODE $TREADLE_EXECUTION_ID"; }} > {told}; exit 7'
    waiting = cli("run", *acting("true", "--notify", command, "--json"))
    assert waiting.code == 3
    document, words = told.read_text().splitlines()
    assert json.loads(document) == waiting.document
    assert words == f"waiting-input approval {waiting.document['execution_id']}"
    assert "--notify: exit 7" in waiting.err
    cli("approve", "last")
    with LocalServer(respond) as server:
        done = cli("resume", "last", "--json", environ={"TREADLE_NOTIFY": f"{server.url}/hook"})
    assert done.code == 0
    assert [json.loads(request.body) for request in received] == [done.document]
    assert "answered 500" in done.err


@pytest.mark.req("AG-28")
def test_revert_puts_a_round_back_once_somebody_is_sure(tmp_path: Path) -> None:
    cli = CommandLine(tmp_path).git()
    cli.write("kept", "as it was\n")
    cli.environ["TREADLE_STORE"] = f"sqlite:///{cli.workspace}/store.db"  # inside: revert must leave it alone
    ran = cli("run", *acting("echo x >> made; echo changed > kept", "--check", "test $(wc -l < made) -ge 2", "-q"))
    assert ran.code == 0
    unsure = cli("revert", "last")
    assert unsure.code == 2
    assert "--yes" in unsure.err
    assert cli("revert", "last", "--round", "2", "--yes").code == 0
    assert (cli.workspace / "made").read_text() == "x\n"
    assert cli("revert", "last", "--yes").code == 0
    assert (cli.workspace / "kept").read_text() == "as it was\n"
    assert not (cli.workspace / "made").exists()
    assert cli("show", "last", "--json").document["code"] == "accepted"


@pytest.mark.req("FR-27", "FR-23")
def test_a_frame_is_read_checked_and_carried_to_another_machine_where_the_loop_goes_on(tmp_path: Path) -> None:
    here, there = CommandLine(tmp_path / "here").git(), CommandLine(tmp_path / "there").git()
    waiting = here("run", *acting("echo done > result", "--json")).document
    frame = json.loads(here("frame", "show", "last").out)
    assert (frame["kind"], frame["stepExecId"], frame["phase"]) == ("loop-frame", waiting["execution_id"], "evaluate")
    assert here("frame", "verify", "last").code == 0
    carried = tmp_path / "carried.json"
    assert here("frame", "export", "last", str(carried)).code == 0
    assert there("frame", "verify", str(carried)).code == 0

    whole = carried.read_bytes()
    for at in (30, len(whole) // 2, len(whole) - 3):
        (tmp_path / "broken.json").write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        refused = there("frame", "import", str(tmp_path / "broken.json"), "--workspace", str(there.workspace))
        assert (refused.code, there.documents()) == (1, [])

    assert there("frame", "import", str(carried), "--workspace", str(there.workspace)).code == 0
    assert there("frame", "import", str(carried), "--workspace", str(there.workspace)).code == 2, "it is there already"
    assert there("reject", "last", "--reason", "once more").code == 0
    again = there("resume", "last", "--json").document
    assert (again["execution_id"], again["rounds"], again["workspace"]) == (
        waiting["execution_id"], 2, str(there.workspace),
    )  # fmt: skip
    assert (there.workspace / "result").read_text() == "done\n"
    assert "+done" in there("diff", "last").out


LOOPS = """
import treadle

loop = treadle.Loop(name="kept", act=treadle.Command(command="echo x >> made"), evaluate=treadle.Person(), workspace=".")
"""
STARTS = """
import anyio
import loops
from treadle.app.runtime import Runtime
from treadle.app.stores import open_store
from treadle.ports.clock import NO_CRASH_POINTS
from treadle.settings import load_settings

async def main():
    settings = load_settings()
    ledger = await open_store(settings.store_url, NO_CRASH_POINTS)
    session = await Runtime(ledger, settings).start(loops.loop, "Do it", definition="loops:loop")
    await session.run()
    await session.close()
    await ledger.close()

anyio.run(main)
"""


@pytest.mark.req("SV-01")
def test_a_loop_defined_in_python_is_found_again_by_its_module_and_attribute(tmp_path: Path) -> None:
    cli = CommandLine(tmp_path)
    cli.write("loops.py", LOOPS)
    starts = cli.write("starts.py", STARTS)
    subprocess.run([sys.executable, starts], cwd=cli.workspace, env=cli.environ, check=True)
    assert cli("reject", "last", "--reason", "again").code == 0
    assert cli("resume", "last", "-q").code == 3
    assert (cli.workspace / "made").read_text() == "x\nx\n"
    (cli.workspace / "loops.py").unlink()
    cli("approve", "last")
    lost = cli("resume", "last")
    assert lost.code == 2
    assert "loops:loop cannot be imported" in lost.err
