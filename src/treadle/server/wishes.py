"""What is asked of the service: the bodies of its writes. A field that is not known is refused."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool


class Given(BaseModel):
    """A request: what is not known is refused."""

    model_config = ConfigDict(extra="forbid")


class Act(Given):
    """What every wish carries: the number of the last record that its sender has seen."""

    seen: int = Field(ge=0, description="sequence last seen; a stale one is refused with 409")
    actor: str = Field("", max_length=200, description="who says so; empty: the user who runs the studio")


class ReasonIn(Act):
    """With a word on why."""

    request_id: str = Field("", max_length=300)
    reason: str = Field("", max_length=20_000)


class AnswerIn(Act):
    """An answer to the open question."""

    request_id: str = Field(max_length=300)
    text: str = Field(max_length=100_000)


class ResumeIn(Act):
    """As `treadle resume`."""

    retry_incomplete: StrictBool = False
    adopt: StrictBool = False


class StepIn(Act):
    """How much is done before it is held."""

    unit: Literal["turn", "round"] = Field("turn", description="turn: one turn, or one check; round: up to its verdict")


class ExtendIn(Act):
    """New limits, each counted from the start."""

    max_rounds: int | None = Field(None, ge=1, le=1_000_000)
    max_turns: int | None = Field(None, ge=1, le=1_000_000_000)
    max_cost_usd: str | None = Field(None, max_length=40)
    max_time_s: float | None = Field(None, gt=0, lt=1e10)
    max_tokens: int | None = Field(None, ge=1, le=10**15)
    guards: dict[str, int] = Field({}, max_length=50, description="new thresholds by name")
    warn_at: list[int] | None = Field(None, max_length=10, description="per cent of the turns of a round")
    compact_at: int | None = Field(None, ge=1, le=100, description="per cent of the window")


class PlanIn(Act):
    """Another plan in place of the one that was seen: a step is its title, or `{title, id?, check?, after?}`."""

    steps: list[str | dict[str, Any]] = Field(max_length=100)
    digest: str = Field("", max_length=64, description="of the plan that was seen")


class MarkIn(Act):
    """A person's word on a step. It is kept apart from what a check has verified."""

    status: Literal["done", "failed"]
    reason: str = Field(max_length=2_000)


class CompactIn(Act):
    """How deep: micro trims old outputs, auto folds early turns, full leaves a summary and what is pinned."""

    depth: Literal["micro", "auto", "full"]


class LeaseIn(Act):
    """What the acting agent may touch from now on, or may not."""

    op: Literal["grant", "revoke"]
    capability: str = Field(max_length=1_000, description="namespace or namespace:glob, such as fs.write:src/**")
    scope: Literal["turn", "step", "loop"] = Field("loop", description="when it ends by itself")
    for_s: float | None = Field(None, gt=0, lt=1e9, description="seconds until it expires")
    reason: str = Field("", max_length=20_000)


class PinIn(Act):
    """A mark in the log to come back to."""

    label: str = Field("", max_length=100, description="empty: round and turn")


class ForkIn(Act):
    """Where to go on from, as another execution."""

    at: int = Field(ge=1, le=2**63 - 1, description="the record up to which the past is shared: that of a pin")


class StartIn(Given):
    """A loop file of the workspace, or its text, and the task."""

    loop: str = Field("", max_length=200, description="name of a loop file in .treadle/loops")
    text: str = Field("", max_length=262_144, description="the loop file itself, instead of a name")
    task: str = Field("", max_length=200_000)
