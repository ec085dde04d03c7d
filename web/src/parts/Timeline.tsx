// The session log as a chain of beads: colour by kind, the newest at the bottom, one of them enlarged with its summary.
import { useMemo } from "react";
import type { LogEvent } from "../api/client";
import type { Gesture } from "../gestures/recognise";
import { useGestures } from "../gestures/zones";
import { useLive } from "../state/live";
import { usePanel } from "../state/panel";
import { useUi } from "../state/ui";

const SHOWN = 13; // where there is room

export function kindTone(kind: string): string {
  if (kind.startsWith("model.failed") || kind === "act.failed" || kind === "callback.raised") return "failed";
  if (kind.startsWith("model")) return "running";
  if (kind.startsWith("tool")) return "tool";
  if (["suspended", "answered", "extended", "reopened", "adopted", "pinned"].includes(kind)) return "you";
  if (kind === "interrupted") return "pending";
  if (kind === "judged" || kind === "act.finished" || kind === "stopped") return "done";
  return "pending";
}

/** Bookkeeping that a person need not step through. */
const QUIET = new Set(["model.intended", "tool.intended", "tool.probed", "process.started", "callback.started", "baseline.taken"]);

export function useBeads(): LogEvent[] {
  const events = useLive((s) => s.events);
  return useMemo(() => events.filter((one) => !QUIET.has(one.kind)), [events]);
}

export function toneOfEvent(event: LogEvent): string {
  const data = (event.data ?? {}) as { accept?: boolean; status?: string; results?: { status: string }[] };
  if (event.kind === "judged" && data.accept === false) return "failed";
  if (event.kind === "stopped") return data.status === "stopped" ? "budget" : data.status === "done" ? "done" : "failed";
  if (event.kind === "tools.finished" && data.results?.some((one) => one.status !== "ok")) return "budget";
  return kindTone(event.kind);
}

export function Timeline({ shown = SHOWN }: { shown?: number }) {
  const beads = useBeads();
  const { bead, setBead } = useUi();
  const index = bead ? beads.findIndex((one) => one.seq === bead) : beads.length - 1;
  const at = index < 0 ? beads.length - 1 : index;
  const first = Math.max(0, Math.min(at - Math.floor(shown / 2), beads.length - shown));
  const current = beads[at];
  const step = (by: number) => {
    const next = beads[Math.max(0, Math.min(beads.length - 1, at + by))];
    if (next) setBead(next === beads.at(-1) ? 0 : next.seq);
  };
  // A finger pushes the thread, so that what comes from below is later; a key names the direction itself.
  const flick = ({ direction, via }: Gesture) => { if (direction === "up" || direction === "down") step((direction === "up") === (via === "key") ? -1 : 1); };
  useGestures("pin", { flick });
  useGestures("timeline", {
    flick,
    // By key: a pin that the timeline stands on opens.
    tap: ({ via }) => { if (via === "key" && current?.kind === "pinned") usePanel.getState().open("pin", "hub", String(current.seq)); },
  });
  return (
    <aside
      className="timeline"
      data-g="timeline"
      tabIndex={0}
      role="slider"
      aria-orientation="vertical"
      aria-label="Session log"
      aria-valuemin={1}
      aria-valuemax={Math.max(1, beads.length)}
      aria-valuenow={at + 1}
      aria-valuetext={current ? `event ${current.seq}, ${current.kind}: ${current.text}` : "no events"}
      onKeyDown={(event) => {
        const by = { ArrowUp: -1, ArrowDown: 1, PageUp: -10, PageDown: 10, Home: -1e9, End: 1e9 }[event.key];
        if (by && !event.defaultPrevented) { event.preventDefault(); step(by); }
      }}
    >
      <i className="thread" />
      {beads.slice(first, first + shown).map((one) => (
        <span
          key={one.seq}
          className={`bead ${toneOfEvent(one)} ${one.seq === current?.seq ? "now" : ""} ${one.kind === "pinned" ? "pinned" : ""}`}
          {...(one.kind === "pinned" ? { "data-g": `pin:${one.seq}` } : {})}
          title={`${one.seq} ${one.kind}`}
          aria-hidden="true"
          onClick={() => setBead(one === beads.at(-1) ? 0 : one.seq)}
        >
          {one.kind === "pinned" && <small>{String((one.data as { label?: string } | null)?.label ?? "")}</small>}
        </span>
      ))}
    </aside>
  );
}

export function BeadCard() {
  const beads = useBeads();
  const bead = useUi((s) => s.bead);
  const current = bead ? beads.find((one) => one.seq === bead) : beads.at(-1);
  if (!current) return null;
  return (
    <section className={`beadcard ${toneOfEvent(current)}`}>
      <small>
        {new Date(current.at_us / 1000).toLocaleTimeString("en-GB")} · event {current.seq}
      </small>
      <b>{current.kind}</b>
      <p>{current.text || "–"}</p>
    </section>
  );
}
