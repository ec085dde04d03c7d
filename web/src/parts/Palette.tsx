// The palette: drag a shape onto the canvas, by finger, pen or mouse; Enter puts it where it belongs.
import { useRef, useState } from "react";
import { Icon } from "../canvas/Icon";
import { outline } from "../canvas/shapes";
import { STAGE_ORDER, STAGES, type Stage } from "../graph/stages";
import { isPlaced, SECTION, useCompose } from "../state/compose";

export function Palette({ drop }: { drop(id: string, at: { x: number; y: number } | null): void }) {
  const { spec, schema } = useCompose();
  const [ghost, setGhost] = useState<{ stage: Stage; x: number; y: number } | null>(null);
  const from = useRef<{ x: number; y: number; moved: boolean } | null>(null);
  const known = schema?.$defs["LoopFile"]?.properties ?? {};
  const idOf = (stage: Stage) => (stage === "control" ? "planning" : stage);
  return (
    <aside className="palette" aria-label="Palette">
      {STAGE_ORDER.map((stage) => {
        const id = idOf(stage);
        const missing = schema !== null && id in SECTION && !(SECTION[id]! in known);
        return (
          <button
            key={stage}
            className={isPlaced(spec, id) ? "on" : ""}
            disabled={missing}
            title={missing ? "not part of this version" : STAGES[stage].means}
            data-palette={id}
            onPointerDown={(event) => {
              event.currentTarget.setPointerCapture(event.pointerId);
              from.current = { x: event.clientX, y: event.clientY, moved: false };
            }}
            onPointerMove={(event) => {
              const begun = from.current;
              if (!begun) return;
              if (Math.hypot(event.clientX - begun.x, event.clientY - begun.y) > 8) begun.moved = true;
              if (begun.moved) setGhost({ stage, x: event.clientX, y: event.clientY });
            }}
            onPointerUp={(event) => {
              const begun = from.current;
              from.current = null;
              setGhost(null);
              if (!begun?.moved) return;
              const under = document.elementsFromPoint(event.clientX, event.clientY);
              if (under.some((one) => one.classList.contains("react-flow"))) drop(id, { x: event.clientX, y: event.clientY });
            }}
            onPointerCancel={() => { from.current = null; setGhost(null); }}
            onKeyDown={(event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); drop(id, null); } }}
          >
            <Glyph stage={stage} />
            {stage === "control" ? "Planning" : STAGES[stage].label}
          </button>
        );
      })}
      {ghost && <span className="ghost" style={{ left: ghost.x, top: ghost.y }}><Glyph stage={ghost.stage} scale={1.6} /></span>}
    </aside>
  );
}

function Glyph({ stage, scale = 1 }: { stage: Stage; scale?: number }) {
  return (
    <span className="glyph">
      <svg width={72 * scale} height={40 * scale} viewBox="-2 -2 76 44" aria-hidden="true"><path className="body" d={outline(stage, 72, 38)} /></svg>
      <Icon name={stage} size={19 * scale} />
    </span>
  );
}
