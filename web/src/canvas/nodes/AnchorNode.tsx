// Where the loop begins: the one entry snaps to it.
import { Handle, Position, type Node, type NodeProps } from "@xyflow/react";

export interface AnchorData extends Record<string, unknown> {
  armed: boolean;
}
export type AnchorNodeType = Node<AnchorData, "anchor">;

export function AnchorNode({ data }: NodeProps<AnchorNodeType>) {
  return (
    <div className={`anchor ${data.armed ? "armed" : ""}`}>
      <i />
      <small>start</small>
      <Handle type="source" position={Position.Right} isConnectable={false} />
    </div>
  );
}
