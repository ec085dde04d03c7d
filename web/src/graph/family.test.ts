import { expect, test } from "vitest";
import type { Execution } from "../api/client";
import { familyOf, grouped } from "./family";

const row = (execution_id: string, more: Partial<Execution> = {}) => ({ execution_id, parent: "", forked: "", ...more }) as Execution;
const ROWS = [row("alone"), row("fork", { forked: "top@17" }), row("grand", { parent: "second" }), row("second", { parent: "top" }), row("first", { parent: "top" }), row("top"), row("orphan", { parent: "gone" })];

test("CV-24 each family stands together, children and forks under the one that they hang on", () => {
  expect(grouped(ROWS).map((one) => `${"-".repeat(one.depth)}${one.row.execution_id}${one.as && ` ${one.as}`}`)).toEqual([
    "alone", "top", "-first child", "-second child", "--grand child", "-fork fork at 17", "orphan",
  ]);
});

test("CV-24 the family of any member is the whole family", () => {
  expect(familyOf(ROWS, "grand").map((one) => one.row.execution_id)).toEqual(["top", "first", "second", "grand", "fork"]);
  expect(familyOf(ROWS, "alone")).toHaveLength(1);
  expect(familyOf(ROWS, "unknown")).toEqual([]);
});
