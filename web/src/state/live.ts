// What is known of executions: the list, the one that is open, its events. Everything here comes from the API or the stream.
import { create } from "zustand";
import { api, Problem, type Detail, type Execution, type Executions, type LiveState, type LogEvent, type Round, type Turn } from "../api/client";
import { openStream, type Connection } from "../api/stream";
import { useUi } from "./ui";

const FIRST = 60; // events read before the first picture: the last turn and the beads in sight
const TAIL = 1500; // ... and once it is painted; older ones are read when somebody scrolls there
const KEPT = 20_000;

interface Live {
  connection: Connection;
  fleet: Executions | null;
  states: Record<string, LiveState>; // the latest of each execution
  id: string; // the one that is open
  detail: Detail | null;
  events: LogEvent[]; // of the open one, in order, without holes from the first
  turns: Turn[];
  rounds: Round[];
  text: string; // what the model is saying now
  rate: number[]; // output tokens a second, the last minute, over all executions
  problem: string;
  loadFleet(): Promise<void>;
  open(id: string): Promise<void>;
  refresh(): Promise<void>;
  older(): Promise<void>;
}

export const useLive = create<Live>((set, get) => ({
  connection: "connecting",
  fleet: null,
  states: {},
  id: "",
  detail: null,
  events: [],
  turns: [],
  rounds: [],
  text: "",
  rate: [],
  problem: "",
  loadFleet: async () => {
    try {
      set({ fleet: await api.executions(), problem: "" });
    } catch (error) {
      set({ problem: said(error) });
    }
  },
  open: async (id) => {
    if (!id) return set({ id: "", detail: null, events: [], turns: [], rounds: [], text: "", problem: "" });
    set({ id, detail: null, events: [], turns: [], rounds: [], text: "", problem: "" });
    try {
      const [detail, page] = await Promise.all([api.detail(id), api.log(id, { tail: FIRST })]);
      if (get().id !== id) return;
      set({ detail, events: merged(page.events, get().events), states: { ...get().states, [id]: newest(detail.live, get().states[id]) } });
      await painted();
      const [turns, rounds] = await Promise.all([api.turns(id), api.rounds(id)]).catch(() => [[], []] as [Turn[], Round[]]);
      if (get().id === id) set({ turns, rounds });
      await get().older();
    } catch (error) {
      if (get().id === id) set({ problem: said(error) });
    }
  },
  refresh: async () => {
    const id = get().id;
    if (!id) return;
    const last = get().events.at(-1)?.seq ?? 0;
    try {
      const [detail, page] = await Promise.all([api.detail(id), api.log(id, { after: last, limit: 5000 })]);
      if (get().id !== id) return;
      if (detail.execution.turns_taken !== get().turns.length) set({ turns: await api.turns(id) });
      if (detail.execution.rounds !== get().rounds.length || detail.rest.artifact) set({ rounds: await api.rounds(id) });
      // The stream tells of a record a moment before it is committed: what is behind it is read again.
      if (detail.head < (get().events.at(-1)?.seq ?? 0)) soon();
      set({ detail, events: merged(get().events, page.events), problem: "", states: { ...get().states, [id]: newest(detail.live, get().states[id]) } });
    } catch (error) {
      if (get().id === id) set({ problem: said(error), ...(error instanceof Problem && error.status === 404 ? { detail: null } : {}) });
    }
  },
  older: async () => {
    const { id, events } = get();
    const first = events[0]?.seq ?? 1;
    if (!id || first <= 1) return;
    const after = Math.max(0, first - 1 - TAIL);
    const page = await api.log(id, { after, to: first - 1, limit: TAIL });
    if (get().id === id) set({ events: merged(page.events, get().events) });
  },
}));

/** After the next frame is on the screen. */
export const painted = (): Promise<void> => new Promise((go) => { requestAnimationFrame(() => setTimeout(go)); setTimeout(go, 200); });

export const said = (error: unknown): string => (error instanceof Problem ? error.message : String(error));

const newest = (one: LiveState, other: LiveState | undefined): LiveState =>
  other && (other.seq ?? 0) > (one.seq ?? 0) ? other : one;

/** Both lists in order, each record once. */
export function merged(older: LogEvent[], newer: LogEvent[]): LogEvent[] {
  const last = older.at(-1)?.seq ?? 0;
  const first = newer[0]?.seq ?? Infinity;
  if (first > last) return [...older, ...newer].slice(-KEPT);
  const bySeq = new Map<number, LogEvent>();
  for (const one of older) bySeq.set(one.seq, one);
  for (const one of newer) bySeq.set(one.seq, one);
  return [...bySeq.values()].sort((a, b) => a.seq - b.seq).slice(-KEPT);
}

