// Values that a person retunes by sliding: warning bands, content ratio, guards. Sent when the slider is let go.
import { useEffect, useState } from "react";
import type { Detail } from "../../api/client";
import { Dial } from "../../canvas/nodes/HubNode";
import { budget } from "../../graph/project";
import { act } from "../acts";

interface SliderProps { label: string; value: number; least: number; most: number; unit?: string; off?: boolean; commit(value: number): void }

export function Slider({ label, value, least, most, unit = "", off = false, commit }: SliderProps) {
  const [now, setNow] = useState(value);
  useEffect(() => setNow(value), [value]);
  const done = () => { if (now !== value) commit(now); };
  return (
    <label className="slider">
      <span>{label}</span><b>{off && now === 0 ? "off" : `${now}${unit}`}</b>
      <input type="range" min={least} max={most} value={now} aria-label={label} onChange={(e) => setNow(Number(e.target.value))} onPointerUp={done} onKeyUp={done} onBlur={done} />
    </label>
  );
}

export interface BandsProps { bands: number[]; cap: number | null; commit(bands: number[]): void }

export function Bands({ bands, cap, commit }: BandsProps) {
  const sorted = [...bands].sort((a, b) => a - b);
  return (
    <div className="bandspanel">
      {sorted.map((one, n) => (
        <Slider key={n} label={n === 0 ? "Warn the model at" : "Again at"} value={one} least={1} most={99} unit=" %" commit={(value) => commit(sorted.map((old, at) => (at === n ? value : old)))} />
      ))}
      {cap !== null && <p className="quiet">{sorted.map((one) => `turn ${Math.ceil((cap * one) / 100)}`).join(", ")} of {cap}</p>}
    </div>
  );
}

export function BandsPanel({ detail }: { detail: Detail }) {
  const bands = (detail.settings["act_agent"] as { bands?: number[] } | undefined)?.bands ?? [80, 90];
  const cap = (budget(detail, "turns of this act") ?? budget(detail, "turns of act"))?.limit ?? null;
  return <Bands bands={bands} cap={cap} commit={(warn_at) => void act("extend", { warn_at })} />;
}

export function DialsPanel({ detail }: { detail: Detail }) {
  return (
    <ul className="dialspanel">
      {detail.guards.map((one) => (
        <li key={one.name} data-guard={one.name} className={one.count >= one.threshold ? "tripped" : ""}>
          <Dial guard={one} size={46} />
          <Slider label={one.label} value={one.threshold} least={1} most={Math.max(40, one.threshold)} commit={(value) => void act("extend", { guards: { [one.name]: value } })} />
        </li>
      ))}
    </ul>
  );
}
