// The window as a strip: a block a turn, as wide as its tokens; what is left of the window is hatched.
import type { Detail, Turn } from "../api/client";

export function HistoryStrip({ detail, turns }: { detail: Detail; turns: Turn[] }) {
  const last = turns.at(-1);
  const shown = turns.slice(-60);
  const total = shown.reduce((sum, one) => sum + Math.max(1, one.output_tokens ?? 0), 0);
  return (
    <footer className="history" data-g="history" tabIndex={0} role="group" aria-label="Conversation window">
      <div className="strip">
        <small>Conversation window · {((last?.input_tokens ?? 0) / 1000).toFixed(1)}k tokens in the last request</small>
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
      </div>
      <div className="facts">
        <b>{turns.length}</b><small>turns</small>
        <b>{detail.execution.rounds}</b><small>rounds</small>
      </div>
    </footer>
  );
}
