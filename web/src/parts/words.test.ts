import { describe, expect, it } from "vitest";
import { moment, waiting } from "./words";

const at = (hours: number, day = 1) => new Date(2026, 2, day, hours, 5, 33).getTime();
const wait = (what: "quota" | "time" | "decision", task: string, until_us: number | null = null) => ({ for: what, task, until_us, child: "", request_id: "", prompt: "" });

describe("what an execution waits for", () => {
  it("is said with the moment, of today without the day", () => {
    expect(moment(at(14) * 1000, at(9))).toBe("14:05:33");
    expect(moment(at(14, 2) * 1000, at(9))).toBe("2026-03-02 14:05");
    expect(waiting({ waits: [wait("quota", "build", at(14) * 1000)], pending: null }, at(9))).toBe("quota until 14:05:33 (build)");
  });
  it("names people before time, and the soonest", () => {
    const waits = [wait("time", "nap", at(15) * 1000), wait("quota", "build", at(14) * 1000), wait("decision", "ship")];
    expect(waiting({ waits, pending: null }, at(9))).toBe("a decision (ship) and 2 more");
    expect(waiting({ waits: waits.slice(0, 2), pending: null }, at(9))).toBe("quota until 14:05:33 (build) and 1 more");
  });
  it("is the end of its pause where nothing inside waits, and nothing where it goes on", () => {
    const pending = { request_id: "q", kind: "quota", prompt: "", choices: [], child: "", until_us: at(14) * 1000 };
    expect(waiting({ waits: [], pending }, at(9))).toBe("until 14:05:33");
    expect(waiting({ waits: [], pending: { ...pending, until_us: null } }, at(9))).toBe("");
    expect(waiting({ waits: [], pending: null }, at(9))).toBe("");
  });
});
