// Editing the plan: words, order by dragging a row or Alt and the arrows, new steps, steps left out. Saved as another plan.
import { useEffect, useRef, useState } from "react";
import type { Detail } from "../../api/client";
import { Icon } from "../../canvas/Icon";
import { usePanel } from "../../state/panel";
import { act } from "../acts";

interface Row { key: number; id: string; title: string; status: string }
let keys = 0;

export function PlanPanel({ detail }: { detail: Detail }) {
  const plan = detail.plan;
  const [digest] = useState(plan?.digest ?? "");
  const [rows, setRows] = useState<Row[]>(() => (plan?.steps ?? []).map((one) => ({ key: ++keys, id: one.id, title: one.text, status: one.status ?? "pending" })));
  const list = useRef<HTMLOListElement>(null);
  const [held, setHeld] = useState(0);
  const close = usePanel((s) => s.close);
  const put = (key: number, to: number) => setRows((old) => {
    const row = old.find((one) => one.key === key)!;
    const rest = old.filter((one) => one.key !== key);
    const at = Math.max(0, Math.min(rest.length, to));
    return [...rest.slice(0, at), row, ...rest.slice(at)];
  });
  // Heard on the window: a row that is moved in the page loses the pointer that it had captured.
  useEffect(() => {
    if (!held) return;
    const move = (event: PointerEvent) => setRows((old) => {
      const row = old.find((one) => one.key === held)!;
      const above = over(event.clientY);
      const rest = old.filter((one) => one !== row);
      const at = Math.min(rest.length, old.indexOf(row) < above ? above - 1 : above);
      return [...rest.slice(0, at), row, ...rest.slice(at)];
    });
    const end = () => setHeld(0);
    addEventListener("pointermove", move);
    addEventListener("pointerup", end);
    addEventListener("pointercancel", end);
    return () => { removeEventListener("pointermove", move); removeEventListener("pointerup", end); removeEventListener("pointercancel", end); };
  }, [held]);
  const over = (y: number) => [...(list.current?.children ?? [])].filter((one) => { const box = one.getBoundingClientRect(); return y > box.top + box.height / 2; }).length;
  const save = () => {
    const known = new Map((plan?.steps ?? []).map((one) => [one.id, one]));
    const used = new Set(rows.map((one) => one.id).filter(Boolean));
    let next = 1;
    const fresh = () => { while (used.has(String(next))) next++; used.add(String(next)); return String(next); };
    const kept = new Set(rows.map((one) => one.id));
    const steps = rows.filter((one) => one.title.trim()).map((one) => ({
      id: one.id || fresh(),
      title: one.title,
      ...(known.get(one.id)?.call ? { check: known.get(one.id)!.call } : {}),
      after: (known.get(one.id)?.after ?? []).filter((id) => kept.has(id)),
    }));
    void act("plan", { steps, digest }).then((taken) => { if (taken) close(); });
  };
  return (
    <div className="planpanel">
      <ol ref={list} aria-label="Steps, in order">
        {rows.map((row, n) => (
          <li key={row.key} className={`${row.status} ${held === row.key ? "held" : ""}`}>
            <button
              className="grip"
              aria-label={`Move step ${n + 1}: Alt and arrows, or drag`}
              onPointerDown={() => setHeld(row.key)}
              onKeyDown={(e) => { const by = { ArrowUp: -1, ArrowDown: 1 }[e.key]; if (by) { e.preventDefault(); put(row.key, n + by); } }}
            >
              <i />
            </button>
            <input aria-label={`Step ${n + 1}`} value={row.title} maxLength={200} onChange={(e) => setRows(rows.map((one) => (one.key === row.key ? { ...one, title: e.target.value } : one)))} />
            <button className="drop" aria-label={`Leave step ${n + 1} out`} onClick={() => setRows(rows.filter((one) => one.key !== row.key))}><Icon name="cross" size={14} /></button>
          </li>
        ))}
      </ol>
      <div className="row">
        <button onClick={() => setRows([...rows, { key: ++keys, id: "", title: "", status: "pending" }])}>Add a step</button>
        <button className="you" disabled={!rows.some((one) => one.title.trim())} onClick={save}>Save the plan</button>
      </div>
      {plan?.needs_approval && <p className="quiet">A changed plan waits for your approval anew.</p>}
    </div>
  );
}
