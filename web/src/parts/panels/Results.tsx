// What came of things: an ending with its artifact, a call with its schema check, its stored output, a pin.
import { useEffect, useState } from "react";
import { api, type Detail, type LiveState, type Schemas } from "../../api/client";
import { said, useLive } from "../../state/live";
import { usePanel } from "../../state/panel";
import { useUi } from "../../state/ui";
import { act } from "../acts";
import type { SeenCall } from "../useCalls";

export function OutcomePanel({ detail, live, node }: { detail: Detail; live: LiveState; node: string }) {
  const done = live.status === "done";
  const ended = !["running", "paused", "waiting-input"].includes(live.status ?? "");
  if (!ended || (node === "completed") !== done)
    return <p className="quiet">{ended ? `It ended otherwise: ${detail.rest.label}.` : "It has not ended."}</p>;
  return (
    <div className="outcomepanel">
      <span className={`outcometag ${detail.rest.colour}`}>{live.code || live.status}</span>
      <p>{detail.rest.why}</p>
      <p className="quiet">{detail.rest.next}</p>
      <pre className="artifact" tabIndex={0} aria-label="Artifact">{detail.rest.artifact ?? text(detail.execution.output) ?? "no artifact"}</pre>
    </div>
  );
}

const text = (value: unknown): string | null => (value == null ? null : typeof value === "string" ? value : JSON.stringify(value, null, 2));

export function CallPanel({ call }: { call: SeenCall | undefined }) {
  if (!call) return <p className="quiet">That call is of another turn.</p>;
  const args = typeof call.args === "object" && call.args ? Object.entries(call.args as Record<string, unknown>) : [];
  return (
    <div className="callpanel">
      <p className="callname"><code>{call.name}</code><em className={call.problem ? "bad" : "ok"}>{call.problem ? "refused" : "fits its schema"}</em></p>
      {call.problem && <p className="wrong">{call.problem}</p>}
      <dl className="schema">
        {args.map(([name, value]) => (
          <div key={name} className={call.problem?.includes(name) ? "wrong" : "right"}><dt>{name}</dt><dd>{(text(value) ?? "").slice(0, 300)}</dd></div>
        ))}
        {missing(call).map((name) => <div key={name} className="wrong"><dt>{name}</dt><dd>is missing</dd></div>)}
      </dl>
    </div>
  );
}

/** Fields that the refusal names and the call does not have. */
function missing(call: SeenCall): string[] {
  if (!call.problem || !/missing|required/i.test(call.problem)) return [];
  const had = new Set(Object.keys((call.args as object | null) ?? {}));
  return [...call.problem.matchAll(/['"`]?\$?\.?([a-z_]\w*)['"`]?(?=[ :]+(?:is |a )?(?:missing|required))/gi)].map((one) => one[1]!).filter((one) => !had.has(one));
}

export function OutputPanel({ call }: { call: SeenCall | undefined }) {
  const id = useLive((s) => s.id);
  const [part, setPart] = useState<Schemas["OutputOut"] | null>(null);
  const [problem, setProblem] = useState("");
  const key = call ? `${call.id}:${call.seq}` : "";
  const read = async (start: number) => {
    if (!call) return;
    try {
      const found = await api.output(id, call.id, { ...(call.seq ? { seq: call.seq } : {}), start });
      setPart((old) => (start && old ? { ...found, start: 0, text: old.text + found.text } : found));
    } catch (error) {
      setProblem(said(error));
    }
  };
  useEffect(() => { setPart(null); setProblem(""); void read(0); }, [id, key]);
  if (!call) return <p className="quiet">That call is of another turn.</p>;
  if (!part) return <p className="quiet">{problem || "Reading…"}</p>;
  return (
    <div className="output">
      <p className="callname"><code>{call.name}</code><em>{call.status}</em></p>
      <small>{part.bytes.toLocaleString("en")} B stored · {part.preview_bytes.toLocaleString("en")} B in the prompt</small>
      <pre tabIndex={0}>{part.text}</pre>
      {problem && <p className="wrong">{problem}</p>}
      {part.end < part.bytes && <button onClick={() => { setProblem(""); void read(part.end); }}>More ({(part.bytes - part.end).toLocaleString("en")} B left)</button>}
    </div>
  );
}

export function PinPanel({ seq, detail }: { seq: number; detail: Detail }) {
  const pin = useLive((s) => s.events.find((one) => one.seq === seq));
  const { setBead, go } = useUi();
  const close = usePanel((s) => s.close);
  const fork = async () => {
    const made = await act("forks", { at: seq });
    if (made) { close(); go("watch", made); }
  };
  if (!pin) return <p className="quiet">That pin is not among the events read.</p>;
  return (
    <div className="pinpanel">
      <p>{pin.text}</p>
      <div className="row">
        <button onClick={() => { setBead(seq); close(); }}>Look there</button>
        <button className="you" onClick={() => void fork()}>Fork from here</button>
        {detail.can.includes("resume") && <button onClick={() => { void act("resume"); close(); }}>Resume</button>}
      </div>
      <p className="quiet">A fork is another execution with this past. Its files are those of the workspace when it goes on.</p>
    </div>
  );
}
