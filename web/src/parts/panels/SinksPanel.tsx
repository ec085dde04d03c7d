// Where the service tells what happens, besides this page: satellites that a person attaches and detaches.
import { useEffect, useState } from "react";
import { api, type Schemas } from "../../api/client";
import { said } from "../../state/live";
import { useUi } from "../../state/ui";
import { changed } from "../useSinks";

export function SinksPanel() {
  const [sinks, setSinks] = useState<Schemas["SinkOut"][]>([]);
  const toast = useUi((s) => s.toast);
  useEffect(() => { api.sinks().then(setSinks).catch((error: unknown) => toast("bad", said(error))); }, [toast]);
  const turn = async (name: string, attached: boolean) => {
    setSinks((old) => old.map((one) => (one.name === name ? { ...one, attached } : one)));
    try {
      const found = await api.setSink(name, attached);
      setSinks(found);
      changed(found);
      toast("you", attached ? `${name} is told from now on.` : `${name} is told no more.`);
    } catch (error) {
      setSinks((old) => old.map((one) => (one.name === name ? { ...one, attached: !attached } : one)));
      toast("bad", said(error));
    }
  };
  return (
    <ul className="sinkspanel">
      {sinks.map((one) => (
        <li key={one.name} className={one.attached ? "on" : ""}>
          <label><input type="checkbox" checked={one.attached} onChange={(e) => void turn(one.name, e.target.checked)} /><b>{one.name}</b><small>{one.where}</small></label>
        </li>
      ))}
      {sinks.length > 0 && !sinks.some((one) => one.attached) && <li className="quiet">none: only the ledger and this page</li>}
    </ul>
  );
}
