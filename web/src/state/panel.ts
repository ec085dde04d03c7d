// The one panel that a gesture has opened, and what it stands beside.
import { create } from "zustand";
import { useUi } from "./ui";

export type PanelKind = "ring" | "bands" | "map" | "plan" | "dials" | "prompt" | "outcome" | "sinks" | "call" | "output" | "pin" | "ratio";
export const PANEL_LABEL: Record<PanelKind, string> = {
  ring: "Iterations", bands: "Warning bands", map: "Context map", plan: "Edit the plan", dials: "Guards", prompt: "The prompt", outcome: "Outcome",
  sinks: "Sinks", call: "Schema check", output: "Stored output", pin: "Pin", ratio: "Content ratio",
};

interface Panel {
  kind: PanelKind | "";
  node: string; // of the canvas that it stands beside
  id: string; // of what it shows: a call, a pin
  open(kind: PanelKind, node: string, id?: string): void;
  toggle(kind: PanelKind, node: string, id?: string): void;
  close(): void;
}

let before: HTMLElement | null = null;

export const usePanel = create<Panel>((set, get) => ({
  kind: "",
  node: "",
  id: "",
  open: (kind, node, id = "") => {
    if (!get().kind) before = document.activeElement as HTMLElement | null;
    set({ kind, node, id });
    useUi.getState().say(`${PANEL_LABEL[kind]} opened. Escape closes it.`);
  },
  toggle: (kind, node, id = "") => {
    const now = get();
    if (now.kind === kind && now.node === node && now.id === id) now.close();
    else now.open(kind, node, id);
  },
  close: () => {
    set({ kind: "", node: "", id: "" });
    before?.focus();
    before = null;
  },
}));
