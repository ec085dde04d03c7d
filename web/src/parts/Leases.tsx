// What the acting agent may touch: granted or revoked by hand. It bites before the next tool call.
import { useEffect, useState } from "react";
import { api, type Schemas } from "../api/client";
import { said } from "../state/live";
import { useUi } from "../state/ui";
import { act } from "./acts";

export function Leases({ id, head }: { id: string; head: number }) {
  const [open, setOpen] = useState(false);
  const [found, setFound] = useState<Schemas["LeasesOut"] | null>(null);
  const [capability, setCapability] = useState("");
  const [scope, setScope] = useState("loop");
  const toast = useUi((s) => s.toast);
  useEffect(() => {
    if (!open) return;
    let live = true;
    api.leases(id).then((one) => { if (live) setFound(one); }).catch((error: unknown) => toast("bad", said(error)));
    return () => { live = false; };
  }, [id, head, open, toast]);
  const change = (op: "grant" | "revoke") => void act("leases", { op, capability: capability.trim(), scope }).then((done) => { if (done) setCapability(""); });
  return (
    <section className="leases" aria-label="Leases">
      <button className="fold" aria-expanded={open} onClick={() => setOpen(!open)}>What it may touch<em>{found && open ? found.leases.length : ""}</em></button>
      {open && (
        <>
          <ul>
            {found?.ceiling && <li className="quiet">at most {found.ceiling.join(", ") || "nothing"}</li>}
            {found && !found.leases.length && <li className="quiet">what its definition allows; nothing was changed</li>}
            {found?.leases.map((one) => (
              <li key={one.id} className={one.expired ? "expired" : one.op}>
                <i /><code>{one.capability}</code>
                <small>{one.expired ? "expired" : one.op === "grant" ? "granted" : "revoked"}{one.scope === "loop" ? "" : ` for this ${one.scope}`} · by {one.by}</small>
              </li>
            ))}
          </ul>
          <div className="row">
            <input aria-label="Capability" placeholder="fs.write:src/**" value={capability} onChange={(e) => setCapability(e.target.value)} />
            <select aria-label="For how long" value={scope} onChange={(e) => setScope(e.target.value)}>
              <option value="loop">this loop</option><option value="step">this step</option><option value="turn">this turn</option>
            </select>
          </div>
          <div className="row">
            <button disabled={!capability.trim()} onClick={() => change("grant")}>Grant</button>
            <button className="stop" disabled={!capability.trim()} onClick={() => change("revoke")}>Revoke</button>
          </div>
        </>
      )}
    </section>
  );
}
