// What a person can say to a loop now. Violet is the person's alone.
import { useState } from "react";
import type { Detail, LiveState } from "../api/client";
import { act } from "./acts";
import { Leases } from "./Leases";

export function SteerPanel({ detail, live }: { detail: Detail; live: LiveState }) {
  const [text, setText] = useState("");
  const pending = detail.execution.pending;
  const can = detail.can;
  const clear = (done: string) => { if (done) setText(""); };
  const asks = pending && pending.kind !== "quota" && live.status !== "running";
  const request_id = pending?.request_id ?? "";
  return (
    <div className="steerpanel">
      {!asks && <h3>Steer</h3>}
      {asks && (
        <>
          <p className="prompt-text">{pending.kind === "plan" ? pending.prompt.split("\n")[0] : pending.prompt}</p>
          {pending.kind === "plan" && <ol className="asked">{detail.plan?.steps?.map((one) => <li key={one.id}>{one.text}</li>)}</ol>}
          {(pending.choices?.length ?? 0) > 0 ? (
            <div className="row">
              {pending.choices!.map((one) => (
                <button key={one} className="you" onClick={() => void act("answer", { request_id, text: one })}>{one}</button>
              ))}
            </div>
          ) : (
            <textarea aria-label={can.includes("answer") ? "Your answer" : "A reason"} value={text} placeholder={can.includes("answer") ? "Your answer" : "A reason, if you like"} onChange={(e) => setText(e.target.value)} rows={2} />
          )}
          <div className="row">
            {can.includes("answer") && !pending.choices?.length && (
              <button className="you" disabled={!text.trim()} onClick={() => void act("answer", { request_id, text }).then(clear)}>Answer</button>
            )}
            {can.includes("approve") && <button className="good" onClick={() => void act("approve", { request_id, reason: text }).then(clear)}>Approve</button>}
            {can.includes("reject") && <button onClick={() => void act("reject", { request_id, reason: text }).then(clear)}>Reject</button>}
          </div>
        </>
      )}
      {can.includes("extend") && <Extend detail={detail} />}
      {detail.settings["act"] === "agent" && can.includes("cancel") && <Leases id={detail.execution.execution_id} head={detail.head} />}
      {!can.length && <p className="quiet">{detail.rest.label}: nothing can be asked of it any more. {detail.rest.next}</p>}
    </div>
  );
}

function Extend({ detail }: { detail: Detail }) {
  const turns = detail.budgets.find((one) => one.name === "turns of act");
  const cost = detail.budgets.find((one) => one.name === "cost");
  return (
    <div className="row">
      {turns?.limit != null && (
        <button onClick={() => void act("extend", { max_turns: turns.limit! + 8 })}>8 more turns</button>
      )}
      {cost?.limit != null && (
        <button onClick={() => void act("extend", { max_cost_usd: String(Math.round(cost.limit! * 150) / 100) })}>
          Up to ${(Math.round(cost.limit * 150) / 100).toFixed(2)}
        </button>
      )}
    </div>
  );
}
