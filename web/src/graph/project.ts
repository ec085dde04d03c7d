// An execution becomes nodes and edges. Pure: the same detail, state and rows give the same picture.
import { Position, type Edge, type Node, type NodeHandle } from "@xyflow/react";
import type { Call, Detail, LiveState, Turn } from "../api/client";
import type { WayData, WayState } from "../canvas/edges/WayEdge";
import type { StageData } from "../canvas/nodes/StageNode";
import { PLACES, STATE_LABEL, type Stage, type StateName, type Tone } from "./stages";

export interface Picture {
  nodes: Node[];
  edges: Edge[];
}

export interface Seen {
  detail: Detail;
  live: LiveState;
  turns: Turn[];
  events: number; // records so far
  rate: number; // output tokens a second now
  saying: string; // what the model says right now
  calls: Call[];
  sinks?: [string, boolean][];
}

type Places = Record<string, { x: number; y: number; w: number; h: number }>;

/** Handles at all four sides, known before anything is measured: the picture is right at its first paint. */
export function handles(w: number, h: number): NodeHandle[] {
  const side = (id: string | null, type: "source" | "target", position: Position, x: number, y: number): NodeHandle => ({ id, type, position, x, y, width: 1, height: 1 });
  const sides: [string, Position, number, number][] = [["l", Position.Left, 0, h / 2], ["r", Position.Right, w, h / 2], ["k", Position.Right, w, h * 0.84], ["t", Position.Top, w / 2, 0], ["b", Position.Bottom, w / 2, h]];
  return [
    side(null, "target", Position.Left, 0, h / 2),
    side(null, "source", Position.Right, w, h / 2),
    ...sides.flatMap(([id, position, x, y]) => [side(`s${id}`, "source", position, x, y), side(`t${id}`, "target", position, x, y)]),
  ];
}

export function project(seen: Seen, places: Places = PLACES): Picture {
  const { detail, live } = seen;
  const final = detail.rest;
  const lastTurn = seen.turns.at(-1);
  const running = live.status === "running";
  const state = live.agent as StateName;
  const nodes: Node[] = [];
  const put = (id: string, type: string, data: Record<string, unknown>, label: string) => {
    const at = places[id]!;
    nodes.push({
      id,
      type,
      position: { x: at.x - at.w / 2, y: at.y - at.h / 2 },
      width: at.w,
      height: at.h,
      measured: { width: at.w, height: at.h },
      handles: handles(at.w, at.h),
      data: { w: at.w, h: at.h, ...data },
      ariaLabel: label,
      draggable: false,
    });
  };
  const stage = (id: string, data: Omit<StageData, "w" | "h">) =>
    put(id, "stage", data, `${data.label}, ${data.sub}${data.tag ? `, ${data.tag}` : ""}`);

  put("start", "anchor", { armed: running && state === "planning" }, "start of the loop");
  stage("planning", {
    stage: "control",
    label: STATE_LABEL.planning,
    sub: state === "planning" && running ? "armed · free turn" : "free first turn",
    tone: toneOf("planning", live, detail),
    breathe: running && state === "planning",
  });
  const act = budget(detail, "turns of this act") ?? budget(detail, "turns of act");
  const bands = [...(agentSettings(detail).bands ?? [80, 90])].sort((a, b) => a - b);
  const share = act?.limit ? act.used / act.limit : 0;
  const near = bands.length > 0 && share * 100 >= bands[0]!;
  stage("executing", {
    stage: "control",
    label: STATE_LABEL.executing,
    sub: act?.limit ? `${act.used} / ${act.limit} turns` : `${act?.used ?? 0} turns`,
    tone: near && running ? "budget" : toneOf("executing", live, detail),
    meter: act?.limit ? share : undefined,
    badge: near && running ? "!" : undefined,
    pulse: near && running ? Math.max(0.35, 1.8 - (share * 100 - bands[0]!) / 12) : undefined,
    failing: lastTurn !== undefined && (lastTurn.failed ?? 0) > 0 && running,
  });
  stage("error_recovery", {
    stage: "control",
    label: STATE_LABEL.error_recovery,
    sub: recoverySub(detail),
    tone: toneOf("error_recovery", live, detail),
  });
  const ended = !running && !["paused", "waiting-input"].includes(live.status ?? "");
  const good = ended && live.status === "done";
  stage("completed", {
    stage: "control",
    label: STATE_LABEL.completed,
    sub: good ? final.why : "the check accepts",
    tone: good ? "done" : "pending",
    tag: good ? live.code : undefined,
  });
  const bad = ended && !good;
  stage("failed", {
    stage: "control",
    label: STATE_LABEL.failed,
    sub: bad ? live.status ?? "" : "no way on",
    tone: bad ? (detail.execution.colour === "amber" ? "budget" : detail.execution.colour === "grey" ? "pending" : "failed") : "pending",
    tag: bad ? live.code : undefined,
  });

  const waits = live.status === "waiting-input";
  const mapped = (agentSettings(detail).map_tokens ?? 0) > 0;
  stage("perceive", {
    stage: "perceive",
    label: "Context map",
    sub: mapped ? "before planning" : "off: not in this loop",
    tone: mapped ? "armed" : "off",
  });
  const plan = detail.plan;
  stage("reason", {
    stage: "reason",
    label: plan?.steps?.length ? "Plan" : "Reason",
    sub: plan?.steps?.length
      ? `step ${Math.min(plan.steps.filter((one) => one.status === "done").length + 1, plan.steps.length)} of ${plan.steps.length}`
      : seen.saying.slice(-44) || `turn ${live.turns ?? 0}${lastTurn ? ` · ${lastTurn.finish}` : ""}`,
    tone: waits ? "you" : running && live.step === "calling" ? "running" : (live.turns ?? 0) > 0 ? "done" : "pending",
  });
  const failing = seen.calls.some((one) => one.status === "error" || one.status === "invalid");
  stage("act", {
    stage: "act",
    label: detail.settings["act"] === "agent" ? "Tools" : "Command",
    sub: seen.calls.length ? `${seen.calls.length} call${seen.calls.length === 1 ? "" : "s"} in this turn` : "no calls yet",
    tone: failing ? "failed" : running && live.step === "tools" ? "running" : seen.calls.length ? "done" : "pending",
    chips: seen.calls,
  });
  const verdict = detail.settings["evaluate"];
  const check = String(detail.definition?.["check"] ?? detail.definition?.["judge"] ?? "") || (verdict === "person" ? "a person accepts" : "the check");
  stage("verify", {
    stage: "verify",
    label: verdict === "person" ? "Person" : "Check",
    sub: check.slice(0, 28),
    tone: good ? "done" : live.phase === "evaluate" && running ? "running" : (live.round ?? 1) > 1 ? "failed" : "pending",
  });
  stage("learn", { stage: "learn", label: "Session log", sub: `${seen.events.toLocaleString("en")} events`, tone: seen.events ? "done" : "pending" });
  stage("telemetry", {
    stage: "perceive",
    label: "Telemetry",
    sub: running ? `${Math.round(seen.rate)} tok/s out` : `${(live.output_tokens ?? 0).toLocaleString("en")} tokens out`,
    tone: running ? "running" : "pending",
    ...(seen.sinks?.length ? { satellites: seen.sinks } : {}),
  });
  put(
    "foundation",
    "prompt",
    {
      cached: lastTurn?.cache_read_tokens ?? 0,
      fresh: Math.max(0, (lastTurn?.input_tokens ?? 0) - (lastTurn?.cache_read_tokens ?? 0)),
      model: String(detail.definition?.["model"] ?? ""),
      ratio: agentSettings(detail).compact_at ?? 80,
    },
    "Foundation: the prompt",
  );
  put("hub", "hub", { guards: detail.guards.slice(0, 3), status: `round ${live.round} of ${budget(detail, "rounds")?.limit ?? "?"}` }, "Control hub: guards");
  return { nodes, edges: ways(seen) };
}

