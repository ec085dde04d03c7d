// Calls of a turn as chips: a click turns one over to its schema check, a double click opens its whole stored output.
import { useState } from "react";
import { api, type Schemas } from "../api/client";
import { useGestures } from "../gestures/zones";
import { said, useLive } from "../state/live";
import type { SeenCall } from "./useCalls";

export function CallList({ calls }: { calls: SeenCall[] }) {
  if (!calls.length) return <p className="quiet">No calls in this turn.</p>;
  return (
    <ul className="calls">
      {calls.map((one) => <CallChip key={`${one.id}-${one.index}`} call={one} />)}
    </ul>
  );
}

export function CallChip({ call }: { call: SeenCall }) {
  const id = useLive((s) => s.id);
  const [over, setOver] = useState(false);
  const [output, setOutput] = useState<Schemas["OutputOut"] | null>(null);
  const [problem, setProblem] = useState("");
  const open = async (start = 0) => {
    if (output && start === 0) return setOutput(null);
    try {
      const part = await api.output(id, call.id, { ...(call.seq ? { seq: call.seq } : {}), start });
      setOutput(start && output ? { ...part, start: 0, text: output.text + part.text } : part);
      setProblem("");
    } catch (error) {
      setProblem(said(error));
    }
  };
  useGestures(`listed:${call.id}`, { tap: () => setOver(!over), doubletap: () => void open() });
  const args = typeof call.args === "object" && call.args ? Object.entries(call.args as Record<string, unknown>) : [];
  return (
    <li className={`call ${call.status} ${over ? "over" : ""}`}>
      <button
        className="callface"
        data-g={`listed:${call.id}`}
        aria-expanded={over}
      >
        <i />
        <b>{call.name}</b>
        <em>{call.status}</em>
        <span className="unseen">Space: arguments. Enter: whole output.</span>
      </button>
      {over && (
        <dl className="schema">
          {call.problem && <p className="wrong">{call.problem}</p>}
          {args.map(([name, value]) => (
            <div key={name} className={call.problem?.includes(name) ? "wrong" : "right"}>
              <dt>{name}</dt>
              <dd>{typeof value === "string" ? value.slice(0, 300) : JSON.stringify(value)}</dd>
            </div>
          ))}
          {!args.length && !call.problem && <p className="quiet">no arguments</p>}
        </dl>
      )}
      {problem && <p className="wrong">{problem}</p>}
      {output && (
        <div className="output">
          <small>{output.bytes.toLocaleString("en")} B stored · {output.preview_bytes.toLocaleString("en")} B in the prompt</small>
          <pre tabIndex={0}>{output.text}</pre>
          {output.end < output.bytes && <button onClick={() => void open(output.end)}>More ({(output.bytes - output.end).toLocaleString("en")} B left)</button>}
        </div>
      )}
    </li>
  );
}
