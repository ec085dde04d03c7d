// Ten thousand lines scroll smoothly: only those in sight are in the page.
import { useVirtualizer } from "@tanstack/react-virtual";
import { memo, useEffect, useRef } from "react";
import type { LogEvent } from "../api/client";
import { useLive } from "../state/live";
import { useUi } from "../state/ui";
import { toneOfEvent } from "./Timeline";

const HEIGHT = 34; // of every line, so that nothing need be measured

const Line = memo(function Line({ one, now, at, choose }: { one: LogEvent; now: boolean; at: number; choose(seq: number): void }) {
  return (
    <div className={`logline ${toneOfEvent(one)} ${now ? "now" : ""}`} style={{ transform: `translateY(${at}px)` }} onClick={() => choose(one.seq)}>
      <code>{one.seq}</code>
      <i />
      <b>{one.kind}</b>
      <span>{one.text.slice(0, 160)}</span>
    </div>
  );
});

export function LogList() {
  const events = useLive((s) => s.events);
  const older = useLive((s) => s.older);
  const { bead, setBead } = useUi();
  const box = useRef<HTMLDivElement>(null);
  const stuck = useRef(true);
  const rows = useVirtualizer({ count: events.length, getScrollElement: () => box.current, estimateSize: () => HEIGHT, overscan: 10, useFlushSync: false });
  useEffect(() => {
    if (stuck.current && events.length) rows.scrollToIndex(events.length - 1);
  }, [events.length, rows]);
  return (
    <div
      className="loglist"
      ref={box}
      tabIndex={0}
      role="log"
      aria-live="off"
      aria-label="Session log"
      onScroll={(event) => {
        const it = event.currentTarget;
        stuck.current = it.scrollHeight - it.scrollTop - it.clientHeight < 60;
        if (it.scrollTop < 40 && (events[0]?.seq ?? 1) > 1) void older();
      }}
    >
      <div style={{ height: rows.getTotalSize(), position: "relative" }}>
        {rows.getVirtualItems().map((row) => {
          const one = events[row.index]!;
          return <Line key={one.seq} one={one} now={bead === one.seq} at={row.start} choose={setBead} />;
        })}
      </div>
    </div>
  );
}
