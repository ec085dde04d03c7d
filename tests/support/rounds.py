"""A round's context that notes what is reported to it."""

from __future__ import annotations

from treadle.core.usage import Usage
from treadle.ports.callback import RoundContext


class NotedContext(RoundContext):
    """One phase of one round, all by itself."""

    def __init__(self, phase: str = "evaluate", **given) -> None:
        fields = {
            "execution_id": "x1",
            "round": 1,
            "attempt": 1,
            "idempotency_key": f"x1:r1.{phase}",
            "task": "Fix it",
            "feedback": None,
            "changed": (),
        }
        for name, value in {**fields, "phase": phase, **given}.items():
            setattr(self, name, value)
        self.reported: list[tuple[str, Usage]] = []
        self.intended: list[tuple[str, Usage]] = []
        self.groups: list[tuple[int, str]] = []

    def report_usage(self, usage: Usage) -> None:
        self.reported.append(("", usage.checked()))

    def report_usage_once(self, receipt: str, usage: Usage) -> None:
        self.reported.append((receipt, usage.checked()))

    async def intend(self, receipt: str, reserve: Usage) -> bool:
        self.intended.append((receipt, reserve.checked()))
        return True

    async def checkpoint(self) -> None:
        pass

    def started(self, pgid: int, birth: str) -> None:
        self.groups.append((pgid, birth))
