// The studio's own canvas with as many nodes as the address says (#200), for bench/studio.py. Not part of the product's bundle.
import "@xyflow/react/dist/style.css";
import "../src/style/tokens.css";
import "../src/style/app.css";
import { ReactFlowProvider, type Edge, type Node } from "@xyflow/react";
import { createRoot } from "react-dom/client";
import { Canvas } from "../src/canvas/Canvas";
import { handles } from "../src/graph/project";
import { STAGE_ORDER, type Tone } from "../src/graph/stages";

const COUNT = Number(location.hash.slice(1)) || 200;
const COLUMNS = 20;
const TONES: Tone[] = ["armed", "running", "done", "budget", "failed", "you", "pending"];
const nodes: Node[] = Array.from({ length: COUNT }, (_, n) => ({
  id: String(n),
  type: "stage",
  position: { x: (n % COLUMNS) * 240, y: Math.floor(n / COLUMNS) * 120 },
  width: 180,
  height: 66,
  measured: { width: 180, height: 66 },
  handles: handles(180, 66),
  data: { stage: STAGE_ORDER[n % STAGE_ORDER.length], label: `Stage ${n}`, sub: "turn 3 of 24", tone: TONES[n % TONES.length], w: 180, h: 66 },
}));
const edges: Edge[] = nodes.slice(1).map((one, n) => ({ id: `e${n}`, source: String(n), target: one.id, type: "way", data: { state: n % 5 ? "idle" : "legal" } }));

createRoot(document.getElementById("root")!).render(
  <ReactFlowProvider>
    <Canvas locked={false} nodes={nodes} edges={edges} />
  </ReactFlowProvider>,
);
