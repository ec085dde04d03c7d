"""Commands run to their end: what comes back, within which bounds, and that nothing of them is left."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from pathlib import Path

import anyio
import pytest
from anyio import to_thread
from hypothesis import given
from hypothesis import strategies as st

from treadle.core.spoken import count
from treadle.tools.headtail import HeadTail
from treadle.tools.process import ProcessResult, kill_recorded, run_process

ENV = {"PATH": os.environ["PATH"]}


def run(command, folder: Path, **options) -> ProcessResult:
    options = {"env": ENV, "timeout_s": 60, "output_limit_bytes": 10_000} | options

    async def main():
        return await run_process(command, cwd=folder, **options)

    return anyio.run(main)


def gone(pid: int) -> bool:
    """Whether there is no such process, or only what its parent has not collected yet."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return True
    return state in "ZX"


def pids_in(folder: Path) -> list[int]:
    return [int(text) for file in folder.glob("*.pid") if (text := file.read_text().strip())]


async def appear(folder: Path, count: int) -> None:
    with anyio.fail_after(60):
        while len(pids_in(folder)) < count:  # noqa: ASYNC110 - another process tells
            await anyio.sleep(0.01)


FOREVER = "while :; do sleep 0.01; done"


def noted(name: str, body: str = FOREVER) -> str:
    """A shell command that leaves its pid behind, then goes on."""
    return f"sh -c 'echo $$ > {name}.pid; {body}'"


# ---- results


def test_output_is_both_streams_in_order_and_the_exit_code_is_the_commands(tmp_path):
    result = run("echo one; echo two >&2; echo three; exit 7", tmp_path)
    assert (result.output, result.exit_code, result.signal) == ("one\ntwo\nthree\n", 7, None)
    assert not result.timed_out
    assert result.truncated_bytes == 0
    assert result.elapsed_us > 0


def test_a_command_ended_by_a_signal_has_no_exit_code(tmp_path):
    result = run("kill -9 $$", tmp_path)
    assert (result.exit_code, result.signal) == (None, 9)


def test_a_sequence_is_run_as_it_is_without_a_shell(tmp_path):
    assert run(["printf", "%s|", "a b", "$HOME", "", "*"], tmp_path).output == "a b|$HOME||*|"


def test_the_command_sees_the_given_environment_and_folder_only(tmp_path):
    result = run("pwd; echo $GIVEN; echo ${HOME:-no home}", tmp_path, env={**ENV, "GIVEN": "x=y z"})
    assert result.output == f"{tmp_path}\nx=y z\nno home\n"


@pytest.mark.parametrize("size", [0, 3, 70_000, 3_000_000])
def test_standard_input_is_given_whole_and_ends(tmp_path, size):
    assert run("wc -c", tmp_path, stdin=b"x" * size).output.strip() == str(size)


def test_without_input_there_is_none_to_wait_for(tmp_path):
    assert run("cat; echo read", tmp_path).output == "read\n"


def test_input_that_is_not_wanted_does_not_hold_the_command_up(tmp_path):
    assert run("exec 0<&-; echo done", tmp_path, stdin=b"x" * 5_000_000).output == "done\n"


def test_undecodable_output_is_replaced(tmp_path):
    assert run(r"printf 'a\377b'", tmp_path).output == "a\ufffdb"


def test_a_relative_folder_is_the_callers(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "below").mkdir()
    assert run("pwd", Path("below")).output == f"{tmp_path}/below\n"


