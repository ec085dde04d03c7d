// Drawing a loop: palette, canvas, form. The server says which edges are legal and what is wrong with the file.
import { applyNodeChanges, ReactFlowProvider, useReactFlow, type Connection, type Edge, type Node, type NodeChange } from "@xyflow/react";
import { useEffect, useMemo, useState } from "react";
import { start } from "../api/client";
import { Canvas } from "../canvas/Canvas";
import { Icon } from "../canvas/Icon";
import { handles } from "../graph/project";
import { PLACES, STAGES, STATE_LABEL, type Stage, type StateName, type Tone } from "../graph/stages";
import { useLinking } from "../gestures/useLinking";
import { ComposePanel, KINDS } from "../parts/ComposePanel";
import { ComposeForm } from "../parts/ComposeForm";
import { Palette } from "../parts/Palette";
import { connect, isPlaced, move, place, remove, SECTION, spotOf, STATES, useCompose, type Spec } from "../state/compose";
import { said } from "../state/live";
import { useUi } from "../state/ui";

export function ComposeView() {
  return (
    <ReactFlowProvider>
      <Composer />
    </ReactFlowProvider>
  );
}

function Composer() {
  const { spec, init, undo, redo, past, future, findings } = useCompose();
  const { selected, select, toast } = useUi();
  const flow = useReactFlow();
  const [refused, setRefused] = useState<Edge | null>(null);
  const drawn = useMemo(() => picture(spec, new Set(findings.map((one) => one.path.split(".")[0] ?? ""))), [spec, findings]);
  const [nodes, setNodes] = useState<Node[]>(drawn.nodes);
  useEffect(() => void init(), [init]);
  const count = drawn.nodes.length;
  useEffect(() => {
    const timer = setTimeout(() => void flow.fitView({ padding: 0.08, maxZoom: 1.15, duration: 180 }), 60);
    return () => clearTimeout(timer);
  }, [count, flow]);
  useEffect(() => setNodes(drawn.nodes.map((one) => ({ ...one, selected: one.id === selected }))), [drawn, selected]);
  useEffect(() => {
    const keys = (event: KeyboardEvent) => {
      if ((event.target as Element).closest("input, textarea, select")) return;
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "z") { event.preventDefault(); (event.shiftKey ? redo : undo)(); }
    };
    addEventListener("keydown", keys);
    return () => removeEventListener("keydown", keys);
  }, [undo, redo]);

  const changed = (changes: NodeChange[]) => {
    setNodes((old) => applyNodeChanges(changes.filter((one) => one.type !== "remove"), old));
    for (const one of changes) {
      // Saved on the change itself, not in drag handlers, so that keyboard moves are saved as well.
      if (one.type === "position" && one.position && !one.dragging) move(one.id, one.position);
      if (one.type === "remove") remove(one.id);
      if (one.type === "select" && one.selected) select(one.id);
    }
  };
  const [asking, setAsking] = useState("");
  const draw = async (way: { source: string; target: string }, kind = "") => {
    const source = way.source === "act" ? "executing" : way.source;
    if (way.source === "act" && way.target === "error_recovery" && !kind) return setAsking("act");
    const found = await connect(source, way.target, kind);
    if (found.legal) return;
    setRefused({ id: "refused", source: way.source, target: way.target, type: "way", data: { state: "illegal" } });
    setTimeout(() => setRefused(null), 700);
  };
  const link = useLinking((source, target) => void draw({ source, target }));
  const drop = (id: string, at: { x: number; y: number } | null) => {
    const size = PLACES[id]!;
    const point = at ? flow.screenToFlowPosition(at) : null;
    place(id, point ? { x: Math.round(point.x - size.w / 2), y: Math.round(point.y - size.h / 2) } : undefined);
    select(id);
  };
  const run = async () => {
    const { text } = await readText();
    try {
      const granted = await start({ text, task: spec.task ?? "" }, crypto.randomUUID());
      useUi.getState().go("watch", granted.execution_id);
    } catch (error) {
      toast("bad", said(error));
    }
  };
  const empty = !isPlaced(spec, "planning") && Object.values(SECTION).every((one) => !(one in spec));
  return (
    <div className="composer">
      <Palette drop={drop} />
      <main className="stagearea" aria-label="Canvas of the loop file" style={{ position: "relative" }}>
        <Canvas
          locked={false}
          nodes={nodes}
          edges={[...drawn.edges, ...(refused ? [refused] : []), ...(link ? [{ id: "linking", source: link.from, target: link.to, type: "way", data: { state: "active" } } as Edge] : [])]}
          onNodesChange={changed}
          onEdgesDelete={(gone) => useCompose.getState().change((next) => {
            const ids = new Set(gone.map((one) => one.id));
            if (next.canvas) next.canvas.edges = (next.canvas.edges ?? []).filter((one) => !ids.has(`${one.from}-${one.to}`));
            return next;
          })}
          over={<ComposePanel asking={asking} choose={(kind) => { setAsking(""); if (kind) void draw({ source: asking, target: "error_recovery" }, kind); }} />}
          onConnect={(way: Connection) => void draw(way)}
          onNodeClick={(_, node) => select(node.id)}
          onPaneClick={() => select("")}
          tools={
            <>
              <button aria-label="Undo" disabled={!past.length} onClick={undo}><Icon name="undo" /></button>
              <button aria-label="Redo" disabled={!future.length} onClick={redo}><Icon name="redo" /></button>
            </>
          }
        />
        {empty && (
          <div className="hint">
            <p>Drag Planning here, or</p>
            <button className="go" onClick={() => void useCompose.getState().load("sample")}>start from the sample loop</button>
          </div>
        )}
      </main>
      <ComposeForm run={() => void run()} />
    </div>
  );
}

