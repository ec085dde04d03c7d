// Two executions side by side: rounds, cost, outcome, changed paths.
import { useEffect, useState } from "react";
import { api, type Detail, type Round, type Schemas } from "../api/client";
import { count, money, span } from "../parts/words";
import { said } from "../state/live";
import { useUi } from "../state/ui";

interface Side { detail: Detail; rounds: Round[] }

export function CompareView() {
  const { execution, other, go } = useUi();
  const [sides, setSides] = useState<(Side | null)[]>([null, null]);
  const [problem, setProblem] = useState("");
  const [apart, setApart] = useState<Schemas["ComparisonOut"] | null>(null);
  useEffect(() => {
    let live = true;
    Promise.all([execution, other].map(async (id) => ({ detail: await api.detail(id), rounds: await api.rounds(id) })))
      .then((found) => { if (live) setSides(found); })
      .then(() => api.comparison(execution, other))
      .then((found) => { if (live) setApart(found); })
      .catch((error: unknown) => { if (live) setProblem(said(error)); });
    return () => { live = false; };
  }, [execution, other]);
  const rows: [string, (one: Side) => string][] = [
    ["ending", (one) => one.detail.rest.label],
    ["why", (one) => one.detail.rest.why],
    ["rounds", (one) => String(one.detail.execution.rounds)],
    ["turns", (one) => String(one.detail.execution.turns_taken)],
    ["cost", (one) => money(one.detail.execution.cost_usd)],
    ["active time", (one) => span(one.detail.execution.elapsed_ms ?? 0)],
    ["tokens out", (one) => (one.detail.live.output_tokens ?? 0).toLocaleString("en")],
    ["model", (one) => String(one.detail.definition?.["model"] ?? "")],
    ["changed", (one) => [...new Set(one.rounds.flatMap((round) => round.changed ?? []))].join(", ") || "nothing"],
  ];
  const [left, right] = sides;
  return (
    <main className="compare">
      <h1>Compare</h1>
      {problem && <p className="problem" role="alert">{problem}</p>}
      {left && right && (
        <table>
          <thead><tr><th />{[left, right].map((one) => <th key={one.detail.execution.execution_id}><b>{one.detail.execution.task}</b><button onClick={() => go("watch", one.detail.execution.execution_id)}><code>{one.detail.execution.execution_id}</code></button></th>)}</tr></thead>
          <tbody>
            {rows.map(([name, of]) => (
              <tr key={name} className={of(left) === of(right) ? "same" : "differs"}><th scope="row">{name}</th><td>{of(left)}</td><td>{of(right)}</td></tr>
            ))}
            {Array.from({ length: Math.max(left.rounds.length, right.rounds.length) }, (_, at) => (
              <tr key={`r${at}`} className="round"><th scope="row">round {at + 1}</th>{[left, right].map((one, side) => <td key={side}>{one.rounds[at] ? `${one.rounds[at]!.verdict ?? "no verdict"} · ${count(one.rounds[at]!.turns ?? 0, "turn")}` : ""}<small>{one.rounds[at]?.feedback?.slice(0, 300)}</small></td>)}</tr>
            ))}
          </tbody>
        </table>
      )}
      {apart && (
        <section aria-label="Files">
          <h3>Files<em>they part at record {apart.parted_at}</em></h3>
          {apart.diff ? <Diff text={apart.diff} /> : <p className="quiet">{apart.note || "They have left the same files."}</p>}
          {apart.cut && <p className="quiet">There is more of it: treadle diff {execution} {other}</p>}
        </section>
      )}
    </main>
  );
}

const MOST_LINES = 2_000; // drawn

function Diff({ text }: { text: string }) {
  const lines = text.split("\n");
  const tone = (line: string) => (/^(\+\+\+|---|diff |index )/.test(line) ? "head" : line[0] === "+" ? "more" : line[0] === "-" ? "less" : line.startsWith("@@") ? "at" : "");
  return <pre className="diff" tabIndex={0} aria-label="What differs">{lines.slice(0, MOST_LINES).map((line, at) => <span key={at} className={tone(line)}>{line}{"\n"}</span>)}{lines.length > MOST_LINES && `… ${lines.length - MOST_LINES} more lines`}</pre>;
}
