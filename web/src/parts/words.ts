export const money = (usd: number | undefined): string =>
  usd === undefined ? "–" : `$${usd.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: usd && usd < 1 ? 4 : 2 })}`;

export function span(ms: number): string {
  const s = Math.round(ms / 1000);
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
}

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
