"""Every line of a task's context holds although the process dies, or loses the execution to another owner, at any crash point.

Each show of `support/shows.py` and `support/more_shows.py` runs once whole; then once for each named crash point and each time that it is
reached, with its end there, and what is true of the uninterrupted run must be true again. In memory a death is an exception and a store
that takes nothing more; `tests/crash/workflow_kills.py` kills real processes. Left out, since nothing has begun that could die: the static
types of TC-13, the definitions that TC-15 and TC-19 refuse, the reports that TC-10 and TC-11 refuse, and the values without a store of
TC-17. Worktrees of TC-28 are in `test_workflow_speculation.py`.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support.deaths import Fate, FateAt, Lives
from support.more_shows import SHOWS

SHOWN = [
    pytest.param(
        "rounds",
        marks=pytest.mark.req(
            "TC-01", "TC-02", "TC-05", "TC-08", "TC-09", "TC-13", "TC-14", "TC-16", "TC-17", "TC-18", "TC-19", "TC-25"
        ),
    ),
    pytest.param("accounts", marks=pytest.mark.req("TC-10", "TC-11", "TC-12")),
    pytest.param("budget", marks=pytest.mark.req("TC-21")),
    pytest.param("people", marks=pytest.mark.req("TC-04", "TC-22", "TC-23")),
    pytest.param("endings", marks=pytest.mark.req("TC-07", "TC-14", "TC-15", "TC-25", "TC-29")),
    pytest.param("waits", marks=pytest.mark.req("TC-03", "TC-20", "TC-24")),
    pytest.param("nested", marks=pytest.mark.req("TC-05", "TC-09", "TC-11", "TC-25", "TC-06", "TC-27")),
    pytest.param("speculating", marks=pytest.mark.req("TC-28")),
    pytest.param("cancelled", marks=pytest.mark.req("TC-29")),
    pytest.param("rejected", marks=pytest.mark.req("TC-22", "TC-29")),
    pytest.param("stopping", marks=pytest.mark.req("TC-07", "TC-29")),
]
LONG = {"people": 3, "nested": 5, "waits": 2}
ROBBED = ("rounds", "accounts", "nested", "speculating")


def through(name: str, fate: Fate, *, every: int = 1, points: tuple[str, ...] = ()) -> int:
    """The show with this fate at each point, or at every so many times that one is reached. How often that was."""
    show = SHOWS[name]
    reached = FateAt()
    Lives(show).to_the_end(reached)
    count = 0
    for point in points or tuple(reached.counts):
        for nth in range(1, reached.counts[point] + 1, every):
            met = FateAt(point, nth, fate)
            try:
                Lives(show).to_the_end(met)
            except BaseException as error:
                error.add_note(f"{name} {fate} at {point}, the {nth}. time")
                raise
            count += met.dead or met.robbed
    return count


@pytest.mark.parametrize("name", SHOWN)
def test_all_of_it_holds_wherever_the_process_dies(name: str) -> None:
    assert through(name, "dies", every=LONG.get(name, 1)) >= 14


@pytest.mark.req("TC-26", "RT-03")
@pytest.mark.parametrize("name", ROBBED)
def test_an_owner_that_was_taken_over_commits_nothing_more_and_begins_nothing_again(name: str) -> None:
    assert through(name, "robbed", every=LONG.get(name, 1), points=("ledger.before-commit",)) >= 10


@pytest.mark.slow
@pytest.mark.parametrize("name", SHOWN)
@pytest.mark.parametrize("fate", ["dies", "robbed"])
def test_at_every_point_whenever_it_is_reached(name: str, fate: Fate) -> None:
    assert through(name, fate) >= 14


KILLS = Path(__file__).parents[1] / "crash" / "workflow_kills.py"


@pytest.mark.req("TC-09", "TC-11", "TC-16", "TC-25", "TC-26")
@pytest.mark.parametrize(
    "options",
    [("--shows", "rounds", "accounts", "nested", "--every", "30"), pytest.param((), marks=pytest.mark.slow)],
    ids=["some", "all"],
)
def test_the_same_with_sigkill_and_a_file(options: tuple[str, ...]) -> None:
    done = subprocess.run([sys.executable, KILLS, *options], capture_output=True, text=True, timeout=3000, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 faults" in done.stdout
