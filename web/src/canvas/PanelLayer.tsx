// The open panel beside its node; it keeps its size however far the canvas is zoomed.
import { NodeToolbar, Position } from "@xyflow/react";
import { PanelBody, type PanelProps } from "../parts/panels/PanelBody";
import { PLACES } from "../graph/stages";
import { usePanel } from "../state/panel";

export function PanelLayer(given: PanelProps) {
  const { kind, node } = usePanel();
  if (!kind || !node) return null;
  const place = PLACES[node] ?? PLACES["hub"]!;
  const position = place.y > 420 ? Position.Top : Position.Bottom;
  return (
    <NodeToolbar nodeId={node} isVisible position={position} align={place.x > 560 ? "end" : "start"} offset={node === "hub" ? -60 : 14}>
      <PanelBody {...given} />
    </NodeToolbar>
  );
}
