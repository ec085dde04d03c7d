// Drawing a way by keyboard, or by tapping: C on a state, arrows to a target, Enter (CV-02).
import { useEffect, useState } from "react";
import { STATE_LABEL, type StateName } from "../graph/stages";
import { useUi } from "../state/ui";

const STATES = Object.keys(STATE_LABEL) as StateName[];
export interface Linking { from: string; to: string }

export function useLinking(draw: (from: string, to: string) => void): Linking | null {
  const [link, setLink] = useState<Linking | null>(null);
  const say = useUi((s) => s.say);
  useEffect(() => {
    const keys = (event: KeyboardEvent) => {
      const target = event.target as Element;
      if (target.closest("input, textarea, select") || event.ctrlKey || event.metaKey || event.altKey) return;
      const node = target.closest(".react-flow__node")?.getAttribute("data-id") ?? "";
      if (!link) {
        if (event.key.toLowerCase() !== "c" || !(node === "act" || STATES.includes(node as StateName))) return;
        const first = STATES.find((one) => one !== node)!;
        setLink({ from: node, to: first });
        say(`A way from ${nameOf(node)} to ${nameOf(first)}: arrows choose, Enter draws, Escape leaves it.`);
      } else if (event.key.startsWith("Arrow")) {
        const others = STATES.filter((one) => one !== link.from);
        const by = event.key === "ArrowRight" || event.key === "ArrowDown" ? 1 : -1;
        const to = others[(others.indexOf(link.to as StateName) + by + others.length) % others.length]!;
        setLink({ ...link, to });
        say(`to ${nameOf(to)}`);
      } else if (event.key === "Enter") {
        setLink(null);
        draw(link.from, link.to);
      } else if (event.key === "Escape") setLink(null);
      else return;
      event.preventDefault();
      event.stopPropagation();
    };
    addEventListener("keydown", keys, true);
    return () => removeEventListener("keydown", keys, true);
  }, [link, draw, say]);
  return link;
}

const nameOf = (id: string) => STATE_LABEL[id as StateName] ?? "Act";
