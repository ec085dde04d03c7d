import { describe, expect, it } from "vitest";
import type { Detail, LiveState, Turn } from "../api/client";
import { project, type Seen } from "./project";

type Given = Partial<Omit<Seen, "live" | "detail">> & { live?: Partial<LiveState>; detail?: object; used?: number };

/** A loop that runs in its first round, with 10 turns an act and bands at 60 and 80 per cent. */
function seen({ live, detail, used = 3, ...more }: Given = {}): Seen {
  const budgets = [{ name: "turns of this act", used, limit: 10, unit: "turns" }, { name: "rounds", used: 1, limit: 4, unit: "rounds" }];
  const whole = {
    execution: { colour: "blue", rounds: 1 }, rest: { why: "a limit was reached", colour: "amber", label: "stopped, limit", next: "" }, head: 9,
    budgets, guards: [], settings: { act: "agent", evaluate: "command", act_agent: { bands: [60, 80] } }, definition: { check: "./check" }, can: [], ...detail,
  };
  return {
    detail: whole as unknown as Detail, live: { status: "running", agent: "executing", phase: "act", step: "calling", round: 1, turns: used, seq: 9, ...live } as LiveState,
    turns: [], events: 9, rate: 0, saying: "", calls: [], ...more,
  };
}
const data = (it: Seen, id: string) => project(it).nodes.find((one) => one.id === id)!.data as Record<string, unknown>;
const way = (it: Seen, id: string) => project(it).edges.find((one) => one.id === id)!.data as Record<string, unknown>;

describe("executing", () => {
  it("is a ring of its turns, quiet below the first warning band", () => {
    expect(data(seen(), "executing")).toMatchObject({ meter: 0.3, tone: "running", badge: undefined, sub: "3 / 10 turns" });
  });
  it("turns amber at the band, and its badge beats faster the nearer the wall", () => {
    const [near, nearer] = [data(seen({ used: 6 }), "executing"), data(seen({ used: 9 }), "executing")];
    expect(near).toMatchObject({ tone: "budget", badge: "!" });
    expect(nearer["pulse"]).toBeLessThan(near["pulse"] as number);
    expect(data(seen({ used: 6, detail: { settings: { act_agent: { bands: [70] } } } }), "executing")["badge"]).toBeUndefined();
  });
  it("is red on a turn that failed, and only while it runs", () => {
    const turns = [{ turn: 1, failed: 1, calls: [] } as unknown as Turn];
    expect(data(seen({ turns }), "executing")["failing"]).toBe(true);
    expect(data(seen({ turns, live: { status: "done" } }), "executing")["failing"]).toBe(false);
  });
});

describe("recovery", () => {
  it("is amber while an error is being recovered from, and the way to it with it", () => {
    const it = seen({ live: { agent: "error_recovery" }, detail: { guards: [{ name: "recovery", count: 2, threshold: 4, label: "" }] } });
    expect(data(it, "error_recovery")).toMatchObject({ tone: "budget", sub: "2 batches failed" });
    expect(way(it, "executing-error_recovery")["state"]).toBe("transient");
    expect(way(seen(), "executing-error_recovery")["state"]).toBe("idle");
  });
});

describe("endings", () => {
  it("are green where it was accepted, amber where a limit stopped it, red where it failed", () => {
    expect(data(seen({ live: { status: "done", code: "accepted" } }), "completed")).toMatchObject({ tone: "done", tag: "accepted" });
    const stopped = { live: { status: "stopped", code: "limit" }, detail: { execution: { colour: "amber" } } } as Given;
    expect(data(seen(stopped), "failed")).toMatchObject({ tone: "budget", tag: "limit" });
    expect(data(seen({ ...stopped, detail: { execution: { colour: "red" } } }), "failed")["tone"]).toBe("failed");
    expect(data(seen({ live: { status: "paused" } }), "failed")["tag"]).toBeUndefined();
  });
});

describe("the padlock", () => {
  it("is shut until the plan is approved, and asks when the plan is before a person", () => {
    const plan = { needs_approval: true, approved: false, request_id: "q", steps: [] };
    expect(way(seen({ detail: { plan } }), "planning-executing")).toMatchObject({ state: "locked", padlock: "locked", asks: true });
    expect(way(seen({ detail: { plan: { ...plan, approved: true, approved_by: "ada", request_id: "" } } }), "planning-executing")).toMatchObject({ padlock: "open", note: "by ada" });
    expect(way(seen(), "planning-executing")["padlock"]).toBeUndefined();
  });
});
