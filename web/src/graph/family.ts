// Who belongs to whom: a child stands under the execution that forked it, a fork under the one whose past it has. Pure.
import type { Execution } from "../api/client";

export interface Member { row: Execution; depth: number; as: string } // as: how it hangs on the one above; empty for a root

/** `execution@record` that a fork goes on from. */
const source = (row: Execution): [string, string] => { const [id = "", at = ""] = (row.forked ?? "").split("@"); return [id, at]; };
const above = (row: Execution): string => row.parent || source(row)[0];
const label = (row: Execution): string => (row.parent ? "child" : row.forked ? `fork at ${source(row)[1]}` : "");

/** The rows with each family together: newest family first as they come, members under the one that they hang on, oldest first. */
export function grouped(rows: Execution[]): Member[] {
  const known = new Set(rows.map((one) => one.execution_id));
  const below = new Map<string, Execution[]>();
  const roots: Execution[] = [];
  for (const row of rows) {
    const up = above(row);
    if (up && up !== row.execution_id && known.has(up)) below.set(up, [row, ...(below.get(up) ?? [])]);
    else roots.push(row);
  }
  const found: Member[] = [];
  const walk = (row: Execution, depth: number) => {
    found.push({ row, depth, as: depth ? label(row) : "" });
    for (const one of below.get(row.execution_id) ?? []) walk(one, depth + 1);
  };
  for (const one of roots) walk(one, 0);
  return found;
}

/** Everyone of the family that an execution belongs to, itself included; only itself: it has none. */
export function familyOf(rows: Execution[], id: string): Member[] {
  const byId = new Map(rows.map((one) => [one.execution_id, one]));
  let top = byId.get(id);
  for (let n = 0; top && byId.has(above(top)) && n < 32; n++) top = byId.get(above(top));
  if (!top) return [];
  const all = grouped(rows);
  const first = all.findIndex((one) => one.row === top);
  const found: Member[] = [];
  for (const one of all.slice(first)) {
    if (found.length && one.depth === 0) break;
    found.push(one);
  }
  return found;
}
