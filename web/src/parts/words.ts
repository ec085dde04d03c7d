import type { Execution } from "../api/client";

export const money = (usd: number | undefined): string =>
  usd === undefined ? "–" : `$${usd.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: usd && usd < 1 ? 4 : 2 })}`;

export function span(ms: number): string {
  const s = Math.round(ms / 1000);
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
}

/** Local wall time: of today without the day. */
export function moment(us: number, now = Date.now()): string {
  const at = new Date(us / 1000);
  const clock = at.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
  return at.toDateString() === new Date(now).toDateString() ? clock : `${at.toLocaleDateString("sv")} ${clock.slice(0, 5)}`;
}

const WAITED = { quota: "quota", time: "", answer: "a question", decision: "a decision", resume: "paused" };
const until = (us: number | null | undefined, now?: number) => (us == null ? "" : ` until ${moment(us, now)}`);

/** Why it waits, until when, and where inside a workflow: quota until 14:05:33 (build) and 2 more. People are named before time. Empty: it does not. */
export function waiting(one: Pick<Execution, "waits" | "pending">, now?: number): string {
  const waits = [...(one.waits ?? [])].sort((a, b) => rank(a) - rank(b) || (a.until_us ?? 0) - (b.until_us ?? 0));
  const first = waits[0];
  if (!first) return one.pending ? until(one.pending.until_us, now).trim() : "";
  return `${WAITED[first.for]}${until(first.until_us, now)} (${first.task})${waits.length > 1 ? ` and ${waits.length - 1} more` : ""}`.trim();
}
const rank = ({ for: what }: { for: string }): number => Number(what === "quota" || what === "time");

export function since(us: number, now = Date.now()): string {
  const s = Math.max(0, (now - us / 1000) / 1000);
  if (s < 90) return `${Math.round(s)} s ago`;
  if (s < 5400) return `${Math.round(s / 60)} min ago`;
  if (s < 129_600) return `${Math.round(s / 3600)} h ago`;
  return `${Math.round(s / 86_400)} days ago`;
}

/** With its noun in the right number. */
export const count = (value: number, noun: string): string => `${value.toLocaleString("en")} ${noun}${value === 1 ? "" : "s"}`;

export const amount = (value: number, unit: string): string =>
  unit === "usd" ? money(value) : unit === "ms" ? span(value) : value.toLocaleString("en");

/** What programs print, in a line of prose: rules that they draw are left out. */
export const plain = (text: string): string => text.replace(/\s*[-=_*~]{6,}\s*/g, " · ");
