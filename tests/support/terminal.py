"""A person at a terminal."""

from __future__ import annotations

import os
import select

from support.commandline import PATIENCE_S


def typed(master: int, dialogue: list[tuple[str, str]]) -> str:
    """Types each answer once its question has been asked; what was on the screen until the end."""
    screen, asked = "", 0
    while select.select([master], [], [], PATIENCE_S)[0]:
        try:
            more = os.read(master, 65536)
        except OSError:  # the other end is closed: it has ended
            return screen
        screen += more.decode(errors="replace")
        if dialogue and dialogue[0][0] in screen[asked:]:
            asked = len(screen)
            os.write(master, dialogue.pop(0)[1].encode())
    raise AssertionError(f"it hangs: {screen}")
