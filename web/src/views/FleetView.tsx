// All executions with status, spend and age.
import { useEffect, useMemo, useState } from "react";
import type { Execution } from "../api/client";
import { useLive } from "../state/live";
import { useUi } from "../state/ui";
import { grouped } from "../graph/family";
import { count, money, since, waiting } from "../parts/words";

export function FleetView() {
  const { fleet, states, loadFleet, problem, rate } = useLive();
  const { go } = useUi();
  const [text, setText] = useState("");
  const [status, setStatus] = useState("");
  const [picked, setPicked] = useState<string[]>([]);
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    void loadFleet();
    const timer = setInterval(() => setNow(Date.now()), 5000);
    return () => clearInterval(timer);
  }, [loadFleet]);
  const rows = useMemo(() => {
    const wanted = text.trim().toLowerCase();
    return (fleet?.executions ?? []).filter(
      (one) =>
        (!status || (states[one.execution_id]?.status ?? one.status) === status) &&
        (!wanted || `${one.task} ${one.workspace} ${one.execution_id}`.toLowerCase().includes(wanted)),
    );
  }, [fleet, text, status, states]);
  const members = useMemo(() => grouped(rows), [rows]);
  const pick = (id: string) => setPicked((old) => (old.includes(id) ? old.filter((one) => one !== id) : [...old.slice(-1), id]));
  return (
    <main className="fleet">
      <div className="fleethead">
        <h1>Executions</h1>
        <p>
          {Object.entries(fleet?.counts ?? {}).map(([name, count]) => `${count} ${name}`).join(" · ") || "none yet"}
          {fleet ? ` · ${money(fleet.spent_usd)} in all` : ""}
          {` · ${Math.round(rate.at(-1) ?? 0)} tok/s`}
        </p>
        <input type="search" placeholder="Filter by task, folder or id" aria-label="Filter" value={text} onChange={(e) => setText(e.target.value)} />
        <select aria-label="Status" value={status} onChange={(e) => setStatus(e.target.value)}>
          <option value="">every status</option>
          {Object.keys(fleet?.counts ?? {}).map((one) => <option key={one}>{one}</option>)}
        </select>
        <button disabled={picked.length !== 2} onClick={() => go("compare", picked[0], picked[1])}>Compare two</button>
        <button className="go" onClick={() => go("compose", "")}>New loop</button>
      </div>
      {problem && <p className="problem" role="alert">{problem}</p>}
      {fleet && rows.length === 0 && (
        <div className="empty">
          <h2>{text || status ? "Nothing fits the filter" : "No loop has run in this store yet"}</h2>
          <p>{text || status ? "Clear it to see all." : "Compose one, or start it in a terminal: treadle run \"Fix the failing test\" --check \"pytest -q\""}</p>
        </div>
      )}
      <ul className="cards">
        {members.map(({ row: one, depth, as }) => (
          <Card key={one.execution_id} one={one} depth={depth} as={as} now={now} picked={picked.includes(one.execution_id)} pick={() => pick(one.execution_id)} />
        ))}
      </ul>
    </main>
  );
}

function Card({ one, depth, as, now, picked, pick }: { one: Execution; depth: number; as: string; now: number; picked: boolean; pick(): void }) {
  const live = useLive((s) => s.states[one.execution_id]);
  const go = useUi((s) => s.go);
  const fresh = live && live.status === "running" ? live : null;
  const status = live?.status ?? one.status;
  const waits = waiting(one, now);
  const colour = status === one.status ? one.colour : status === "running" ? "blue" : "grey";
  return (
    <li className={`card ${colour} ${depth ? "inner" : ""}`} style={{ ["--depth" as string]: Math.min(depth, 4) }}>
      <button className="open" onClick={() => go("watch", one.execution_id)}>
        <span className="dot" />
        <b>{one.task || one.execution_id}</b>
        <small>{as && <span className="as">{as}</span>}{one.workspace}</small>
        <span className="facts">
          <em>{status}{one.code && status !== "running" ? ` · ${one.code}` : ""}</em>
          {waits && <span className="waits">{waits}</span>}
          <span>round {fresh?.round ?? one.rounds}</span>
          <span>{count(fresh?.turns ?? one.turns_taken ?? 0, "turn")}</span>
          <span>{money(fresh?.cost_usd ?? one.cost_usd)}</span>
          <span>{since(one.created_us ?? 0, now)}</span>
        </span>
      </button>
      <label className="pick" title="Compare"><input type="checkbox" checked={picked} onChange={pick} /><span className="unseen">compare {one.execution_id}</span></label>
    </li>
  );
}
