// The control hub: guards as dials, each filling towards its threshold.
import type { Node, NodeProps } from "@xyflow/react";
import type { Guard } from "../../api/client";

export interface HubData extends Record<string, unknown> {
  guards: Guard[];
  status: string;
  w: number;
  h: number;
}
export type HubNodeType = Node<HubData, "hub">;

export function HubNode({ id, data }: NodeProps<HubNodeType>) {
  return (
    <div className="hub nopan nowheel" style={{ width: data.w, height: data.h }} data-g={id}>
      <b>Control hub</b>
      <small>{data.status}</small>
      <div className="dials">
        {data.guards.map((one) => (
          <Dial key={one.name} guard={one} />
        ))}
      </div>
    </div>
  );
}

export function Dial({ guard, size = 40 }: { guard: Guard; size?: number }) {
  const share = guard.threshold ? Math.min(1, guard.count / guard.threshold) : 0;
  const tone = share >= 1 ? "var(--red)" : share >= 0.5 ? "var(--amber)" : "var(--green)";
  return (
    <span className="dial" title={`${guard.label}: ${guard.count} of ${guard.threshold}`}>
      <svg width={size} height={size} viewBox="0 0 40 40" aria-hidden="true">
        <circle cx="20" cy="20" r="16" className="track" />
        <circle cx="20" cy="20" r="16" className="fill" pathLength={1} strokeDasharray={`${share} 1`} stroke={tone} />
        <text x="20" y="24" textAnchor="middle">{`${guard.count}/${guard.threshold}`}</text>
      </svg>
      <small>{guard.label}</small>
    </span>
  );
}
