// A way from one node to another. Only a way that carries something flows; a locked one is dashed and has a padlock.
import { BaseEdge, EdgeLabelRenderer, getBezierPath, type Edge, type EdgeProps } from "@xyflow/react";
import { Icon } from "../Icon";

export type WayState = "idle" | "legal" | "active" | "locked" | "transient" | "deterministic" | "illegal";
export interface WayData extends Record<string, unknown> {
  state: WayState;
  label?: string;
  padlock?: "locked" | "open";
  note?: string;
  words?: string; // what the padlock says of itself
  asks?: boolean; // the padlock waits for a person now
}
export type WayEdgeType = Edge<WayData, "way">;

export function WayEdge({ id, data, ...ends }: EdgeProps<WayEdgeType>) {
  const [path, x, y] = getBezierPath(ends);
  const state = data?.state ?? "idle";
  return (
    <>
      <BaseEdge id={id} path={path} className={`way ${state}`} markerEnd={`url(#arrow-${state})`} interactionWidth={24} />
      {(data?.label || data?.padlock) && (
        <EdgeLabelRenderer>
          <div className={`way-label ${state}`} style={{ transform: `translate(-50%, -50%) translate(${x}px, ${y}px)` }}>
            {data.padlock && (
              <button
                className={`padlock nopan ${data.padlock} ${data.asks ? "asks" : ""}`}
                data-g="padlock"
                aria-label={data.words ?? (data.padlock === "locked" ? "Approve the plan" : "The plan is approved")}
              >
                <Icon name={data.padlock === "locked" ? "lock" : "unlock"} size={18} />
              </button>
            )}
            {data.label && <span>{data.label}</span>}
            {data.note && <small>{data.note}</small>}
          </div>
        </EdgeLabelRenderer>
      )}
    </>
  );
}

const COLOURS: Record<WayState, string> = {
  idle: "var(--edge)",
  legal: "var(--green)",
  active: "var(--blue)",
  locked: "var(--edge)",
  transient: "var(--amber)",
  deterministic: "var(--red)",
  illegal: "var(--red)",
};

export function Markers() {
  return (
    <svg width="0" height="0" aria-hidden="true" style={{ position: "absolute" }}>
      <defs>
        {Object.entries(COLOURS).map(([state, colour]) => (
          <marker key={state} id={`arrow-${state}`} viewBox="0 0 10 10" refX="8.5" refY="5" markerWidth="6.5" markerHeight="6.5" orient="auto-start-reverse">
            <path d="M0.5,1L9,5L0.5,9z" fill={colour} />
          </marker>
        ))}
      </defs>
    </svg>
  );
}
