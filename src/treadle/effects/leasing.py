"""Leases at dispatch: a call of act that touches what no lease covers is refused before it starts (FR-12)."""

from __future__ import annotations

from dataclasses import dataclass

from treadle.core.errors import ToolError
from treadle.core.messages import ToolCall
from treadle.kernel import texts
from treadle.kernel.leases import REQUEST, capability_of, refusal, refused_above
from treadle.kernel.states import LoopState
from treadle.ports.children import Above
from treadle.ports.clock import Clock
from treadle.ports.toolset import Toolset


@dataclass(frozen=True, slots=True)
class LeaseGate:
    """Asked before each call. `ceiling` is today's, whatever was stored; None: there is none."""

    toolset: Toolset
    ceiling: tuple[str, ...] | None
    clock: Clock
    above: Above | None = None  # of a child at work: what holds for its calls at this moment

    def check(self, state: LoopState, call: ToolCall) -> None:
        """ToolError("permission") that says what is missing and how to ask for it."""
        leases, above = state.carried.leases, self.above
        if state.phase != "act" or (self.ceiling is None and not leases and above is None and not state.above):
            return  # an evaluator has no leases: its tools cannot change anything
        touches, now_us = self.toolset.touches(call), self.clock.wall_us()
        found = refusal(self.ceiling, leases, call, touches, now_us)
        if found is None and (above is not None or state.above):
            self._check_above(state, call, touches, now_us)
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

    def _check_above(self, state: LoopState, call: ToolCall, touches: tuple[str, ...], now_us: int) -> None:
        """A child may do nothing that one of those above it may not do now (FR-22)."""
        if self.above is not None and self.above.gated() and call.kind in ("idempotent", "mutating"):
            raise ToolError("permission", texts.GATED_ABOVE, hint="Finish, and say what is left to be done.")
        held = state.above if self.above is None else self.above.held()
        if (found := refused_above(held, call, touches, now_us)) is not None:
            raise ToolError(
                "permission",
                f"no lease of those that this child works for covers {capability_of(found[0])}.",
                hint="Do not try to get around it: find another way, or finish and say what is missing.",
            )
