// Drawing a loop: palette, canvas, form. The server says which edges are legal and what is wrong with the file.
import { applyNodeChanges, ReactFlowProvider, useReactFlow, type Connection, type Edge, type Node, type NodeChange } from "@xyflow/react";
import { useEffect, useMemo, useState } from "react";
import { start } from "../api/client";
import { Canvas, FIT } from "../canvas/Canvas";
import { Icon } from "../canvas/Icon";
import { ACROSS, draw as picture } from "../graph/draw";
import { PLACES } from "../graph/stages";
import { useLinking } from "../gestures/useLinking";
import { ComposePanel } from "../parts/ComposePanel";
import { ComposeForm } from "../parts/ComposeForm";
import { Palette } from "../parts/Palette";
import { useLayout } from "../parts/useLayout";
import { connect, isPlaced, move, place, PLACEABLE, remove, useCompose } from "../state/compose";
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
  const small = useLayout() === "phone";
  const drawn = useMemo(() => picture(spec, findings, small), [spec, findings, small]);
  const [nodes, setNodes] = useState<Node[]>(drawn.nodes);
  useEffect(() => void init(), [init]);
  const count = drawn.nodes.length;
  const [fitted, setFitted] = useState(0); // how many nodes the canvas has last been fitted to
  const measured = nodes.length === count && nodes.every((one) => one.measured?.width);
  useEffect(() => {
    if (!count || !measured || fitted === count) return;
    const still = !fitted || matchMedia("(prefers-reduced-motion: reduce)").matches;
    void flow.fitView({ ...FIT, duration: still ? 0 : 180 }).then(() => setFitted(count));
  }, [count, measured, fitted, flow]);
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
    setRefused({ id: "refused", source: way.source, target: way.target, ...ACROSS, type: "way", data: { state: "illegal" } });
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
  const empty = !isPlaced(spec, "planning") && PLACEABLE.every((one) => !isPlaced(spec, one));
  return (
    <div className="composer">
      <Palette drop={drop} />
      <main className="stagearea" aria-label="Canvas of the loop file" style={{ position: "relative" }}>
        <Canvas
          locked={false}
          unfitted={count > 0 && !fitted}
          autoPanOnConnect={!small}
          nodes={nodes}
          edges={[...drawn.edges, ...(refused ? [refused] : []), ...(link ? [{ id: "linking", source: link.from, target: link.to, ...ACROSS, type: "way", data: { state: "active" } } as Edge] : [])]}
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