async function readText(): Promise<{ text: string }> {
  const { api } = await import("../api/client");
  const { spec } = useCompose.getState();
  return api.validate({ spec: spec as never, text: null });
}

function picture(spec: Spec, wrong: Set<string>): { nodes: Node[]; edges: Edge[] } {
  const nodes: Node[] = [
    { id: "start", type: "anchor", position: { x: PLACES["start"]!.x - 14, y: PLACES["start"]!.y - 14 }, width: 28, height: 28, measured: { width: 28, height: 28 }, handles: handles(28, 28), data: { armed: isPlaced(spec, "planning") }, draggable: false, selectable: false, focusable: false },
  ];
  const put = (id: string, stage: Stage, label: string, sub: string, tone: Tone, more: object = {}) => {
    const { w, h } = PLACES[id]!;
    nodes.push({ id, type: "stage", position: spotOf(spec, id), width: w, height: h, measured: { width: w, height: h }, handles: handles(w, h), data: { stage, label, sub, tone: wrong.has(SECTION[id] ?? "") ? "failed" : tone, w, h, ...more }, ariaLabel: `${label}, ${sub}` });
  };
  const placed = isPlaced(spec, "planning");
  const control = (spec["control"] ?? {}) as Record<string, unknown>;
  if (placed)
    for (const state of STATES)
      put(state, "control", STATE_LABEL[state], subOf(state, control), state === "planning" ? "armed" : "pending", { connectable: true, breathe: state === "planning" });
  for (const [id, section] of Object.entries(SECTION)) {
    if (!(section in spec)) continue;
    const said = (spec[section] ?? {}) as Record<string, unknown>;
    const sub = String(said["model"] ?? said["check"] ?? said["judge"] ?? said["agent_command"] ?? STAGES[id as Stage].means).slice(0, 26);
    put(id, id as Stage, STAGES[id as Stage].label, sub, "armed", id === "act" ? { connectable: true } : {});
  }
  const edges: Edge[] = (spec.canvas?.edges ?? []).map((one) => ({
    id: `${one.from}-${one.to}`,
    source: one.from,
    target: one.to,
    ...sides(one.from, one.to),
    type: "way",
    data: { state: one.to === "error_recovery" && one.kind ? (KINDS[one.kind] ?? "deterministic") : "legal", label: one.kind, ...(one.from === "planning" && one.to === "executing" ? { padlock: (spec["control"] as { plan?: boolean } | undefined)?.plan ? ("locked" as const) : ("open" as const), words: (spec["control"] as { plan?: boolean } | undefined)?.plan ? "Plans wait for approval: open it" : "No approval is asked for: lock it" } : {}) },
  }));
  if (placed) edges.push({ id: "start-planning", source: "start", target: "planning", type: "way", data: { state: "legal" }, deletable: false, selectable: false });
  return { nodes, edges };
}

/** At which sides the usual ways begin and end. */
function sides(from: string, to: string): { sourceHandle?: string; targetHandle?: string } {
  if (to === "error_recovery" && from === "executing") return { sourceHandle: "sb", targetHandle: "tl" };
  if (from === "error_recovery") return { sourceHandle: "st", targetHandle: to === "executing" ? "tr" : "tl" };
  if (from === to) return { sourceHandle: "sr", targetHandle: "tt" };
  return {};
}

function subOf(state: StateName, control: Record<string, unknown>): string {
  if (state === "planning") return "the one entry";
  if (state === "executing") return `${String(control["max_turns_per_act"] ?? 60)} turns a round`;
  if (state === "error_recovery") return "classified errors";
  return "an end";
}
