// The family of the open execution as a line of links: who forked it, what it has forked, which forks share its past.
import { useEffect, useMemo } from "react";
import type { Detail } from "../api/client";
import { familyOf } from "../graph/family";
import { painted, useLive } from "../state/live";
import { useUi } from "../state/ui";

export function FamilyStrip({ detail }: { detail: Detail }) {
  const { fleet, states, loadFleet } = useLive();
  const go = useUi((s) => s.go);
  const view = useUi((s) => s.view);
  const { execution_id: id, children = [] } = detail.execution;
  // After the first picture, and again when it has forked another.
  useEffect(() => { painted().then(loadFleet).catch(() => undefined); }, [id, children.length, loadFleet]);
  const family = useMemo(() => familyOf(fleet?.executions ?? [], id), [fleet, id]);
  if (family.length < 2) return null;
  const named = new Map(family.flatMap(({ row }) => (row.children ?? []).map((one) => [one.execution_id, one.name] as const)));
  return (
    <nav className="family" aria-label="Family">
      {family.map(({ row, depth, as }) => {
        const status = states[row.execution_id]?.status ?? row.status;
        const name = named.get(row.execution_id) ?? row.task.slice(0, 40);
        return (
          <button
            key={row.execution_id}
            className={`kin ${status === row.status ? row.colour : status === "running" ? "blue" : "grey"}`}
            style={{ ["--depth" as string]: depth }}
            aria-current={row.execution_id === id ? "page" : undefined}
            aria-label={`${as || "first"}: ${name}, ${status}`}
            onClick={() => go(view === "steer" ? "steer" : "watch", row.execution_id)}
          >
            <i /><b>{name || row.execution_id.slice(0, 8)}</b><small>{as ? `${as} · ` : ""}{status}</small>
          </button>
        );
      })}
    </nav>
  );
}
