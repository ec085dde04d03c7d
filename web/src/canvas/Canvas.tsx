// React Flow as the studio uses it. Watch and Steer lock the layout; Compose gives handlers.
import {
  ReactFlow,
  useReactFlow,
  type Edge,
  type FitViewOptions,
  type Node,
  type ReactFlowProps,
} from "@xyflow/react";
import { useEffect, useRef, type ReactNode } from "react";
import { Dots } from "./Dots";
import { Icon } from "./Icon";
import { Markers, WayEdge } from "./edges/WayEdge";
import { AnchorNode } from "./nodes/AnchorNode";
import { HubNode } from "./nodes/HubNode";
import { PromptNode } from "./nodes/PromptNode";
import { StageNode } from "./nodes/StageNode";

const nodeTypes = { stage: StageNode, hub: HubNode, prompt: PromptNode, anchor: AnchorNode };
const edgeTypes = { way: WayEdge };
/** On a phone the buttons lie over the canvas, on a tablet the edge of the sheet does: the picture ends above them. */
export const FIT: FitViewOptions = { maxZoom: 1.15, padding: innerWidth < 700 ? { x: "10px", top: "12px", bottom: "70px" } : innerWidth < 1120 ? { x: "16px", top: "16px", bottom: "34px" } : 0.06 };

export interface CanvasProps extends ReactFlowProps<Node, Edge> {
  locked: boolean;
  tools?: ReactNode;
  over?: ReactNode; // what stands beside nodes
  unfitted?: boolean; // nodes are not yet where they will be: neither shown nor hit
}

export function Canvas({ locked, tools, over, unfitted = false, ...flow }: CanvasProps) {
  return (
    <div className="canvas" data-locked={locked} data-unfitted={unfitted} inert={unfitted}>
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
  const here = useRef<HTMLElement>(null);
  useEffect(() => {
    // Not its window alone: a line of the family above it takes room, too. The first size is the one that it has been fitted to.
    let known = "";
    const watch = new ResizeObserver(([seen]) => {
      const size = `${seen!.contentRect.width} ${seen!.contentRect.height}`;
      if (known && size !== known) requestAnimationFrame(() => void fitView(FIT));
      known = size;
    });
    watch.observe(here.current!.closest(".canvas")!);
    return () => watch.disconnect();
  }, [fitView]);
  return <i ref={here} hidden />;
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
