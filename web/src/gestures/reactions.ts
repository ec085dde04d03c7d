// What each gesture does on a loop that is watched (CV-03 to CV-20): one table, for the canvas, the tablet and the phone.
import { useEffect } from "react";
import type { Detail, LiveState } from "../api/client";
import { act } from "../parts/acts";
import { useSinks } from "../parts/useSinks";
import { painted, useLive } from "../state/live";
import { usePanel } from "../state/panel";
import { useUi } from "../state/ui";
import { atEnd, useGestures } from "./zones";

export function useReactions(detail: Detail | null, live: LiveState | undefined): void {
  const { open, toggle } = usePanel();
  const { go, select, toast } = useUi();
  const load = useSinks((s) => s.load);
  useEffect(() => { painted().then(load).catch(() => undefined); }, [load]);
  const acts = detail?.settings["act"] === "agent";

  useGestures("padlock", { tap: () => approve(detail) });
  useGestures("executing", { tap: () => select("executing"), pinch: atEnd(() => toggle("ring", "executing")), longpress: () => toggle("bands", "executing") });
  useGestures("perceive", { tap: () => select("perceive"), spread: atEnd(() => open("map", "perceive")), pinch: atEnd(() => usePanel.getState().close()) });
  useGestures("reason", {
    tap: () => select("reason"),
    doubletap: () => {
      if (acts && detail) open("plan", "reason");
      else toast("info", "No model acts in it, so it has no plan.");
    },
  });
  useGestures("hub", {
    tap: () => select("hub"),
    pinch: atEnd(() => toggle("dials", "hub")),
    longpress: () => { if (live?.seq) void act("pins"); },
  });
  useGestures("foundation", { tap: () => select("foundation"), spread: atEnd(() => open("prompt", "foundation")), pinch: atEnd(() => usePanel.getState().close()), rotate: atEnd(({ angle }) => void turned(angle)) });
  useGestures("call", { tap: (_, id) => toggle("call", "act", id), doubletap: (_, id) => open("output", "act", id) });
  useGestures("act", { tap: () => select("act") });
  useGestures("verify", { tap: () => select("verify") });
  useGestures("learn", { tap: () => select("learn") });
  useGestures("planning", { tap: () => select("planning") });
  useGestures("error_recovery", { tap: () => select("error_recovery") });
  useGestures("completed", { tap: () => select("completed"), doubletap: () => open("outcome", "completed") });
  useGestures("failed", { tap: () => select("failed"), doubletap: () => open("outcome", "failed") });
  useGestures("telemetry", { tap: () => toggle("sinks", "telemetry"), spread: atEnd(() => fleet(go)) });
  useGestures("pin", { tap: (_, id) => open("pin", "hub", id) });
}

function approve(detail: Detail | null): void {
  const plan = detail?.plan;
  const { toast } = useUi.getState();
  if (!plan?.needs_approval) return;
  if (plan.approved) return toast("info", `Approved by ${plan.approved_by}. A changed plan locks it again.`);
  if (!plan.request_id) return toast("info", plan.digest ? "The plan is not before you yet." : "There is no plan to approve yet.");
  void act("approve", { request_id: plan.request_id, reason: "" });
}

let wanted: number | null = null; // the ratio that notches have asked for while one of them is on its way

/** The content ratio, ten per cent a notch. Notches that come quicker than the service answers add up. */
async function turned(angle: number): Promise<void> {
  const now = () => (useLive.getState().detail?.settings["act_agent"] as { compact_at?: number } | undefined)?.compact_at ?? 80;
  const underWay = wanted !== null;
  wanted = Math.max(20, Math.min(100, Math.round(((wanted ?? now()) + (angle / 25) * 10) / 10) * 10));
  usePanel.getState().open("ratio", "foundation");
  if (underWay) return;
  for (let asked = now(); asked !== wanted; ) {
    asked = wanted;
    if (!(await act("extend", { compact_at: asked }))) break;
  }
  wanted = null;
}

function fleet(go: (view: "fleet", execution?: string) => void): void {
  const run = () => go("fleet", "");
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  document.documentElement.dataset["ripple"] = "1";
  setTimeout(() => delete document.documentElement.dataset["ripple"], 900);
  if (still) return run();
  run();
}