def test_a_missing_program_is_named(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        run(["no-such-program"], tmp_path)
    assert caught.value.filename == "no-such-program"


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        run("true", tmp_path / "nowhere")
    assert caught.value.filename == str(tmp_path / "nowhere")


def test_a_file_that_cannot_be_executed_is_a_typed_error(tmp_path):
    (tmp_path / "text").write_text("x")
    with pytest.raises(PermissionError):
        run(["./text"], tmp_path)


def test_a_nul_character_is_refused_before_anything_starts(tmp_path):
    with pytest.raises(ValueError, match="NUL"):
        run("touch started\0", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_broken_pipes_end_a_writer_as_in_any_shell(tmp_path):
    """Python ignores SIGPIPE; a command must not inherit that."""
    assert run(["/bin/bash", "-c", "yes | head -1 >/dev/null; echo ${PIPESTATUS[0]}"], tmp_path).output == "141\n"


# ---- bounds


def test_a_large_output_keeps_its_head_and_tail_and_says_what_is_missing(tmp_path):
    result = run(
        "echo first; head -c 50000000 /dev/zero | tr '\\0' x; echo; echo last", tmp_path, output_limit_bytes=100
    )
    assert result.output.startswith("first\nx")
    assert result.output.endswith("x\nlast\n")
    assert f"[... {result.truncated_bytes:,} bytes left out ...]" in result.output
    assert result.truncated_bytes == 50_000_000 + len("first\n\nlast\n") - 100


def test_endless_output_is_stopped_by_the_timeout_in_bounded_memory(tmp_path):
    result = run("yes", tmp_path, timeout_s=0.5, output_limit_bytes=1000, grace_s=0.1)
    assert result.timed_out
    assert result.truncated_bytes > 1000
    assert len(result.output) < 1100


def test_a_timeout_asks_first_and_the_output_so_far_is_kept(tmp_path):
    result = run("trap 'echo bye; exit 5' TERM; echo hi; while :; do :; done", tmp_path, timeout_s=0.3, grace_s=30)
    assert result.timed_out
    assert result.output == "hi\nbye\n"
    assert result.exit_code == 5


def test_what_ignores_the_polite_signal_is_killed(tmp_path):
    result = run("trap '' TERM; while :; do sleep 0.01; done", tmp_path, timeout_s=0.2, grace_s=0.1)
    assert result.timed_out
    assert result.signal == 9


@given(st.lists(st.binary(max_size=40)), st.integers(2, 60))
def test_head_and_tail_are_the_ends_of_what_came(chunks, limit):
    kept = HeadTail(limit)
    for chunk in chunks:
        kept.add(chunk)
    whole = b"".join(chunks)
    text, left_out = kept.text()
    if len(whole) <= limit:
        assert (text, left_out) == (whole.decode(errors="replace"), 0)
        return
    head, _, _ = text.partition(f"\n[... {count(left_out, 'byte')} left out ...]\n")
    assert whole.decode(errors="replace").startswith(head.rstrip("\ufffd"))
    assert len(whole) - limit <= left_out <= len(whole) - limit + 6  # a character is not torn in two
    assert len(text) <= limit + 40


def test_head_and_tail_keep_whole_characters():
    kept = HeadTail(9)
    kept.add("äöüäöüäöü".encode())
    text, left_out = kept.text()
    assert text == "äö\n[... 10 bytes left out ...]\nöü"
    assert left_out == 10


# ---- nothing is left


@pytest.mark.req("AG-23")
def test_background_children_neither_hold_the_command_up_nor_outlive_it(tmp_path):
    """A plain one, one under nohup, one that left the session, and one that was orphaned twice: all keep the output open."""
    command = "\n".join(
        [
            f"{noted('plain')} &",
            f"nohup {noted('nohup')} &",
            f"setsid {noted('setsid')} &",
            f"(setsid sh -c '{noted('orphan').replace(chr(39), chr(34))} & exit' &)".replace("$$", r"\$\$"),
            "while [ $(cat *.pid 2>/dev/null | wc -l) -lt 4 ]; do sleep 0.01; done; echo over",
        ]
    )
    result = run(command, tmp_path)
    assert result.output.endswith("over\n")
    pids = pids_in(tmp_path)
    assert len(pids) == 4
    assert all(gone(pid) for pid in pids)


@pytest.mark.req("AG-23")
def test_cancelling_kills_everything_before_it_returns(tmp_path):
    async def main():
        async with anyio.create_task_group() as group:
            group.start_soon(started)
            await appear(tmp_path, 2)
            group.cancel_scope.cancel()
        return [gone(pid) for pid in pids_in(tmp_path)]

    async def started():
        command = f"setsid {noted('away')} & {noted('here', 'trap : TERM; ' + FOREVER)}"
        await run_process(command, cwd=tmp_path, env=ENV, timeout_s=None, output_limit_bytes=100)

    assert anyio.run(main) == [True, True]


def test_asyncios_own_cancellation_kills_everything_before_it_returns(tmp_path):
    """It passes through anyio's shields."""

    async def main():
        task = asyncio.ensure_future(
            run_process(noted("here"), cwd=tmp_path, env=ENV, timeout_s=None, output_limit_bytes=100)
        )
        await appear(tmp_path, 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return [gone(pid) for pid in pids_in(tmp_path)]

    assert asyncio.run(main()) == [True]


def test_cancelled_before_it_begins_it_starts_nothing(tmp_path):
    async def main():
        with anyio.CancelScope() as scope:
            scope.cancel()
            await run_process("touch started", cwd=tmp_path, env=ENV, timeout_s=None, output_limit_bytes=100)

    anyio.run(main)
    assert list(tmp_path.iterdir()) == []


def test_what_started_raises_kills_the_command_and_is_raised(tmp_path):
    class Refused(Exception):
        pass

    def refuse(pgid, birth):
        groups.append(pgid)
        raise Refused

    groups: list[int] = []
    with pytest.raises(Refused):
        run(FOREVER, tmp_path, started=refuse)
    assert gone(groups[0])


def test_started_is_called_on_the_event_loops_thread_with_the_commands_own_group(tmp_path):
    seen = []
    result = run("echo $$", tmp_path, started=lambda pgid, birth: seen.append((pgid, threading.current_thread())))
    assert seen == [(int(result.output), threading.main_thread())]


def test_a_supervisor_that_is_killed_takes_the_command_with_it(tmp_path):
    command = f"setsid {noted('away')} & echo $$ > here.pid; while [ ! -s away.pid ]; do sleep 0.01; done; kill -9 $PPID; {FOREVER}"
    result = run(command, tmp_path)
    assert result.signal == 9
    assert [gone(pid) for pid in pids_in(tmp_path)] == [True, True]


# ---- from anywhere


def test_many_at_once_from_tasks_and_from_worker_threads(tmp_path):
    outputs: list[str] = []

    async def one(number: int) -> None:
        result = await run_process(f"echo {number}", cwd=tmp_path, env=ENV, timeout_s=60, output_limit_bytes=100)
        outputs.append(result.output)

    async def main() -> None:
        async with anyio.create_task_group() as group:
            for number in range(8):
                group.start_soon(one, number)
            for number in range(8, 12):
                group.start_soon(to_thread.run_sync, lambda number=number: anyio.run(one, number))

    anyio.run(main)
    assert sorted(outputs, key=int) == [f"{number}\n" for number in range(12)]


def test_no_descriptors_are_left_open(tmp_path):
    def count() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    async def main() -> tuple[int, int]:
        options = {"cwd": tmp_path, "env": ENV, "timeout_s": 60, "output_limit_bytes": 100}
        await run_process("true", **options)
        before = count()
        for _ in range(3):
            await run_process("cat", stdin=b"x", **options)
            with pytest.raises(FileNotFoundError):
                await run_process(["no-such-program"], **options)
        return before, count()

    before, after = anyio.run(main)
    assert after == before


# ---- recorded groups


def test_a_recorded_group_is_not_killed_once_its_number_is_anothers(tmp_path):
    """The same number with another start time or boot: a stranger."""

    async def main():
        async with anyio.create_task_group() as group:
            group.start_soon(started)
            await appear(tmp_path, 1)
            await told.wait()
            pgid, birth = recorded[0]
            boot, start, tag = birth.split(":")
            strangers = [f"{boot}:{int(start) + 1}:{'0' * 16}", f"another-boot:{start}:{tag}", "", "::", "a:b"]
            assert [kill_recorded(pgid, stranger) for stranger in strangers] == [False] * len(strangers)
            alive = not gone(pgid)
            group.cancel_scope.cancel()
        return alive

    def record(*group):
        recorded.append(group)
        told.set()

    async def started():
        options = {"cwd": tmp_path, "env": ENV, "timeout_s": None, "output_limit_bytes": 100}
        await run_process(noted("x"), started=record, **options)

    recorded: list[tuple[int, str]] = []
    told = anyio.Event()
    assert anyio.run(main)


def test_nothing_is_there_to_kill_when_the_command_has_ended(tmp_path):
    recorded = []
    run("true", tmp_path, started=lambda *group: recorded.append(group))
    assert kill_recorded(*recorded[0]) is False


@pytest.mark.skipif(sys.platform != "linux", reason="start times are read from /proc")
def test_the_record_holds_the_boot_and_the_start_of_the_leader(tmp_path):
    recorded = []
    run("cat /proc/$$/stat /proc/sys/kernel/random/boot_id", tmp_path, started=lambda *group: recorded.append(group))
    result = run("cat /proc/sys/kernel/random/boot_id", tmp_path)
    assert recorded[0][1].startswith(result.output.strip() + ":")
