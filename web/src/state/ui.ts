// What the person looks at. View, execution and theme are in the address or the browser's own storage, so that a reload stays.
import { create } from "zustand";

export type View = "fleet" | "watch" | "steer" | "compose" | "compare";
export type Theme = "dark" | "light";
const VIEWS: View[] = ["fleet", "watch", "steer", "compose", "compare"];

export interface Toast {
  id: number;
  tone: "info" | "good" | "bad" | "you";
  text: string;
}

interface Ui {
  view: View;
  execution: string;
  other: string; // the second one of a comparison
  theme: Theme;
  selected: string; // a node of the canvas
  bead: number; // sequence of the event that the timeline stands on; 0: the newest
  said: string; // what the live region says
  toasts: Toast[];
  go(view: View, execution?: string, other?: string): void;
  select(node: string): void;
  setBead(seq: number): void;
  setTheme(theme: Theme): void;
  say(text: string): void;
  toast(tone: Toast["tone"], text: string): void;
  drop(id: number): void;
}

function fromHash(): Pick<Ui, "view" | "execution" | "other"> {
  const [view = "", execution = "", other = ""] = location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
  return { view: VIEWS.includes(view as View) ? (view as View) : "fleet", execution, other };
}

function firstTheme(): Theme {
  const kept = localStorage.getItem("treadle-theme");
  if (kept === "dark" || kept === "light") return kept;
  return matchMedia("(prefers-color-scheme: light)").matches ? "light" : "dark";
}

let toasts = 0;

export const useUi = create<Ui>((set, get) => ({
  ...fromHash(),
  theme: firstTheme(),
  selected: "",
  bead: 0,
  said: "",
  toasts: [],
  go: (view, execution = get().execution, other = "") => {
    const parts = [view, execution, other].filter(Boolean).map(encodeURIComponent);
    history.pushState(null, "", `#/${parts.join("/")}`);
    set({ view, execution, other, bead: 0, ...(execution !== get().execution ? { selected: "" } : {}) });
  },
  select: (selected) => set({ selected }),
  setBead: (bead) => set({ bead }),
  setTheme: (theme) => {
    localStorage.setItem("treadle-theme", theme);
    document.documentElement.dataset["theme"] = theme;
    set({ theme });
  },
  say: (said) => set({ said }),
  toast: (tone, text) => {
    const id = ++toasts;
    set({ toasts: [...get().toasts.slice(-3), { id, tone, text }], said: text });
    setTimeout(() => get().drop(id), tone === "bad" ? 9000 : 4500);
  },
  drop: (id) => set({ toasts: get().toasts.filter((one) => one.id !== id) }),
}));

function moved(): void {
  const next = fromHash();
  const same = next.execution === useUi.getState().execution;
  useUi.setState({ ...next, ...(same ? {} : { selected: "", bead: 0 }) });
}
addEventListener("popstate", moved);
addEventListener("hashchange", moved);
