"""Workflows at the command line: run by name, killed, listed, drawn, answered at any depth, gone on with."""

from __future__ import annotations

import re
import signal
import time
from pathlib import Path

import pytest

from support.commandline import CommandLine, InProcess, finish, wait_for
from support.providers import PROVIDERS, Call, ProviderEndpoint

RELEASE = """
import time
from decimal import Decimal

import anyio

from treadle import (
    ApprovalTask, Asks, Budget, Command, Loop, LoopTask, Person, QuotaReached, RunTask, Task, Usage, Workflow, accept, reject,
)


def note(*words):
    with open("notes", "a") as file:
        file.write(" ".join(map(str, words)) + "\\n")


async def fetch(ctx):
    note("fetch", ctx.attempt)
    return ctx.input


async def attempt(ctx, feedback):
    note("attempt", ctx.round, ctx.attempt, ctx.idempotency_key)
    return feedback or "short"


async def check(ctx, candidate):
    return accept() if candidate == "make it longer" else reject("make it longer")


async def name(ctx):
    if ctx.interaction.answer is None:
        await ctx.interaction.suspend("Which name?", {"asked": 1}, choices=("ada", "bob"))
    note("name", ctx.interaction.answer.text, ctx.interaction.state)
    return ctx.interaction.answer.text


fetched = Task("fetch", fetch)
drafted = LoopTask("draft", attempt, check, max_rounds=3, after=(fetched,))
named = Task("name", name, after=(drafted,), interaction=Asks())
workflow = Workflow("release", (fetched, drafted, named))

loop = Loop(name="inner", act=Command(command="true"), evaluate=Person(), workspace=".")
inner = RunTask("inner", Workflow("middle", (RunTask("loop", loop, input="do it"),)))
gate = ApprovalTask("gate", "Ship it?", after=(inner,), actors=("ada",))
nested = Workflow("nested", (inner, named.__class__("name", name, interaction=Asks()), gate))


async def limited(ctx):
    if ctx.quota is None:
        raise QuotaReached("the day is used up", reset_at_us=time.time_ns() // 1000 + 3_600_000_000)


quota = Workflow("quota", (Task("limited", limited),))


async def pays(ctx):
    ctx.report_usage_once(f"r{ctx.attempt}", Usage(requests=1, input_tokens=10, cost_usd=Decimal("0.5")))


async def sleeps(ctx):
    while True:
        await anyio.sleep(0.2)
        await ctx.checkpoint()


living = Workflow("living", (Task("sleeps", sleeps), Task("name", name, interaction=Asks())))
one = Task("one", pays)
capped = Workflow("capped", (one, Task("two", pays, after=(one,))), budget=Budget(max_requests=1))
number = 3
"""


def home(tmp_path: Path) -> CommandLine:
    cli = CommandLine(tmp_path)
    cli.write("release.py", RELEASE)
    return cli


def notes(cli: CommandLine) -> list[str]:
    return (cli.workspace / "notes").read_text().splitlines()


@pytest.mark.req("TC-25", "TC-04")
def test_a_killed_workflow_is_listed_drawn_resumed_and_answered(tmp_path: Path) -> None:
    cli = home(tmp_path)
    killed = cli("run", "release:workflow", "--input", '{"day": 1}', environ={"TREADLE_CRASH_AT": "after-attempt:2"})
    assert killed.code == -signal.SIGKILL
    (listed,) = cli.documents()
    assert (listed["kind"], listed["status"], listed["owner_alive"], listed["task"]) == (
        "workflow",
        "running",
        False,
        "release",
    )
    page = cli("show", "last").out
    assert "✓ fetch  done" in page
    assert "● draft  running  round 2 of 3, attempt, interrupted: its phase is repeated" in page
    assert "· name   waiting  for draft" in page

    waiting = cli("resume", "last", "--json")
    assert (waiting.code, waiting.document["status"], waiting.document["code"]) == (3, "waiting-input", "question")
    assert f"treadle answer {waiting.document['execution_id']} ada" in waiting.err
    attempts = [line.split() for line in notes(cli) if line.startswith("attempt")]
    assert [(line[1], line[2]) for line in attempts] == [("1", "1"), ("2", "2"), ("2", "3")]
    assert attempts[1][3] == attempts[2][3] != attempts[0][3], "the same key on replay"

    assert cli("answer", "last", "eve").code == 2, "none of the choices"
    assert cli("answer", "last", "ada", "-q").code == 0
    done = cli("resume", "last", "--json", "-q")
    assert (done.code, done.document["status"]) == (0, "done")
    assert {key: task["status"] for key, task in done.document["tasks"].items()} == dict.fromkeys(
        ("fetch", "draft", "name"), "done"
    )
    assert [line for line in notes(cli) if line.startswith("fetch")] == ["fetch 1"], "done work is not done again"
    assert notes(cli)[-1] == "name ada {'asked': 1}"