/** Events after which the details (batch in hand, suspensions, ending) are read anew. */
const TURNS_DETAIL = new Set([
  "model.responded", "tools.finished", "suspended", "answered", "stopped", "interrupted", "extended", "judged", "act.finished",
  "act.failed", "reopened", "adopted", "loop.started",
]);
let detailTimer = 0;
let fleetTimer = 0;
const tokens: { at: number; count: number }[] = [];

function soon(): void {
  if (!detailTimer) detailTimer = window.setTimeout(() => { detailTimer = 0; void useLive.getState().refresh(); }, 120);
}

function take(batch: LogEvent[]): void {
  const live = useLive.getState();
  const states = { ...live.states };
  const mine: LogEvent[] = [];
  let text = live.text;
  let fleetStale = false;
  for (const event of batch) {
    const id = event.execution_id;
    if (event.state && (event.state.seq ?? 0) >= (states[id]?.seq ?? 0)) {
      const before = states[id];
      states[id] = event.state;
      fleetStale ||= !before || before.status !== event.state.status;
      const made = (event.state.output_tokens ?? 0) - (before?.output_tokens ?? event.state.output_tokens ?? 0);
      if (made > 0) tokens.push({ at: performance.now(), count: made });
    }
    if (id !== live.id) continue;
    if (event.kind === "text.delta") text += typeof event.data === "string" ? event.data : "";
    else if (event.kind === "model.responded" || event.kind === "model.intended") text = "";
    if (event.seq > 0) mine.push(event);
    if (TURNS_DETAIL.has(event.kind)) soon();
  }
  let events = live.events;
  if (mine.length) {
    const last = events.at(-1)?.seq ?? 0;
    const fresh = mine.filter((one) => one.seq > last);
    // A hole would stay for ever: the ledger fills it.
    if (fresh.length && last && fresh[0]!.seq > last + 1) soon();
    else events = merged(events, fresh);
  }
  useLive.setState({ states, events, text, ...grown(live, mine) });
  if (fleetStale && !fleetTimer) fleetTimer = window.setTimeout(() => { fleetTimer = 0; void useLive.getState().loadFleet(); }, 250);
}

/** Turn rows that the stream itself tells of. */
function grown(live: Live, mine: LogEvent[]): Partial<Pick<Live, "turns">> {
  const rows: Turn[] = [];
  for (const event of mine) {
    const known = live.turns.at(-1)?.seq ?? 0;
    if (event.kind !== "model.responded" || event.seq <= known) continue;
    const data = (event.data ?? {}) as { calls?: { name: string }[]; usage?: (number | string)[]; us?: number; finish?: string };
    const usage = data.usage ?? [];
    rows.push({
      turn: live.turns.length + rows.length + 1,
      seq: event.seq,
      round: event.state?.round ?? 1,
      phase: event.state?.phase ?? "act",
      at_us: event.at_us,
      finish: data.finish ?? "",
      calls: (data.calls ?? []).map((one) => one.name),
      failed: 0,
      input_tokens: Number(usage[0] ?? 0),
      output_tokens: Number(usage[1] ?? 0),
      cache_read_tokens: Number(usage[2] ?? 0),
      cost_usd: Number(usage[5] ?? 0),
      elapsed_ms: Math.round((data.us ?? 0) / 1000),
    });
  }
  return rows.length ? { turns: [...live.turns, ...rows] } : {};
}

function measure(): void {
  const now = performance.now();
  while (tokens.length && tokens[0]!.at < now - 60_000) tokens.shift();
  const lately = tokens.filter((one) => one.at > now - 5_000).reduce((sum, one) => sum + one.count, 0) / 5;
  useLive.setState({ rate: [...useLive.getState().rate, lately].slice(-60) });
}

/** Starts everything that keeps the page up to date. */
export function follow(): () => void {
  const timer = window.setInterval(measure, 1000);
  const close = openStream({
    events: take,
    gap: () => { void useLive.getState().refresh(); void useLive.getState().loadFleet(); },
    connection: (connection) => {
      const before = useLive.getState().connection;
      useLive.setState({ connection });
      if (before === "live" && connection === "lost") {
        const last = useLive.getState().events.at(-1)?.seq;
        useUi.getState().say(`Connection lost${last ? ` after event ${last}` : ""}. Trying again.`);
      } else if (before !== "live" && before !== "connecting" && connection === "live") {
        useUi.getState().say("Connected again.");
        void useLive.getState().refresh();
        void useLive.getState().loadFleet();
      }
    },
  });
  // What lay in the background may have been deleted meanwhile, of which no event tells.
  const seen = () => { if (!document.hidden) void useLive.getState().refresh(); };
  document.addEventListener("visibilitychange", seen);
  return () => { clearInterval(timer); document.removeEventListener("visibilitychange", seen); close(); };
}

export const colourOf = (one: Pick<Execution, "status" | "colour">): string => one.colour ?? "grey";