function ways({ detail, live }: Seen): Edge[] {
  const running = live.status === "running";
  const state = live.agent;
  const locked = Boolean(detail.plan?.needs_approval && !detail.plan.approved);
  const active = (yes: boolean, other: WayState = "idle"): WayState => (yes ? "active" : other);
  const rows: [string, string, WayData, string?, string?][] = [
    ["start", "planning", { state: "legal" }],
    [
      "planning",
      "executing",
      {
        state: locked ? "locked" : state === "planning" ? "idle" : "legal",
        ...(detail.plan?.needs_approval
          ? { padlock: locked ? ("locked" as const) : ("open" as const), asks: Boolean(detail.plan.request_id), note: detail.plan.approved ? `by ${detail.plan.approved_by}` : "" }
          : {}),
      },
    ],
    ["executing", "completed", { state: live.status === "done" ? "legal" : "idle" }],
    ["executing", "failed", { state: live.status === "failed" ? "deterministic" : "idle" }],
    ["executing", "error_recovery", { state: running && state === "error_recovery" ? "transient" : "idle" }, "sb", "tl"],
    ["error_recovery", "executing", { state: "legal" }, "st", "tk"],
    ["perceive", "reason", { state: "idle" }],
    ["foundation", "reason", { state: active(running && live.step === "calling") }, "st", "tb"],
    ["reason", "act", { state: active(running && live.step === "tools") }],
    ["act", "verify", { state: active(running && live.phase === "evaluate") }, "sb", "tt"],
    ["verify", "learn", { state: "idle" }, "sb", "tr"],
    ["learn", "telemetry", { state: active(running) }, "sl", "tr"],
  ];
  return rows.map(([source, target, data, sourceHandle, targetHandle]) => ({
    id: `${source}-${target}`, source, target, sourceHandle, targetHandle, type: "way", data, selectable: false,
  }));
}

function toneOf(name: StateName, live: LiveState, detail: Detail): Tone {
  if (live.agent !== name) return name === "planning" && (live.turns ?? 0) > 0 ? "done" : "pending";
  if (live.status === "waiting-input") return "you";
  if (live.status === "running") return name === "planning" ? "armed" : name === "error_recovery" ? "budget" : "running";
  if (live.status === "done") return "done";
  return detail.execution.colour === "amber" ? "budget" : detail.execution.colour === "red" ? "failed" : "pending";
}

export const budget = (detail: Detail, name: string) => detail.budgets.find((one) => one.name === name);

function agentSettings(detail: Detail): { bands?: number[]; compact_at?: number; map_tokens?: number } {
  return (detail.settings["act_agent"] ?? {}) as { bands?: number[]; compact_at?: number; map_tokens?: number };
}

function recoverySub(detail: Detail): string {
  const count = detail.guards.find((one) => one.name === "recovery")?.count ?? 0;
  return count ? `${count} batch${count === 1 ? "" : "es"} failed` : "no hint waiting";
}

export const stageOfNode = (id: string): Stage =>
  ({ perceive: "perceive", reason: "reason", act: "act", verify: "verify", learn: "learn", telemetry: "perceive", foundation: "foundation" } as const)[id] ?? "control";
