// Ten thousand lines scroll smoothly: only those in sight are in the page.
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useRef } from "react";
import { useLive } from "../state/live";
import { useUi } from "../state/ui";
import { toneOfEvent } from "./Timeline";

export function LogList() {
  const events = useLive((s) => s.events);
  const older = useLive((s) => s.older);
  const { bead, setBead } = useUi();
  const box = useRef<HTMLDivElement>(null);
  const stuck = useRef(true);
  const rows = useVirtualizer({ count: events.length, getScrollElement: () => box.current, estimateSize: () => 34, overscan: 12 });
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
          return (
            <div
              key={one.seq}
              className={`logline ${toneOfEvent(one)} ${bead === one.seq ? "now" : ""}`}
              style={{ transform: `translateY(${row.start}px)` }}
              onClick={() => setBead(one.seq)}
            >
              <code>{one.seq}</code>
              <i />
              <b>{one.kind}</b>
              <span>{one.text}</span>
            </div>
          );
        })}
      </div>
    </div>
  );
}
