// React Flow as the studio uses it. Watch and Steer lock the layout; Compose gives handlers.
import {
  ReactFlow,
  useReactFlow,
  type Edge,
  type FitViewOptions,
  type Node,
  type ReactFlowProps,
} from "@xyflow/react";
import { useEffect, type ReactNode } from "react";
import { Dots } from "./Dots";
import { Icon } from "./Icon";
import { Markers, WayEdge } from "./edges/WayEdge";
import { AnchorNode } from "./nodes/AnchorNode";
import { HubNode } from "./nodes/HubNode";
import { PromptNode } from "./nodes/PromptNode";
import { StageNode } from "./nodes/StageNode";

const nodeTypes = { stage: StageNode, hub: HubNode, prompt: PromptNode, anchor: AnchorNode };
const edgeTypes = { way: WayEdge };
/** On a phone the buttons lie over the canvas, so that the picture ends above them. */
export const FIT: FitViewOptions = { maxZoom: 1.15, padding: innerWidth < 700 ? { x: "10px", top: "12px", bottom: "70px" } : 0.06 };

export interface CanvasProps extends ReactFlowProps<Node, Edge> {
  locked: boolean;
  tools?: ReactNode;
  over?: ReactNode; // what stands beside nodes
}

export function Canvas({ locked, tools, over, ...flow }: CanvasProps) {
  return (
    <div className="canvas" data-locked={locked}>
      <Markers />
      <ReactFlow
        nodeTypes={nodeTypes}
        edgeTypes={edgeTypes}
        nodesDraggable={!locked}
        nodesConnectable={!locked}
        edgesFocusable={!locked}
        elementsSelectable
        deleteKeyCode={locked ? null : ["Backspace", "Delete"]}
        nodeDragThreshold={8}
        connectionRadius={36}
        zoomOnDoubleClick={false}
        minZoom={0.2}
        maxZoom={2.2}
        fitView
        fitViewOptions={FIT}
        proOptions={{ hideAttribution: true }}
        {...flow}
      >
        <Dots />
        <Refit />
        <Zoom />
        {over}
      </ReactFlow>
      {tools && <div className="canvas-tools">{tools}</div>}
    </div>
  );
}

/** A canvas that has changed its size shows the whole again. */
function Refit() {
  const { fitView } = useReactFlow();
  useEffect(() => {
    const again = () => void fitView(FIT);
    addEventListener("resize", again);
    return () => removeEventListener("resize", again);
  }, [fitView]);
  return null;
}

function Zoom() {
  const { zoomIn, zoomOut, fitView } = useReactFlow();
  return (
    <div className="zoom nopan">
      <button aria-label="Zoom out" onClick={() => void zoomOut()}><Icon name="minus" /></button>
      <button aria-label="Zoom in" onClick={() => void zoomIn()}><Icon name="plus" /></button>
      <button aria-label="Show all" onClick={() => void fitView({ ...FIT, duration: 200 })}><Icon name="fit" /></button>
    </div>
  );
}
