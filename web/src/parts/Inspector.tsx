// What stands beside the canvas: the selected node in words, with its numbers.
import { lazy, Suspense, useMemo } from "react";
import type { Detail, LiveState, Turn } from "../api/client";
import { NODE_LABEL, STATE_LABEL, type StateName } from "../graph/stages";
import { budget } from "../graph/project";
import { useUi } from "../state/ui";
import { useLive } from "../state/live";
import { CallList } from "./CallList";
import { LogList } from "./LogList";
import { MapPanel } from "./panels/MapPanel";
import { SinksPanel } from "./panels/SinksPanel";
import { PlanSteps } from "./PlanSteps";
import { amount, money, plain, span, waiting } from "./words";
import type { SeenCall } from "./useCalls";
import { useWindow } from "./useWindow";

const Chart = lazy(() => import("./Chart").then((found) => ({ default: found.Chart })));

export function Inspector({ detail, live, calls }: { detail: Detail; live: LiveState; calls: SeenCall[] }) {
  const selected = useUi((s) => s.selected);
  const [title = "", over = "Execution"] = selected in STATE_LABEL ? [STATE_LABEL[selected as StateName], "Control state"] : (NODE_LABEL[selected] ?? []);
  return (
    <div className="inspect">
      <small className="over">{over}</small>
      <h2>{title || labelOf(live)}</h2>
      <p className="lead">{lead(detail, live)}</p>
      <Body id={selected} detail={detail} live={live} calls={calls} />
    </div>
  );
}

const labelOf = (live: LiveState) => (live.status === "running" ? (STATE_LABEL[live.agent as StateName] ?? "Running") : (WORDS[live.status ?? ""] ?? live.status ?? ""));
/** The turns of the act are those of this one where it is the first: said once. */
const said = (detail: Detail, name: string): boolean => {
  const [all, own] = [budget(detail, "turns of act"), budget(detail, "turns of this act")];
  return name === "turns of act" && own?.used === all?.used && own?.limit === all?.limit;
};
export const WORDS: Record<string, string> = { "waiting-input": "Waiting for you", done: "Done", failed: "Failed", stopped: "Stopped", paused: "Paused", cancelled: "Cancelled", rejected: "Rejected" };

function lead(detail: Detail, live: LiveState): string {
  if (live.status === "running" && waiting(detail.execution)) return `Waits: ${waiting(detail.execution)}.`;
  if (live.status === "running") return `Round ${live.round}, turn ${live.turns}. ${live.phase === "evaluate" ? "The check is running." : live.step === "calling" ? "The model is answering." : live.step === "tools" ? "Tools are at work." : ""}`;
  return live.status === "waiting-input" && detail.plan?.request_id ? "A plan waits for your decision. Until then it only reads." : plain(detail.rest.why);
}

