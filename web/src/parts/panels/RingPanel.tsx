// Iteration against the cap, a tick a turn: amber near it, red where a turn failed.
import type { Detail } from "../../api/client";
import { budget } from "../../graph/project";
import { useLive } from "../../state/live";
import { Ring } from "../Ring";

const MOST_TICKS = 120;

export function RingPanel({ detail }: { detail: Detail }) {
  const turns = useLive((s) => s.turns);
  const act = budget(detail, "turns of this act") ?? budget(detail, "turns of act");
  const used = act?.used ?? 0;
  const mine = turns.filter((one) => one.phase === "act").slice(-Math.max(1, Math.min(used, MOST_TICKS)));
  const cap = Math.max(1, Math.min(act?.limit ?? Math.max(used, 24), MOST_TICKS));
  const bands = (detail.settings["act_agent"] as { bands?: number[] } | undefined)?.bands ?? [80, 90];
  const near = Math.min(...bands, 100) / 100;
  return (
    <div className="ringpanel">
      <Ring used={used} limit={act?.limit} label="turns" size={148} near={near} />
      <svg viewBox="0 0 120 120" width="148" height="148" aria-hidden="true" className="ticks">
        {Array.from({ length: cap }, (_, n) => {
          const turn = n < used ? mine[n - (used - mine.length)] : undefined;
          const angle = (n / cap) * 2 * Math.PI - Math.PI / 2;
          const [x, y] = [Math.cos(angle), Math.sin(angle)];
          return <line key={n} className={n >= used ? "" : turn?.failed ? "failed" : n / cap >= near ? "near" : "ok"} x1={60 + x * 38} y1={60 + y * 38} x2={60 + x * 43} y2={60 + y * 43} />;
        })}
      </svg>
      <p className="quiet">{act?.limit ? `${Math.max(0, act.limit - used)} of ${act.limit} left in this round.` : "No cap."} {mine.filter((one) => one.failed).length} failed.</p>
    </div>
  );
}
