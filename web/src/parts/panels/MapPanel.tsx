// The map of the workspace: full is cyan, a skeleton brighter, the bare tree dim.
import { useEffect, useState } from "react";
import { api, type Schemas } from "../../api/client";
import { said, useLive } from "../../state/live";

type Entry = Schemas["MapOut"]["entries"][number];

export function MapPanel() {
  const id = useLive((s) => s.id);
  const [map, setMap] = useState<Schemas["MapOut"] | null>(null);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    let live = true;
    api.map(id).then((found) => { if (live) setMap(found); }).catch((error: unknown) => { if (live) setProblem(said(error)); });
    return () => { live = false; };
  }, [id]);
  if (!map) return <p className="quiet">{problem || "Reading the workspace…"}</p>;
  const folders = new Map<string, Entry[]>();
  for (const one of map.entries) {
    const folder = one.path.includes("/") ? one.path.slice(0, one.path.lastIndexOf("/") + 1) : "";
    folders.set(folder, [...(folders.get(folder) ?? []), one]);
  }
  return (
    <div className="mappanel">
      <p className="quiet">{map.modality} · {map.tokens.toLocaleString("en")} of {map.budget.toLocaleString("en")} tokens{map.on ? "" : " · not shown to this loop's model"}</p>
      <ul aria-label="Files of the map">
        {[...folders].map(([folder, files]) => (
          <li key={folder}>
            {folder && <code className="folder">{folder}</code>}
            <ul>{files.map((one) => <li key={one.path} className={one.level}><i /><code>{one.path.slice(folder.length)}</code><em>{one.level}{one.definitions ? ` · ${one.definitions}` : ""}</em></li>)}</ul>
          </li>
        ))}
      </ul>
      {map.files_left > 0 && <p className="quiet">and {map.files_left.toLocaleString("en")} more, not loaded</p>}
    </div>
  );
}
