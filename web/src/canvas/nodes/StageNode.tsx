// A stage or a state: its shape, its colour, two lines, and what hangs below it (chips of calls).
import { Handle, Position, type Node, type NodeProps } from "@xyflow/react";
import { Fragment } from "react";
import type { Call } from "../../api/client";
import { TONE, type Stage, type Tone } from "../../graph/stages";
import { Icon } from "../Icon";
import { extra, outline } from "../shapes";

const SIDES: [string, Position][] = [["l", Position.Left], ["r", Position.Right], ["k", Position.Right], ["t", Position.Top], ["b", Position.Bottom]];

export interface StageData extends Record<string, unknown> {
  stage: Stage;
  label: string;
  sub: string;
  tone: Tone;
  w: number;
  h: number;
  breathe?: boolean;
  meter?: number; // 0 to 1: how far the border is drawn as a gauge
  badge?: string;
  caution?: { errors: number; warnings: number }; // what the checks say of it
  pulse?: number; // seconds of a beat of the badge: faster near the wall
  failing?: boolean; // the last turn failed
  satellites?: [string, boolean][];
  tag?: string; // terminal nodes: the ending
  chips?: Call[];
  connectable?: boolean;
  sides?: boolean; // handles at every side: React Flow measures those that it finds where nodes may be moved
}
export type StageNodeType = Node<StageData, "stage">;

export function StageNode({ id, data, selected }: NodeProps<StageNodeType>) {
  const { stage, w, h, tone } = data;
  const path = outline(stage, w, h);
  const colour = TONE[tone];
  const lit = tone !== "pending" && tone !== "off";
  return (
    <div
      className={`stage nopan nowheel tone-${data.failing ? "failed" : tone} ${data.breathe ? "breathe" : ""} ${selected ? "chosen" : ""}`}
      style={{ width: w, height: h, ["--tone" as string]: data.failing ? TONE.failed : colour }}
      data-g={id}
      data-tone={tone}
    >
      <svg width={w} height={h} className="shape" aria-hidden="true">
        {lit && <path d={path} className="halo" />}
        {stage === "control" && <path d={path} className="ring" />}
        <path d={path} className="body" pathLength={1} />
        {data.meter !== undefined && (
          <path d={path} className="meter" pathLength={1} strokeDasharray={`${Math.min(1, data.meter)} 1`} />
        )}
        {extra(stage, w, h) && <path d={extra(stage, w, h)} className="extra" />}
      </svg>
      <span className="disc">
        <Icon name={stage} size={19} />
      </span>
      <span className="words">
        <b>{data.label}</b>
        <small>{data.sub}</small>
      </span>
      {data.badge && <span className="badge" style={{ animationDuration: `${data.pulse ?? 2}s` }}>{data.badge}</span>}
      {data.caution && <span className={`caution ${data.caution.errors ? "error" : ""}`} title={data.caution.errors ? "to mend" : "worth a thought"}>{data.caution.errors || "!"}</span>}
      {data.satellites?.map(([name, on], n) => <span key={name} className={`satellite ${on ? "on" : ""}`} style={{ ['--n' as string]: n }}><i />{name}</span>)}
      {data.tag && <span className="tag">{data.tag}</span>}
      {data.chips && data.chips.length > 0 && (
        <div className="chips">
          {data.chips.slice(0, 4).map((call) => (
            <button key={call.index} className={`chip nopan ${call.status}`} data-g={`call:${call.id}`} aria-label={`${call.name}, ${call.status}. Space: schema check. Enter: stored output.`}>
              <i />
              {call.name}
            </button>
          ))}
        </div>
      )}
      {data.sides && SIDES.map(([side, position]) => (
        <Fragment key={side}>
          <Handle id={`s${side}`} type="source" position={position} isConnectable={false} style={side === "k" ? { top: "84%" } : undefined} />
          <Handle id={`t${side}`} type="target" position={position} isConnectable={false} style={side === "k" ? { top: "84%" } : undefined} />
        </Fragment>
      ))}
      <Handle type="target" position={Position.Left} isConnectable={data.connectable ?? false} />
      <Handle type="source" position={Position.Right} isConnectable={data.connectable ?? false} />
    </div>
  );
}
