// The loop file that is being drawn: what it says, how it got there, and what the server thinks of it.
import { create } from "zustand";
import { api, Problem, type Finding, type LoopDoc } from "../api/client";
import { PLACES, STATE_LABEL, type StateName } from "../graph/stages";
import { said } from "./live";
import { useUi } from "./ui";

export interface Spot { x: number; y: number }
export interface DrawnEdge { from: StateName; to: StateName; kind?: string }
export type Section = Record<string, unknown>;
export interface Spec {
  treadle: 1;
  name?: string;
  task?: string;
  canvas?: { nodes?: Record<string, Spot>; edges?: DrawnEdge[] };
  [section: string]: unknown;
}

interface Compose {
  name: string; // of the file; empty: not saved yet
  digest: string;
  spec: Spec;
  text: string;
  findings: Finding[];
  past: Spec[];
  future: Spec[];
  dirty: boolean;
  schema: Schema | null;
  files: { name: string; title: string; valid: boolean }[];
  init(): Promise<void>;
  fresh(): void;
  load(name: string): Promise<void>;
  change(next: (spec: Spec) => Spec): void;
  undo(): void;
  redo(): void;
  save(name: string): Promise<boolean>;
}

export interface SchemaField { type?: string; description?: string; enum?: unknown[]; anyOf?: SchemaField[]; items?: SchemaField; $ref?: string; default?: unknown }
export interface Schema { $defs: Record<string, { description?: string; properties: Record<string, SchemaField> }> }

export const EMPTY: Spec = { treadle: 1, name: "New loop" };
export const STATES = Object.keys(STATE_LABEL) as StateName[];
/** Which section of the file a node of the canvas is. */
export const SECTION: Record<string, string> = { foundation: "foundation", perceive: "perceive", act: "act", verify: "verify" };

/** Stages that are one setting of another section: on the canvas it is set, off it is not. */
export const SWITCH: Record<string, { field: string; on: unknown }> = { reason: { field: "plan", on: true }, learn: { field: "lessons", on: "on" } };
export const PLACEABLE = ["foundation", "perceive", "reason", "act", "verify", "learn"];

/** Classes of failed calls: what passes by itself, and what needs another call. */
export const KINDS: Record<string, "transient" | "deterministic"> = {
  timeout: "transient", "rate-limit": "transient", conflict: "transient", "not-found": "deterministic", argument: "deterministic", permission: "deterministic",
};

export const useCompose = create<Compose>((set, get) => ({
  name: "",
  digest: "",
  spec: EMPTY,
  text: "",
  findings: [],
  past: [],
  future: [],
  dirty: false,
  schema: null,
  files: [],
  init: async () => {
    try {
      const [schema, loops] = await Promise.all([fetch("/api/loops/schema").then((r) => r.json() as Promise<Schema>), api.loops()]);
      set({ schema, files: loops.loops });
    } catch (error) {
      useUi.getState().toast("bad", said(error));
    }
  },
  fresh: () => set({ name: "", digest: "", spec: EMPTY, text: "", findings: [], past: [], future: [], dirty: false }),
  load: async (name) => {
    try {
      set({ past: [], future: [], dirty: false, ...taken(await api.loop(name)) });
    } catch (error) {
      useUi.getState().toast("bad", said(error));
    }
  },
  change: (next) => {
    const { spec, past } = get();
    const made = next(structuredClone(spec));
    if (JSON.stringify(made) === JSON.stringify(spec)) return;
    set({ spec: made, past: [...past.slice(-99), spec], future: [], dirty: true });
    validateSoon();
  },
  undo: () => {
    const { past, spec, future } = get();
    const before = past.at(-1);
    if (!before) return;
    set({ spec: before, past: past.slice(0, -1), future: [spec, ...future], dirty: true });
    validateSoon();
  },
  redo: () => {
    const { past, spec, future } = get();
    const after = future[0];
    if (!after) return;
    set({ spec: after, past: [...past, spec], future: future.slice(1), dirty: true });
    validateSoon();
  },
  save: async (name) => {
    const { spec, digest, name: old } = get();
    const { toast } = useUi.getState();
    try {
      const made = await api.saveLoop(name, { spec: spec as never, text: null, digest: name === old ? digest : "" });
      set({ dirty: false, ...taken(made) });
      toast("good", `Saved as ${name}.`);
      set({ files: (await api.loops()).loops });
      return true;
    } catch (error) {
      const problem = error as Problem;
      toast("bad", problem.status === 409 ? `${name} exists already, or was changed by somebody else. Load it, or take another name.` : problem.message);
      return false;
    }
  },
}));

