// The window as a strip: a block a turn, as wide as its tokens. Turning it chooses how deep to compact, and does it.
import { useEffect, useRef, useState } from "react";
import type { Detail, Turn } from "../api/client";
import { Icon } from "../canvas/Icon";
import { useGestures } from "../gestures/zones";
import { act } from "./acts";
import { useWindow } from "./useWindow";
import { count } from "./words";

const DEPTHS = ["micro", "auto", "full"] as const;
const NOTCH = 25; // degrees from one depth to the next
const SETTLE_MS = 650; // keys and wheel may turn on: it runs when they have come to rest

export function HistoryStrip({ detail, turns }: { detail: Detail; turns: Turn[] }) {
  const { window: found } = useWindow();
  const [depth, setDepth] = useState(1);
  const [turning, setTurning] = useState(0);
  const timer = useRef(0);
  const depths = useRef(1);
  useEffect(() => () => clearTimeout(timer.current), []);
  const choose = (next: number) => { depths.current = Math.max(0, Math.min(2, next)); setDepth(depths.current); };
  const run = () => void act("compact", { depth: DEPTHS[depths.current]! });
  useGestures("history", {
    rotate: ({ phase, angle, via }) => {
      if (phase === "move") return setTurning(angle);
      setTurning(0);
      choose(depths.current + Math.sign(angle) * Math.max(1, Math.round(Math.abs(angle) / NOTCH)));
      clearTimeout(timer.current);
      if (via === "touch" || via === "pen") return run();
      timer.current = window.setTimeout(run, SETTLE_MS);
    },
  });
  const shown = turns.slice(-60);
  const total = shown.reduce((sum, one) => sum + Math.max(1, one.output_tokens ?? 0), 0);
  const last = found?.compactions.at(-1);
  const open = found?.breaker === "open";
  const used = found ? Math.min(1, found.used / Math.max(1, found.window)) : 0;
  return (
    <footer className={`history folds-${last && !last.failure ? last.depth : "none"}`} data-g="history" tabIndex={0} role="group" aria-label={`Conversation window. Brackets turn the compression depth: ${DEPTHS[depth]}`}>
      <div className="strip">
        <small>
          Conversation window · {found ? `${(found.used / 1000).toFixed(1)}k of ${(found.window / 1000).toFixed(0)}k tokens` : `${((turns.at(-1)?.input_tokens ?? 0) / 1000).toFixed(1)}k tokens`}
          {Boolean(found?.tokens_saved) && <span className="saved">{found!.tokens_saved.toLocaleString("en")} tokens saved</span>}
          {found?.requested && <span className="asked">{found.requested} at the next boundary</span>}
        </small>
        <div className="blocks">
          {shown.map((one) => (
            <i
              key={one.seq}
              className={one.failed ? "failed" : one.phase === "evaluate" ? "judge" : one.calls.length ? "tools" : "words"}
              style={{ flexGrow: Math.max(1, one.output_tokens ?? 0) / Math.max(1, total) }}
              title={`turn ${one.turn}: ${one.calls.join(", ") || one.finish}`}
            />
          ))}
          <i className="left" style={{ flexGrow: 0.35 }} />
        </div>
        <div className="usedbar"><i style={{ width: `${used * 100}%` }} className={found && found.used > (found.budget * found.compact_at) / 100 ? "over" : ""} />{found && <b style={{ left: `${((found.budget * found.compact_at) / 100 / Math.max(1, found.window)) * 100}%` }} title={`compacts past ${found.compact_at} %`} />}</div>
      </div>
      <div className="depthdial" style={{ ["--turn" as string]: `${(depth - 1) * 50 + turning}deg` }}>
        {DEPTHS.map((one, n) => <button key={one} className={n === depth ? "on" : ""} aria-label={`Compact: ${one}`} onClick={() => { choose(n); run(); }}>{one}</button>)}
        <span className="knob" aria-hidden="true" />
      </div>
      <div className={`breaker ${open ? "open" : ""}`}>
        <Icon name={open ? "cross" : "pulse"} size={20} />
        <span><b>Breaker {found?.breaker ?? "closed"}</b><small>{found?.failures ?? 0} of 3 failures · {count(detail.execution.rounds ?? 0, "round")}</small></span>
      </div>
    </footer>
  );
}
