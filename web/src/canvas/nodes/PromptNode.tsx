// The foundation: the static slab, cached, and the part that is made anew each turn, with the boundary between.
import { Handle, Position, type Node, type NodeProps } from "@xyflow/react";

export interface PromptData extends Record<string, unknown> {
  w: number;
  h: number;
  cached: number; // tokens read from the cache by the last turn
  fresh: number; // tokens that were not
  model: string;
  ratio?: number;
}
export type PromptNodeType = Node<PromptData, "prompt">;

export function PromptNode({ id, data }: NodeProps<PromptNodeType>) {
  const short = (count: number) => (count >= 1000 ? `${(count / 1000).toFixed(1)}k` : String(count));
  return (
    <div className="prompt nopan nowheel" style={{ width: data.w, height: data.h }} data-g={id}>
      <div className={`slab static ${data.cached ? "hit" : ""}`}>
        <b>Static prompt</b>
        <span>{data.cached ? `${short(data.cached)} cached` : "no hit"}</span>
      </div>
      <div className="boundary" />
      <div className="slab dynamic">
        <b>Per-turn part</b>
        <span>{short(data.fresh)}</span>
      </div>
      <small>{data.model}{data.ratio ? ` · ratio ${data.ratio} %` : ""}</small>
      <Handle type="target" position={Position.Left} isConnectable={false} />
      <Handle type="source" position={Position.Right} isConnectable={false} />
    </div>
  );
}
