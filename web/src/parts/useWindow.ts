// What fills the context window now: read anew after each response, compaction and change of limits.
import { useEffect, useState } from "react";
import { api, type Schemas } from "../api/client";
import { painted, said, useLive } from "../state/live";

const STALE = new Set(["model.responded", "compacted", "compaction.requested", "compaction.judged", "compaction.failed", "extended", "model.intended"]);

export function useWindow(): { window: Schemas["WindowOut"] | null; problem: string } {
  const id = useLive((s) => s.id);
  const mark = useLive((s) => s.events.findLast((one) => STALE.has(one.kind))?.seq ?? 0);
  // The stream tells of a record a moment before it is committed: what was read that soon is read again once the ledger has it.
  const committed = useLive((s) => (s.detail?.head ?? 0) >= mark);
  const [window, setWindow] = useState<Schemas["WindowOut"] | null>(null);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    let live = true;
    painted()
      .then(() => api.window(id))
      .then((found) => { if (live) { setWindow(found); setProblem(""); } })
      .catch((error: unknown) => { if (live) setProblem(said(error)); });
    return () => { live = false; };
  }, [id, mark, committed]);
  return { window, problem };
}
