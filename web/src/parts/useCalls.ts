// The calls of the turn in sight: from the last response and what followed it, so that a chip changes as soon as its result is there.
import { useMemo } from "react";
import type { Call } from "../api/client";
import { useLive } from "../state/live";
import { useUi } from "../state/ui";

interface SpokenCall { id: string; name: string; args: unknown; kind?: string; problem?: string }
interface GivenResult { id: string; content: string; status: string; blob?: string; changed?: string[] }

export interface SeenCall extends Call {
  seq: number; // record of its result; 0: there is none yet
}

export function useCalls(): SeenCall[] {
  const events = useLive((s) => s.events);
  const bead = useUi((s) => s.bead);
  return useMemo(() => {
    let end = events.length;
    if (bead) {
      const at = events.findIndex((one) => one.seq > bead);
      if (at >= 0) end = at;
    }
    let start = end - 1;
    while (start >= 0 && events[start]!.kind !== "model.responded") start--;
    if (start < 0) return [];
    const spoken = ((events[start]!.data ?? {}) as { calls?: SpokenCall[] }).calls ?? [];
    const calls: SeenCall[] = spoken.map((one, index) => ({
      index,
      id: one.id,
      name: one.name,
      args: one.args,
      kind: one.kind ?? "read",
      problem: one.problem ?? "",
      status: one.problem ? "invalid" : "pending",
      preview: "",
      stored: "",
      changed: [],
      seq: 0,
    }));
    let next = 0;
    for (let at = start + 1; at < end; at++) {
      const event = events[at]!;
      if (event.kind === "model.responded") break;
      if (event.kind === "tool.intended" && calls[next]) calls[next]!.status = "running";
      if (event.kind !== "tools.finished") continue;
      for (const result of ((event.data ?? {}) as { results?: GivenResult[] }).results ?? []) {
        const call = calls[next++];
        if (!call) continue;
        if (!call.problem) call.status = result.status;
        call.preview = result.content ?? "";
        call.stored = result.blob ?? "";
        call.changed = result.changed ?? [];
        call.seq = event.seq;
      }
    }
    return calls;
  }, [events, bead]);
}
