// A loop file becomes nodes and edges, with what its checks say on the node that it is about. Pure.
import type { Edge, Node } from "@xyflow/react";
import type { Finding } from "../api/client";
import { isPlaced, KINDS, PLACEABLE, SECTION, spotOf, STATES, SWITCH, type Section, type Spec, type Spot } from "../state/compose";
import { handles } from "./project";
import { PLACES, STAGES, STATE_LABEL, type Stage, type StateName, type Tone } from "./stages";

/** Places on a phone, as centres: two columns, so that every word can be read. The file keeps those of the desk. */
const SMALL: Record<string, Spot> = {
  start: { x: 10, y: 44 }, planning: { x: 128, y: 44 }, executing: { x: 372, y: 44 }, error_recovery: { x: 372, y: 146 }, completed: { x: 128, y: 136 }, failed: { x: 128, y: 222 },
  reason: { x: 372, y: 246 }, perceive: { x: 128, y: 316 }, act: { x: 372, y: 346 }, foundation: { x: 128, y: 424 }, verify: { x: 372, y: 444 }, learn: { x: 372, y: 540 },
};
/** What flows from one stage to the next, where both are there. It is drawn, and cannot be changed. */
const FLOWS: [string, string, string, string][] = [
  ["perceive", "reason", "sr", "tl"], ["foundation", "reason", "st", "tb"], ["reason", "act", "sr", "tl"], ["act", "verify", "sb", "tt"], ["verify", "learn", "sb", "tr"],
];
const SMALL_FLOWS: typeof FLOWS = [["perceive", "reason", "sr", "tl"], ["foundation", "reason", "sr", "tl"], ["reason", "act", "sb", "tt"], ["act", "verify", "sb", "tt"], ["verify", "learn", "sb", "tt"]];

export function draw(spec: Spec, findings: Finding[], small: boolean): { nodes: Node[]; edges: Edge[] } {
  const nodes: Node[] = [];
  const marks = marked(spec, findings);
  const at = (id: string): Spot => {
    const { x, y, w, h } = { ...PLACES[id]!, ...(small ? SMALL[id] : {}) };
    return small || id === "start" ? { x: x - w / 2, y: y - h / 2 } : spotOf(spec, id);
  };
  const put = (id: string, type: string, data: object, more: object) => {
    const { w, h } = PLACES[id]!;
    nodes.push({ id, type, position: at(id), width: w, height: h, measured: { width: w, height: h }, handles: handles(w, h), data: { w, h, ...data }, draggable: !small, ...more });
  };
  const stage = (id: string, kind: Stage, label: string, sub: string, tone: Tone, more: object = {}) => {
    const mark = marks.get(id);
    const words = mark ? `, ${mark.errors ? `${mark.errors} to mend` : `${mark.warnings} worth a thought`}` : "";
    put(id, "stage", { stage: kind, sides: true, label, sub, tone: mark?.errors ? "failed" : mark ? "budget" : tone, caution: mark, ...more }, { ariaLabel: `${label}, ${sub}${words}` });
  };
  const placed = isPlaced(spec, "planning");
  put("start", "anchor", { armed: placed }, { draggable: false, selectable: false, focusable: false });
  const control = (spec["control"] ?? {}) as Section;
  if (placed) for (const state of STATES) stage(state, "control", STATE_LABEL[state], subOf(state, control), state === "planning" ? "armed" : "pending", { connectable: true, breathe: state === "planning" });
  for (const id of PLACEABLE.filter((one) => isPlaced(spec, one))) {
    const said = (spec[SECTION[id] ?? ""] ?? {}) as Section;
    const sub = String(said["model"] ?? said["check"] ?? said["judge"] ?? said["agent_command"] ?? SUBS[id] ?? STAGES[id as Stage].means).slice(0, 26);
    stage(id, id as Stage, STAGES[id as Stage].label, sub, "armed", id === "act" ? { connectable: true } : {});
  }
  return { nodes, edges: ways(spec, placed, small) };
}

const SUBS: Record<string, string> = { reason: "a plan to approve", learn: "lessons are kept", perceive: "before planning", act: "the workspace" };

interface Mark { errors: number; warnings: number }

/** How many findings are about each node. Those of the whole loop are at Executing, whose limits they are about. */
function marked(spec: Spec, findings: Finding[]): Map<string, Mark> {
  const found = new Map<string, Mark>();
  for (const one of findings) {
    const [section = "", field = ""] = one.path.split(/[.[]/);
    const own = Object.keys(SWITCH).find((id) => section === "control" && SWITCH[id]!.field === field);
    const id = own && isPlaced(spec, own) ? own : (Object.keys(SECTION).find((it) => SECTION[it] === section) ?? "executing");
    const mark = found.get(id) ?? { errors: 0, warnings: 0 };
    mark[one.severity === "warning" ? "warnings" : "errors"] += 1;
    found.set(id, mark);
  }
  return found;
}

function ways(spec: Spec, placed: boolean, small: boolean): Edge[] {
  const gated = isPlaced(spec, "reason");
  const edges: Edge[] = (spec.canvas?.edges ?? []).map((one) => ({
    id: `${one.from}-${one.to}`,
    source: one.from,
    target: one.to,
    ...sides(one.from, one.to, small),
    type: "way",
    data: {
      state: one.to === "error_recovery" && one.kind ? (KINDS[one.kind] ?? "deterministic") : "legal",
      label: one.kind,
      ...(one.from === "planning" && one.to === "executing"
        ? { padlock: gated ? ("locked" as const) : ("open" as const), words: gated ? "Plans wait for approval: open it" : "No approval is asked for: lock it" }
        : {}),
    },
  }));
  const drawn = { type: "way", deletable: false, selectable: false, focusable: false };
  if (placed) edges.push({ id: "start-planning", source: "start", target: "planning", targetHandle: "tl", data: { state: "legal" }, ...drawn });
  for (const [source, target, sourceHandle, targetHandle] of small ? SMALL_FLOWS : FLOWS)
    if (isPlaced(spec, source) && isPlaced(spec, target)) edges.push({ id: `flow-${source}-${target}`, source, target, sourceHandle, targetHandle, data: { state: "idle" }, ...drawn });
  return edges;
}

/** From the right of one to the left of the other, by name: without one the first handle of the node would do. */
export const ACROSS = { sourceHandle: "sr", targetHandle: "tl" };

/** At which sides the usual ways begin and end. */
function sides(from: string, to: string, small: boolean): { sourceHandle: string; targetHandle: string } {
  if (small && from === "executing" && (to === "completed" || to === "failed")) return { sourceHandle: "sl", targetHandle: "tr" };
  if (small && to === "error_recovery" && from === "executing") return { sourceHandle: "sb", targetHandle: "tt" };
  if (small && from === "error_recovery" && to === "executing") return { sourceHandle: "sr", targetHandle: "tk" };
  if (to === "error_recovery" && from === "executing") return { sourceHandle: "sb", targetHandle: "tl" };
  if (from === "error_recovery") return { sourceHandle: "st", targetHandle: to === "executing" ? "tk" : "tl" };
  if (from === to) return { sourceHandle: "sr", targetHandle: "tt" };
  return ACROSS;
}

function subOf(state: StateName, control: Section): string {
  if (state === "planning") return "the one entry";
  if (state === "executing") return `${String(control["max_turns_per_act"] ?? 60)} turns a round`;
  if (state === "error_recovery") return "classified errors";
  return "an end";
}
