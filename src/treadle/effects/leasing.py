"""Leases at dispatch: a call of act that touches what no lease covers is refused before it starts (FR-12)."""

from __future__ import annotations

from dataclasses import dataclass

from treadle.core.errors import ToolError
from treadle.core.messages import ToolCall
from treadle.kernel.leases import REQUEST, capability_of, refusal
from treadle.kernel.states import LoopState
from treadle.ports.clock import Clock
from treadle.ports.toolset import Toolset


@dataclass(frozen=True, slots=True)
class LeaseGate:
    """Asked before each call. `ceiling` is today's, whatever was stored; None: there is none."""

    toolset: Toolset
    ceiling: tuple[str, ...] | None
    clock: Clock

    def check(self, state: LoopState, call: ToolCall) -> None:
        """ToolError("permission") that says what is missing and how to ask for it."""
        leases = state.carried.leases
        if state.phase != "act" or (self.ceiling is None and not leases):
            return  # an evaluator has no leases: its tools cannot change anything
        found = refusal(self.ceiling, leases, call, self.toolset.touches(call), self.clock.wall_us())
        if found is None:
            return
        target, grantable = found
        capability = capability_of(target)
        how = f'{REQUEST}(capability="{capability}", reason=...) asks the person for it.'
        if not grantable:
            how = "Nobody may grant it here: find another way, or finish and say what is missing."
        elif self.ceiling is None:
            how = "A person has revoked it: go on without it, or ask_person."
        raise ToolError("permission", f"no lease covers {capability}. {how}", hint="Do not try to get around it.")