@pytest.mark.req("SV-03", "TC-18")
def test_a_workflow_gives_its_output_and_each_task_its_rounds_and_answers(tmp_path: Path) -> None:
    cli = home(tmp_path)
    assert cli("run", "release:workflow", "--input", '{"day": 1}', "--json", "-q").document["output"] is None
    cli("answer", "last", "ada", "-q")
    done = cli("resume", "last", "--json", "-q").document
    assert list(done["output"]) == ["name"], "what the last task gave"
    assert cli("show", "last", "--json").document["output"] == done["output"]
    draft = cli("show", "last", "--task", "draft", "--json").document
    assert [(one["round"], one["verdict"]) for one in draft["history"]] == [(1, "rejected"), (2, "accepted")]
    assert draft["output"]
    assert draft["history"][0]["feedback"]
    (answer,) = cli("show", "last", "--task", "name", "--json").document["answers"]
    assert (answer["decision"], answer["text"]) == ("answer", "ada")
    assert "output" in cli("show", "last", "--task", "name").out
    unknown = cli("show", "last", "--task", "draught")
    assert unknown.code == 2
    assert "fetch, draft, name" in unknown.err


@pytest.mark.req("TC-22", "TC-23")
def test_questions_at_every_depth_are_answered_once_by_whom_they_name(tmp_path: Path) -> None:
    cli = home(tmp_path)
    waiting = cli("run", "release:nested", "--json", "-q").document
    deep = next(one["request_id"] for one in waiting["questions"] if one["kind"] == "evaluation")
    assert deep.count(".") == 3, "loop and middle workflow"
    documents = {one["task"]: one for one in cli.documents()}
    assert documents["middle"]["parent"] == waiting["execution_id"]
    assert documents["do it"]["parent"] == documents["middle"]["execution_id"]
    assert "└ " in cli("ls").out

    vague = cli("answer", "last", "ada")
    assert (vague.code, "name.q1" in vague.err, deep in vague.err) == (2, True, True), "which one is not guessed"
    assert cli("resume", documents["do it"]["execution_id"]).code == 2, "it goes on with its workflow"
    said = cli("approve", documents["do it"]["execution_id"], "--as", "eve", "--reason", "fine", "--json").document
    assert said["execution_id"] == waiting["execution_id"], "the outermost workflow is told"
    assert cli("approve", "last", "--request", deep).code == 2, "nobody decides it twice"
    assert cli("answer", "last", "bob", "-q").code == 0, "the only open one now"

    gate = cli("resume", "last", "--json", "-q").document
    assert (gate["code"], gate["pending"]["request_id"]) == ("approval", "gate.q1")
    assert cli("approve", "last", "--as", "eve").code == 2, "only ada may"
    assert cli("answer", "last", "yes", "--as", "ada").code == 2, "a gate wants a decision"
    rejected = cli("reject", "last", "--as", "ada", "--reason", "not today", "-q")
    assert rejected.code == 0
    ended = cli("resume", "last", "--json")
    assert (ended.code, ended.document["status"]) == (1, "rejected")
    assert "not today" in cli("why", "last").out


@pytest.mark.req("TC-23")
def test_a_running_workflow_is_answered_and_cancelled_by_other_processes(tmp_path: Path) -> None:
    cli = home(tmp_path)
    process = cli.start("run", "release:living", "--json")
    wait_for(process, "name: begins")
    while "waits" not in (listed := cli.documents()[0]):
        assert process.poll() is None
    assert (listed["status"], listed["waits"][0]["request_id"]) == ("running", "name.q1")
    assert "running, a question (name)" in cli("ls").out
    assert "next     treadle answer" in cli("why", "last").out
    answered = cli("answer", "last", "ada")
    assert "given to the process that runs it" in answered.err
    wait_for(process, "name: done")
    assert cli("answer", "last", "bob").code == 2, "it has been answered"
    assert cli("cancel", "last", "--as", "eve").code == 0
    ended = finish(process)
    assert (ended.code, ended.document["status"]) == (1, "cancelled")
    assert "cancelled by eve" in ended.err


@pytest.mark.req("TC-24")
def test_a_quota_pause_is_listed_with_the_time_at_which_it_goes_on(tmp_path: Path) -> None:
    cli = home(tmp_path)
    process = cli.start("run", "release:quota")
    wait_for(process, "the day is used up")
    while (listed := cli.documents()[0])["status"] != "paused":
        assert process.poll() is None
    process.kill()
    process.communicate()
    assert listed["pending"]["until_us"] > time.time_ns() // 1000
    assert "paused, quota, until " in cli("ls").out
    assert "goes on at " in cli("show", "last").out
    assert re.search(r"waits    quota until [\d:]+\n  the day is used up", cli("why", "last").out)


