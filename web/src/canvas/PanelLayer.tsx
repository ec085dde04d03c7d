// The open panel beside its node; it keeps its size however far the canvas is zoomed, and is never opened beyond the canvas's edge.
import { NodeToolbar, Position } from "@xyflow/react";
import { useEffect, useRef, useState, type ReactNode } from "react";
import { PanelBody, type PanelProps } from "../parts/panels/PanelBody";
import { PLACES } from "../graph/stages";
import { usePanel } from "../state/panel";

const EDGE = 12;

export function PanelLayer(given: PanelProps) {
  const { kind, node } = usePanel();
  if (!kind || !node) return null;
  const place = PLACES[node] ?? PLACES["hub"]!;
  const position = place.y > 420 ? Position.Top : Position.Bottom;
  return (
    <NodeToolbar nodeId={node} isVisible position={position} align={place.x > 560 ? "end" : "start"} offset={node === "hub" ? -60 : 14}>
      <InSight key={`${kind} ${node}`}><PanelBody {...given} /></InSight>
    </NodeToolbar>
  );
}

/** Moves what would lie beyond the edge back onto the canvas, whenever its size changes: what is clipped there cannot be scrolled to. */
function InSight({ children }: { children: ReactNode }) {
  const own = useRef<HTMLDivElement>(null);
  const [by, setBy] = useState({ x: 0, y: 0 });
  useEffect(() => {
    const element = own.current;
    const canvas = element?.closest(".react-flow");
    if (!element || !canvas) return;
    const watch = new ResizeObserver(() => {
      const [box, room] = [element.getBoundingClientRect(), canvas.getBoundingClientRect()];
      setBy((old) => ({
        x: inside(box.left - old.x, box.width, room.left, room.right),
        y: inside(box.top - old.y, box.height, room.top, room.bottom),
      }));
    });
    watch.observe(element);
    return () => watch.disconnect();
  }, []);
  return <div ref={own} style={{ transform: `translate(${by.x}px, ${by.y}px)` }}>{children}</div>;
}

/** How far to move it; where there is no room for all of it, its beginning is seen. */
function inside(start: number, size: number, from: number, to: number): number {
  return Math.max(from + EDGE - start, Math.min(0, to - EDGE - start - size));
}