export function Body({ id, detail, live, calls }: { id: string; detail: Detail; live: LiveState; calls: SeenCall[] }) {
  const turns = useLive((s) => s.turns);
  const rounds = useLive((s) => s.rounds);
  if (id === "act") return <CallList calls={calls} />;
  if (id === "reason" || id === "planning") return <PlanSteps detail={detail} />;
  if (id === "learn") return <LogList />;
  if (id === "perceive") return <MapPanel />;
  if (id === "telemetry") return <><SinksPanel /><Suspense fallback={null}><div className="charts"><Rate turns={turns} /></div></Suspense></>;
  if (id === "completed" || id === "failed") return <pre className="artifact">{detail.rest.artifact ?? detail.rest.why}</pre>;
  if (id === "verify")
    return (
      <ol className="rounds">
        {rounds.map((one) => (
          <li key={one.round} className={one.verdict ?? ""}>
            <b>Round {one.round}: {one.verdict ?? "no verdict yet"}</b>
            {(one.changed?.length ?? 0) > 0 && <small>{one.changed!.join(", ")}</small>}
            {one.feedback && <pre>{one.feedback.slice(0, 1200)}</pre>}
          </li>
        ))}
      </ol>
    );
  if (id === "foundation")
    return (
      <>
        <Facts rows={Object.entries(detail.definition ?? {}).filter(([, v]) => v !== null && v !== "" && v !== false).map(([k, v]) => [k, Array.isArray(v) ? v.join(", ") : String(v)])} />
      </>
    );
  return (
    <>
      <PlanSteps detail={detail} />
      <h3>Budgets</h3>
      <ul className="budgets">
        {detail.budgets.filter((one) => one.limit != null && !said(detail, one.name)).map((one) => {
          const share = one.limit ? Math.min(1, one.used / one.limit) : 0;
          return (
            <li key={one.name}>
              <span>{one.name}</span>
              <em>{amount(one.used, one.unit)} / {amount(one.limit ?? 0, one.unit)}</em>
              <i style={{ ["--share" as string]: share }} className={share >= 1 ? "full" : share >= 0.8 ? "near" : ""} />
            </li>
          );
        })}
      </ul>
      {turns.length ? <Charts turns={turns} /> : <div className="charts" />}
      <Facts
        rows={[
          ["cost", `${money(live.cost_usd)}${live.in_doubt_usd ? ` (+ ${money(live.in_doubt_usd)} in doubt)` : ""}`],
          ["tokens", `${(live.input_tokens ?? 0).toLocaleString("en")} in · ${(live.output_tokens ?? 0).toLocaleString("en")} out`],
          ["active time", span(live.elapsed_ms ?? 0)],
          ["runs in", detail.here ? "this studio" : detail.execution.owner_alive ? detail.owner : "no process"],
        ]}
      />
      <h3>This turn<em>{calls.length}</em></h3>
      <CallList calls={calls} />
    </>
  );
}

// Kinds of what fills the window, lowest in the chart first: what stays the same from turn to turn lies below what grows.
const CONTENT: [string, string[], string][] = [
  ["prompt, tools", ["system", "tools"], "--blue"],
  ["task, feedback", ["task", "feedback", "directives"], "--green"],
  ["summaries", ["summaries"], "--violet"],
  ["model", ["model"], "--cyan"],
  ["results", ["tool results"], "--amber"],
];

function Charts({ turns }: { turns: Turn[] }) {
  const { window: found } = useWindow();
  const [xs, spent, cached] = useMemo(() => {
    let sum = 0;
    const last = turns.at(-1);
    return [turns.map((one) => one.turn), turns.map((one) => (sum += one.cost_usd ?? 0)), Math.round((100 * (last?.cache_read_tokens ?? 0)) / Math.max(1, last?.input_tokens ?? 0))];
  }, [turns]);
  const content = useMemo(() => {
    const number = new Map(turns.map((one) => [one.seq, one.turn]));
    const known = (found?.turns ?? []).filter((one) => number.has(one.seq));
    const layers = CONTENT.map(([name, kinds, tone]) => ({ name, tone, ys: known.map((one) => kinds.reduce((sum, kind) => sum + (one.kinds[kind] ?? 0), 0)) }));
    return { xs: known.map((one) => number.get(one.seq)!), layers, ys: known.map((_, n) => layers.reduce((sum, one) => sum + one.ys[n]!, 0)) };
  }, [found, turns]);
  return (
    <Suspense fallback={<div className="charts" />}>
      <div className="charts">
        <Chart label="Spent" xs={xs} ys={spent} tone="--amber" unit=" USD" />
        <Chart label="Window by content" note={`${cached} % of it cached`} {...content} />
        <Rate turns={turns} />
      </div>
    </Suspense>
  );
}

/** Output tokens a second of each turn. */
function Rate({ turns }: { turns: Turn[] }) {
  const [xs, ys] = useMemo(() => [turns.map((one) => one.turn), turns.map((one) => (one.elapsed_ms ? ((one.output_tokens ?? 0) * 1000) / one.elapsed_ms : 0))], [turns]);
  return turns.length ? <Chart label="Tokens a second" xs={xs!} ys={ys!} tone="--cyan" /> : null;
}

export function Facts({ rows }: { rows: (readonly [string, string])[] }) {
  return (
    <dl className="factlist">
      {rows.map(([name, value]) => (
        <div key={name}><dt>{name}</dt><dd>{value}</dd></div>
      ))}
    </dl>
  );
}
