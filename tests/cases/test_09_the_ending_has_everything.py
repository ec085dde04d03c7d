"""Case 9: the limit error carried no messages. The ending's artifact has the history, the counts and what to do next."""

import json
from pathlib import Path

from support.commandline import InProcess
from support.loops import FIRST, LOOK, run
from treadle.testing import ScriptedEndpoint, Turn


def test_what_a_limit_ended_is_written_down_whole(tmp_path: Path) -> None:
    cli = InProcess(tmp_path)
    with ScriptedEndpoint([FIRST, LOOK, Turn(text="Now I know: it is 42.", calls=[("list_dir", {})])]) as endpoint:
        assert run(cli, endpoint, "--max-turns", "3").code == 4
    page = Path(cli("why", "last", "--json").document["artifact"])
    text = page.read_text()
    assert "Now I know: it is 42." in text, "what was said last stands in the page itself"
    assert "3 requests" in text
    assert "treadle extend" in text
    ending = json.loads(page.with_suffix(".json").read_text())
    assert ending["outcome"]["kind"]
    assert (ending["turns_taken"], ending["usage"]["requests"], len(ending["round_records"])) == (3, 3, 1)
