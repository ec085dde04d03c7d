"""One event of each kind, with every field set: what the golden file of a version holds."""

from __future__ import annotations

from decimal import Decimal

from support.machine import settings
from treadle.core import child_events as ce
from treadle.core import events as ev
from treadle.core import lesson_events as le
from treadle.core.lease_events import Held, Lease
from treadle.core.messages import Compacted, MapGiven, ModelResponded, Prompted, ToolCall, ToolResult, ToolsFinished
from treadle.core.plans import PlanStep, StepCheck
from treadle.core.usage import Usage
from treadle.core.values import Value

USAGE = Usage(
    input_tokens=1,
    output_tokens=2,
    cache_read_tokens=3,
    cache_write_tokens=4,
    requests=5,
    cost_usd=Decimal("0.000001"),
)

FACTS = ev.PromptFacts(
    key="k", static="s", tools="t", window=8, reserved=2, static_tokens=1, tools_tokens=1, changed=("tools",)
)

HELD = Held(
    ceiling=("fs.write",),
    leases=(Lease(id="l", op="grant", capability="fs.write", scope="loop", expires_at_us=9, by="a"),),
)

EVENTS: tuple[Value, ...] = (
    ev.LoopStarted(
        settings=settings(),
        step_exec_id="s",
        input_json='"t"',
        task="t",
        fingerprint={"check": "1"},
        at_us=1,
        workspace="/w",
        definition="m:a",
        scope=ev.Isolation(origin="/w", folder="/s", branch="treadle/e", base="b", target="main", on_accept="merge"),
        forked_by="p",
        above=(HELD,),
    ),
    ev.Interrupted(epoch=2, reason="taken-over", us=3),
    ev.BaselineTaken(tree="t", note="n"),
    Prompted(
        parent=None,
        text="t",
        origin="task",
        mounts=("skill:s",),
        map=MapGiven(budget=9, tokens=8, modality="debug", files=7, files_left=6, definitions_left=5, us=4, none="n"),
    ),
    ev.ModelIntended(call="c", reserve=USAGE, request="d", model="p:m", prompt=FACTS),
    ModelResponded(
        parent=1,
        call="c",
        text="t",
        calls=(
            ToolCall(id="i", name="n", args={"a": [1]}, kind="mutating"),
            ToolCall(id="j", name="n", args="{", kind="invalid", problem="p"),
        ),
        usage=USAGE,
        finish="tool_call",
        us=5,
        extra="{}",
    ),
    ev.ModelFailed(call="c", kind="quota", message="m", us=1, maybe_charged=True, retry_at_us=9),
    ev.ToolIntended(call="c", probes=(ev.Probe(path="p", before="", after="x"),)),
    ev.ToolProbed(call="c", found="done", touches=("fs.write p",)),
    ToolsFinished(
        parent=2,
        results=(
            ToolResult(
                id="i",
                content="c",
                status="ok",
                changed=("p",),
                blob="b",
                error="timeout",
                transient=True,
                mark="m",
                effects=("fs.write p",),
            ),
        ),
        us=4,
    ),
    ev.ProcessStarted(call="c", pgid=7, birth="b"),
    ev.ActFinished(output_json='"o"', scope_receipt_json="null", changed=("p",), deleted=("p",), us=1),
    ev.ActFailed(reason="r", output_json="null", scope_receipt_json="null", changed=("q",), deleted=("q",), us=1),
    ev.CallbackStarted(key="k"),
    ev.CallbackRaised(key="k", message="m", us=1, timeout=True),
    ev.ChargeIntended(receipt="r", reserve=USAGE),
    ev.UsageReported(usage=USAGE, receipt="r"),
    ev.Judged(accept=False, feedback="f", us=1, evidence="e", commit="c", conflicts=("p",), onto="o"),
    ev.Suspended(id="i", kind="question", prompt="p", choices=("a", "b"), until_us=4, child="e"),
    ev.Answered(id="i", decision="answer", text="t", actor="a", at_us=1),
    ev.WaitEnded(at_us=1),
    ev.Extended(
        actor="a",
        max_rounds=1,
        max_turns=2,
        max_cost_usd=Decimal("1.5"),
        max_duration_us=3,
        max_tokens=4,
        guards={"repeat": 6},
        warn_at=(70, 90),
        compact_at=60,
        priced=True,
    ),
    ev.Pinned(actor="a", label="l", at_us=1),
    ev.Reopened(actor="a", reason="r"),
    ev.Adopted(actor="a", settings=settings(), fingerprint={}, definition="d"),
    ev.WorkspaceChanged(paths=("p",)),
    ev.LeaseChanged(
        id="l",
        op="revoke",
        capability="fs.write:a",
        scope="turn",
        expires_at_us=1,
        by="gate",
        actor="a",
        reason="r",
        at_us=2,
    ),
    ev.WorkspaceMeasured(tree="t", note="n"),
    ev.GuardTripped(guard="repeat", response="directive", count=4, evidence="e"),
    ev.Escalated(rung=1, model="p:m", reason="r"),
    ev.ScopeRestored(tree="t"),
    ev.ScopeClosed(how="kept", commit="c", note="n"),
    ev.Forked(execution_id="e", source="s", at=3, actor="a", workspace="/w"),
    ce.ChildIntended(call="c", child="e", name="n", reserve=USAGE),
    ce.ChildUsed(child="e", usage=USAGE, in_doubt=USAGE, turns=2, asks="q"),
    ce.ChildWoken(child="e", id="i"),
    ce.ChildEnded(child="e"),
    ce.ParentSaid(
        forked_by="p", above=(HELD,), max_turns=1, max_cost_usd=Decimal("0.5"), max_tokens=2, max_duration_us=3
    ),
    ev.CompactionRequested(depth="full", actor="a", at_us=1, by="guard"),
    ev.CompactionIntended(
        call="c",
        depth="auto",
        by="pressure",
        reserve=USAGE,
        request="d",
        model="p:m",
        base=9,
        cut=7,
        keep=(2,),
        before=90,
        calibration=1000,
    ),
    Compacted(
        parent=2,
        base=9,
        depth="clamp",
        by="overflow",
        cut=7,
        keep=(2, 4),
        summary="s",
        trim_before=8,
        trim_over=600,
        trim_to=120,
        clip_to=400,
        before=90,
        after=40,
        calibration=1000,
        call="c",
        usage=USAGE,
        us=3,
    ),
    ev.CompactionFailed(
        call="c",
        depth="full",
        by="person",
        reason="provider",
        message="m",
        kind="overload",
        usage=USAGE,
        us=2,
        maybe_charged=True,
        opens=True,
    ),
    ev.CompactionJudged(before=90, after=40, saved=50, shrunk=True, breaker="closes"),
    ev.PlanWritten(
        steps=(
            PlanStep(id="1", title="t", check=StepCheck(tool="run_command", args={"command": "c"})),
            PlanStep(id="2", title="u", after=("1",)),
        ),
        by="model",
        call="c",
        actor="a",
        withdraws="w",
    ),
    ev.StepMoved(step="1", status="failed", by="person", reason="r", evidence="e", call="c", actor="a", taken=1),
    le.LessonsRecalled(lessons=(le.RecalledLesson(lesson_id="L1", text="t", trusted=True),), tokens=9, note="n", us=1),
    le.LessonsAttributed(outcomes={"L1": "harmful"}, evidence={"L1": "e"}),
    le.GatesChecked(results=(le.GateResult(gate="g", passed=False, evidence="e"),), us=1),
    le.LessonsVoted(outcomes={"L1": "helpful"}, confirmed=("L1",), retired=("L2",), note="n"),
    le.LessonsDistilled(
        lessons=(le.DistilledLesson(lesson_id="L1", source="gate", text="t", state="candidate"),), discarded=1, note="n"
    ),
    ev.Stopped(status="stopped", code="limit", kind="k", evidence="e", advice="a"),
)
