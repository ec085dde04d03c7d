"""Case 11: 6,239 iterations while the finish phrase never came. A model that never finishes meets a guard, and a cap before that."""

from pathlib import Path

import pytest

from support.commandline import InProcess
from support.loops import FIRST, LOOK, run
from treadle.testing import ScriptedEndpoint, Turn

TALK = Turn(text="DONE! TASK COMPLETE. <promise>finished</promise>")


@pytest.mark.parametrize(
    ("turn", "flags", "code", "outcome", "most"),
    [
        (TALK, (), 1, "thrash: no-call", 8),
        (LOOK, (), 1, "thrash: repeat", 10),
        (LOOK, ("--max-turns", "4"), 4, "", 4),
    ],
)
def test_it_ends_soon_and_says_why(
    turn: Turn, flags: tuple[str, ...], code: int, outcome: str, most: int, tmp_path: Path
) -> None:
    cli = InProcess(tmp_path)
    with ScriptedEndpoint([FIRST, *[turn] * 6000]) as endpoint:
        ran = run(cli, endpoint, *flags)
        assert ran.code == code, ran.err
        assert outcome in ran.document["outcome"]["kind"]
        assert len(endpoint.requests) <= most
