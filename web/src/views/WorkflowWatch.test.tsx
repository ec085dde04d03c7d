import { renderToStaticMarkup } from "react-dom/server";
import { describe, expect, it, vi } from "vitest";
import type { Detail, LiveState } from "../api/client";
import { WorkflowWatch } from "./WorkflowWatch";

// What the stores read of a browser when they are made.
vi.hoisted(() => Object.assign(globalThis, {
  location: { hash: "" }, localStorage: { getItem: () => null, setItem: () => undefined }, matchMedia: () => ({ matches: false }),
  addEventListener: () => undefined, document: { documentElement: { dataset: {} } },
}));

const wait = { for: "answer", task: "name", child: "", request_id: "name.q1", prompt: "Which <name>?", until_us: null };
const shown = (status: string, waits: object[]) => {
  const execution = { execution_id: "w1", kind: "workflow", status, waits, pending: null, cost_usd: 0.5 };
  const detail = { execution, rest: { why: "task build failed" }, owner: "here:1", here: false } as unknown as Detail;
  return renderToStaticMarkup(<WorkflowWatch detail={detail} live={{ status } as LiveState} />);
};

describe("a workflow", () => {
  it("says what it waits for, in its words, and how to answer", () => {
    const page = shown("running", [wait, { ...wait, for: "decision", task: "build", child: "inner1" }]);
    expect(page).toContain("a question (name)");
    expect(page).toContain("Which &lt;name&gt;?");
    expect(page).toContain("treadle answer w1 TEXT");
    expect(page.match(/Open it/g)).toHaveLength(1);
  });
  it("says how to approve what waits for a decision", () => {
    expect(shown("running", [{ ...wait, for: "decision" }])).toContain("treadle approve w1");
    expect(shown("waiting-input", [])).toContain("treadle approve w1");
  });
  it("that runs or has ended waits for nothing", () => {
    expect(shown("running", [])).toContain("at work");
    expect(shown("failed", [wait])).toContain("task build failed");
    expect(shown("failed", [wait])).not.toContain("a question");
  });
});
