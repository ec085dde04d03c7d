// What a gesture opens while a loop is drawn: warning bands, content ratio, the class of an error that goes to recovery.
import { useState } from "react";
import { createPortal } from "react-dom";
import { NodeToolbar, Position } from "@xyflow/react";
import { Icon } from "../canvas/Icon";
import { atEnd, useGestures } from "../gestures/zones";
import { KINDS, setField, useCompose } from "../state/compose";
import { useUi } from "../state/ui";
import { useLayout } from "./useLayout";
import { Bands } from "./panels/Sliders";
import { RatioDial } from "./panels/Window";

export function ComposePanel({ asking, choose }: { asking: string; choose(kind: string): void }) {
  const [open, setOpen] = useState<"" | "bands" | "ratio">("");
  const spec = useCompose((s) => s.spec);
  const select = useUi((s) => s.select);
  const phone = useLayout() === "phone";
  const control = (spec["control"] ?? {}) as { warn_at?: number[]; max_turns_per_act?: number };
  const ratio = Math.round(((spec["foundation"] as { compact_at?: number } | undefined)?.compact_at ?? 0.8) * 100);
  useGestures("executing", { longpress: () => setOpen(open === "bands" ? "" : "bands"), tap: () => select("executing") });
  useGestures("foundation", {
    tap: () => select("foundation"),
    rotate: atEnd(({ angle }) => {
      setOpen("ratio");
      setField("foundation", "compact_at", Math.max(20, Math.min(100, Math.round((ratio + (angle / 25) * 10) / 10) * 10)) / 100);
    }),
  });
  useGestures("padlock", { tap: () => setField("control", "plan", (control as { plan?: boolean }).plan ? undefined : true) });
  const shown = asking ? "kind" : open;
  if (!shown) return null;
  const close = () => (asking ? choose("") : setOpen(""));
  const body = (
      <section className="panel nopan nowheel" role="dialog" aria-label={shown === "kind" ? "Class of error" : shown === "bands" ? "Warning bands" : "Content ratio"} data-panel={shown} onKeyDown={(e) => { if (e.key === "Escape") close(); }}>
        <header><h3>{shown === "kind" ? "Which errors go to recovery?" : shown === "bands" ? "Warning bands" : "Content ratio"}</h3><button className="round" aria-label="Close" onClick={close}><Icon name="cross" size={15} /></button></header>
        {shown === "bands" && <Bands bands={control.warn_at ?? [80, 90]} cap={control.max_turns_per_act ?? 60} commit={(bands) => setField("control", "warn_at", bands)} />}
        {shown === "ratio" && <div className="ratiopanel"><RatioDial ratio={ratio} used={0} /></div>}
        {shown === "kind" && <div className="kinds">{Object.entries(KINDS).map(([kind, sort], n) => <button key={kind} ref={n === 0 ? focused : undefined} className={sort} onClick={() => choose(kind)}>{kind}</button>)}</div>}
      </section>
  );
  // On a phone there is no room beside a node: a sheet at thumb height, over the palette.
  if (phone) return createPortal(<div className="sheet panelsheet overlay"><span className="grab" />{body}</div>, document.body);
  return (
    <NodeToolbar nodeId={asking ? "error_recovery" : shown === "bands" ? "executing" : "foundation"} isVisible position={Position.Bottom} offset={14}>
      {body}
    </NodeToolbar>
  );
}

/** Without scrolling: what lies over the canvas would push all of it aside. */
const focused = (element: HTMLElement | null) => element?.focus({ preventScroll: true });
