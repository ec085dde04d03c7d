// Shape says the stage, colour says the state: the vocabulary of the canvas.
export type Stage = "control" | "foundation" | "perceive" | "reason" | "act" | "verify" | "learn";
export type Tone = "armed" | "running" | "done" | "budget" | "failed" | "you" | "pending" | "off";

export const STAGES: Record<Stage, { label: string; means: string }> = {
  control: { label: "Control", means: "states of the loop, and what it may cost" },
  foundation: { label: "Foundation", means: "the model and its prompt" },
  perceive: { label: "Perceive", means: "a map of the workspace before planning" },
  reason: { label: "Reason", means: "the plan, and its approval" },
  act: { label: "Act", means: "tools, and what they may not touch" },
  verify: { label: "Verify", means: "who accepts: a command, a model, a person" },
  learn: { label: "Learn", means: "the session log and lessons" },
};
export const STAGE_ORDER = Object.keys(STAGES) as Stage[];

export const TONE: Record<Tone, string> = {
  armed: "var(--cyan)",
  running: "var(--blue)",
  done: "var(--green)",
  budget: "var(--amber)",
  failed: "var(--red)",
  you: "var(--violet)",
  pending: "var(--edge)",
  off: "var(--line)",
};

export type StateName = "planning" | "executing" | "error_recovery" | "completed" | "failed";
export const STATE_LABEL: Record<StateName, string> = {
  planning: "Planning",
  executing: "Executing",
  error_recovery: "ErrorRecovery",
  completed: "Completed",
  failed: "Failed",
};

/** What the nodes of a watched loop are called beside the canvas, and of which stage they are. */
export const NODE_LABEL: Record<string, [label: string, stage: string]> = {
  hub: ["Control hub", "Control"], perceive: ["Context map", "Perceive"], reason: ["Plan", "Reason"], act: ["Tools", "Act"], verify: ["Check", "Verify"],
  learn: ["Session log", "Learn"], telemetry: ["Telemetry", "Sinks"], foundation: ["The prompt", "Foundation"],
};

/** Places on the desk, as centres. The hub is the middle, the state machine runs along the top. */
export const PLACES: Record<string, { x: number; y: number; w: number; h: number }> = {
  start: { x: 24, y: 92, w: 28, h: 28 },
  planning: { x: 156, y: 92, w: 176, h: 66 },
  executing: { x: 446, y: 92, w: 186, h: 78 },
  completed: { x: 800, y: 58, w: 190, h: 60 },
  failed: { x: 800, y: 148, w: 190, h: 60 },
  error_recovery: { x: 622, y: 222, w: 184, h: 62 },
  perceive: { x: 132, y: 310, w: 196, h: 74 },
  reason: { x: 404, y: 310, w: 208, h: 74 },
  act: { x: 790, y: 340, w: 190, h: 74 },
  verify: { x: 800, y: 520, w: 192, h: 70 },
  learn: { x: 650, y: 650, w: 168, h: 66 },
  telemetry: { x: 318, y: 672, w: 180, h: 64 },
  foundation: { x: 120, y: 500, w: 180, h: 96 },
  hub: { x: 470, y: 486, w: 214, h: 214 },
};
