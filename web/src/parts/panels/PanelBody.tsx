// What the open panel shows, the same on a desk, a tablet and a phone.
import { useEffect, useRef } from "react";
import type { Detail, LiveState } from "../../api/client";
import { Icon } from "../../canvas/Icon";
import { PANEL_LABEL, usePanel } from "../../state/panel";
import type { SeenCall } from "../useCalls";
import { MapPanel } from "./MapPanel";
import { PlanPanel } from "./PlanPanel";
import { CallPanel, OutcomePanel, OutputPanel, PinPanel } from "./Results";
import { RingPanel } from "./RingPanel";
import { SinksPanel } from "./SinksPanel";
import { BandsPanel, DialsPanel } from "./Sliders";
import { PromptPanel, RatioPanel } from "./Window";

export interface PanelProps { detail: Detail; live: LiveState; calls: SeenCall[] }

export function PanelBody({ detail, live, calls }: PanelProps) {
  const { kind, node, id, close } = usePanel();
  const box = useRef<HTMLElement>(null);
  useEffect(() => {
    if (kind) box.current?.focus({ preventScroll: true });
  }, [kind, id]);
  useEffect(() => {
    const escape = (event: KeyboardEvent) => { if (event.key === "Escape") close(); };
    addEventListener("keydown", escape);
    return () => removeEventListener("keydown", escape);
  }, [close]);
  useEffect(() => close, [close]);
  if (!kind) return null;
  const call = calls.find((one) => one.id === id);
  return (
    <section className={`panel panel-${kind} nopan nowheel nodrag`} data-panel={kind} role="dialog" aria-label={PANEL_LABEL[kind]} tabIndex={-1} ref={box}>
      <header><h3>{PANEL_LABEL[kind]}</h3><button className="round" aria-label="Close" onClick={close}><Icon name="cross" size={15} /></button></header>
      {kind === "ring" && <RingPanel detail={detail} />}
      {kind === "bands" && <BandsPanel detail={detail} />}
      {kind === "map" && <MapPanel />}
      {kind === "plan" && <PlanPanel detail={detail} />}
      {kind === "dials" && <DialsPanel detail={detail} />}
      {kind === "prompt" && <PromptPanel />}
      {kind === "ratio" && <RatioPanel />}
      {kind === "outcome" && <OutcomePanel detail={detail} live={live} node={node} />}
      {kind === "sinks" && <SinksPanel />}
      {kind === "call" && <CallPanel call={call} />}
      {kind === "output" && <OutputPanel call={call} />}
      {kind === "pin" && <PinPanel seq={Number(id)} detail={detail} />}
    </section>
  );
}