function taken(doc: LoopDoc): Pick<Compose, "name" | "digest" | "spec" | "text" | "findings"> {
  return { name: doc.name, digest: doc.digest, spec: (doc.spec ?? EMPTY) as Spec, text: doc.text, findings: doc.findings };
}

let timer = 0;
function validateSoon(): void {
  clearTimeout(timer);
  timer = window.setTimeout(() => {
    const asked = useCompose.getState().spec;
    api.validate({ spec: asked as never, text: null })
      .then((doc) => { if (useCompose.getState().spec === asked) useCompose.setState({ findings: doc.findings, text: doc.text }); })
      .catch((error: unknown) => useUi.getState().toast("bad", said(error)));
  }, 150);
}

const controlOf = (spec: Spec): Section => (spec["control"] ?? {}) as Section;
const switched = (spec: Spec, id: string): boolean => { const said = controlOf(spec)[SWITCH[id]!.field]; return said !== undefined && said !== false && said !== "off"; };
export const isPlaced = (spec: Spec, id: string): boolean => id in SWITCH ? switched(spec, id) : (id in SECTION ? SECTION[id]! in spec : Boolean(spec.canvas?.nodes?.["planning"]));
export const spotOf = (spec: Spec, id: string): Spot => spec.canvas?.nodes?.[id] ?? { x: PLACES[id]!.x - PLACES[id]!.w / 2, y: PLACES[id]!.y - PLACES[id]!.h / 2 };

/** Puts a stage onto the canvas. Planning is the one entry: it snaps to the start anchor, and a second one is refused. */
export function place(id: string, at?: Spot): void {
  const { spec, change } = useCompose.getState();
  const { toast, say } = useUi.getState();
  if (id === "planning") {
    if (isPlaced(spec, "planning")) return toast("bad", "A loop has one entry: Planning is there already.");
    change((next) => {
      const nodes: Record<string, Spot> = { ...next.canvas?.nodes };
      for (const state of STATES) nodes[state] = spotOf(EMPTY, state);
      next.canvas = { ...next.canvas, nodes, edges: next.canvas?.edges ?? [{ from: "planning", to: "executing" }] };
      return next;
    });
    return say("Planning is the entry, at the start anchor.");
  }
  if (isPlaced(spec, id)) return toast("info", `${id} is on the canvas already.`);
  change((next) => {
    if (id in SWITCH) next["control"] = { ...controlOf(next), [SWITCH[id]!.field]: SWITCH[id]!.on };
    else next[SECTION[id]!] = {};
    next.canvas = { ...next.canvas, nodes: { ...next.canvas?.nodes, [id]: at ?? spotOf(EMPTY, id) } };
    return next;
  });
  say(`${id} is on the canvas.`);
}

/** Takes a stage off: what is not on the canvas is off. */
export function remove(id: string): void {
  useCompose.getState().change((next) => {
    const nodes = { ...next.canvas?.nodes };
    if (id in SECTION) {
      delete next[SECTION[id]!];
      delete nodes[id];
    } else if (id in SWITCH) {
      const { [SWITCH[id]!.field]: _, ...rest } = controlOf(next);
      next["control"] = rest;
      delete nodes[id];
    } else if (id === "planning") {
      for (const state of STATES) delete nodes[state];
      delete next.canvas?.edges;
    }
    next.canvas = { ...next.canvas, nodes };
    return next;
  });
}

export function move(id: string, spot: Spot): void {
  useCompose.getState().change((next) => {
    const at = { x: Math.round(spot.x), y: Math.round(spot.y) };
    next.canvas = { ...next.canvas, nodes: { ...next.canvas?.nodes, [id]: at } };
    return next;
  });
}

/** Asks the server whether the table has the edge (AG-02); draws it only then. */
export async function connect(source: string, target: string, kind = ""): Promise<{ legal: boolean; reason: string }> {
  const { toast } = useUi.getState();
  try {
    const found = await api.checkEdge(source, target);
    if (!found.legal) {
      toast("bad", found.reason ?? "");
      return { legal: false, reason: found.reason ?? "" };
    }
    useCompose.getState().change((next) => {
      const edges = (next.canvas?.edges ?? []).filter((one) => one.from !== source || one.to !== target);
      next.canvas = { ...next.canvas, edges: [...edges, { from: source as StateName, to: target as StateName, ...(kind ? { kind } : {}) }] };
      return next;
    });
    return { legal: true, reason: "" };
  } catch (error) {
    toast("bad", said(error));
    return { legal: false, reason: said(error) };
  }
}

export function setField(section: string, field: string, value: unknown): void {
  useCompose.getState().change((next) => {
    const target = section ? ({ ...(next[section] as Section | undefined) } as Section) : next;
    if (value === undefined || value === "") delete target[field];
    else target[field] = value;
    if (section) next[section] = target;
    return next;
  });
}