QUOTA = """
import os
from treadle import Agent, Loop, RunTask, Workflow

agent = Agent(model=os.environ["MODEL"], base_url=os.environ["ENDPOINT"], api_key="k", price="1,1")
loop = Loop(name="inner", act=agent, evaluate="grep -q 42 answer.txt", workspace=".")
middle = Workflow("middle", (RunTask("loop", loop, input="Write the answer"),))
workflow = Workflow("quota", (RunTask("inner", middle),))
"""


@pytest.mark.req("TC-24")
@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_providers_word_on_its_quota_is_kept_by_a_loop_inside_over_a_kill_until_it_is_accepted(
    tmp_path: Path, provider: str
) -> None:
    cli = InProcess(tmp_path)
    cli.write("limited.py", QUOTA)
    script: list[Call] = [
        ("list_dir", {}),
        ("write_file", {"path": "answer.txt", "text": "42"}),
        ("finish", {"summary": "written"}),
    ]
    with ProviderEndpoint(provider, script, refused=2, seconds=5) as endpoint:
        cli.environ |= {"ENDPOINT": endpoint.base_url, "MODEL": endpoint.provider.model}
        process = cli.start("run", "limited:workflow")
        while not (listed := cli.documents()) or "waits" not in listed[-1]:
            assert process.poll() is None
        assert "running, quota until " in cli("ls").out
        process.kill()
        process.communicate()
        page = cli("ls").out
        assert "paused, quota, until " in page
        assert re.search(r"running \(owner gone: resume\), quota until [\d:]+ \(inner\)", page)
        assert "inner waits for quota until " in cli("show", listed[-1]["execution_id"]).out
        watched = cli("watch", listed[-1]["execution_id"], "--once").out
        assert re.search(r"inner waits for quota until [\d:]+ ", watched)
        assert re.search(
            r"owner gone, quota until [\d:]+ \(inner\)", cli("watch", "--once", environ={"COLUMNS": "160"}).out
        )
        why = cli("why", listed[-1]["execution_id"], "--json").document
        (waits,) = why["waits"]
        assert (waits["for"], waits["child"]) == ("quota", listed[0]["execution_id"]), "the innermost is named"
        asked = endpoint.asked
        resumed = cli("resume", "last", "--json", environ={"COLUMNS": "99"})
        assert asked == 2
        until_us = listed[0]["pending"]["until_us"]
        assert waits["until_us"] == until_us
        assert time.time_ns() // 1000 >= until_us, "it went on before the quota was there again"
    assert (resumed.code, resumed.document["status"]) == (0, "done"), resumed.err
    assert resumed.document["usage"]["requests"] == 3
    assert resumed.document["usage"]["in_doubt_requests"] == 0
    assert endpoint.asked == 4


@pytest.mark.req("TC-21")
def test_a_workflow_that_its_budget_stopped_is_extended_and_recovered(tmp_path: Path) -> None:
    cli = home(tmp_path)
    stopped = cli("run", "release:capped", "--json")
    assert (stopped.code, stopped.document["code"]) == (4, "limit")
    assert f"treadle extend {stopped.document['execution_id']} --max-requests 2" in stopped.err
    assert cli("extend", "last", "--max-rounds", "9").code == 2, "that is a limit of loops"
    assert cli("extend", "last", "--max-requests", "3", "-q").code == 0
    recovered = cli("recover")
    assert (recovered.code, cli.documents()[0]["status"]) == (0, "done"), recovered.err


@pytest.mark.req("SV-02")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("release:number",), "is no Loop and no Workflow"),
        (("release:absent",), "cannot be imported"),
        (("broken:workflow",), "broken:workflow is ill-defined: w: these tasks depend on one another in a circle: a."),
        (("release:workflow", "--input", "{"), "is no JSON"),
        (("release:workflow", "--max-rounds", "3"), "says that itself"),
        (("Do it", "--input", "1"), "goes with a definition"),
    ],
)
def test_what_cannot_be_run_by_name_is_refused_before_anything_starts(
    tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    cli = home(tmp_path)
    cli.write(
        "broken.py", "from treadle import Task, Workflow\nworkflow = Workflow('w', [Task('a', print, after=['a'])])\n"
    )
    ran = cli("run", *arguments)
    assert (ran.code, said in ran.err) == (2, True), ran.err
    assert not cli.store_file.exists()
