// The plan's steps as chips. A flick to the right marks one done, to the left failed: with a reason, as a person's mark.
import { useState } from "react";
import type { Detail, Schemas } from "../api/client";
import { Icon } from "../canvas/Icon";
import { useGestures } from "../gestures/zones";
import { act } from "./acts";

type Step = NonNullable<Schemas["PlanOut"]["steps"]>[number];
const SAYS: Record<string, string> = { pending: "To do", "in-progress": "Doing", done: "Done", failed: "Failed" };

export function PlanSteps({ detail }: { detail: Detail }) {
  const plan = detail.plan;
  const [marking, setMarking] = useState<{ id: string; status: "done" | "failed" } | null>(null);
  useGestures("step", {
    flick: ({ direction }, id) => {
      if (direction === "right") setMarking({ id, status: "done" });
      if (direction === "left") setMarking({ id, status: "failed" });
    },
  });
  if (!plan?.steps?.length) return plan?.needs_approval ? <p className="quiet">No plan yet: until one is approved only reading is allowed.</p> : null;
  return (
    <section className="plansteps" aria-label="Plan">
      <h3>Plan<em>{plan.done} of {plan.steps.length}{plan.done ? ` · ${plan.verified} verified` : ""}</em></h3>
      <ol>
        {plan.steps.map((one, n) => (
          <StepChip key={one.id} step={one} number={n + 1} marking={marking?.id === one.id ? marking.status : null} end={() => setMarking(null)} />
        ))}
      </ol>
    </section>
  );
}

function StepChip({ step, number, marking, end }: { step: Step; number: number; marking: "done" | "failed" | null; end(): void }) {
  const [reason, setReason] = useState("");
  const status = step.status ?? "pending";
  const done = status === "done";
  const send = () => {
    if (reason.trim()) void act(`plan/steps/${encodeURIComponent(step.id)}`, { status: marking, reason }).then((taken) => { if (taken) { end(); setReason(""); } });
  };
  return (
    <li>
      <div
        className={`stepchip ${status} ${step.by_person ? "person" : ""} ${marking ? `to-${marking}` : ""}`}
        data-g={`step:${step.id}`}
        tabIndex={0}
        role="group"
        title={step.reason || step.check || ""}
        aria-label={`step ${number}: ${step.text}. ${SAYS[status]}${step.by_person ? `, marked by ${step.actor}` : ""}${step.reason ? `: ${step.reason}` : ""}. Alt and right: done; Alt and left: failed.`}
      >
        <span className="mark">{done ? <Icon name="check" size={15} width={2.6} /> : status === "failed" ? <Icon name="cross" size={13} width={2.6} /> : number}</span>
        <b>{step.text}</b>
        <em>{step.by_person ? "by you" : done && step.by === "check" ? "verified" : SAYS[status]}</em>
      </div>
      {status === "failed" && step.reason && <small className="wrong">{step.reason}</small>}
      {marking && (
        <form className="markform" onSubmit={(e) => { e.preventDefault(); send(); }} onKeyDown={(e) => { if (e.key === "Escape") { e.stopPropagation(); end(); } }}>
          <input autoFocus aria-label={`Why is it ${marking}?`} placeholder={`Why is it ${marking}?`} value={reason} onChange={(e) => setReason(e.target.value)} />
          <button className={marking === "done" ? "good" : "bad"} disabled={!reason.trim()}>{marking === "done" ? "Done" : "Failed"}</button>
        </form>
      )}
    </li>
  );
}
