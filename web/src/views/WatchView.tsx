// One execution: canvas, inspector, timeline, history strip. Steer adds what a person can say to it.
import { useMemo } from "react";
import { Canvas } from "../canvas/Canvas";
import { PanelLayer } from "../canvas/PanelLayer";
import { useReactions } from "../gestures/reactions";
import { budget, project } from "../graph/project";
import { STATE_LABEL, type StateName } from "../graph/stages";
import { FamilyStrip } from "../parts/FamilyStrip";
import { HistoryStrip } from "../parts/HistoryStrip";
import { Inspector } from "../parts/Inspector";
import { Ring } from "../parts/Ring";
import { SteerPanel } from "../parts/SteerPanel";
import { BeadCard, Timeline } from "../parts/Timeline";
import { useCalls } from "../parts/useCalls";
import { useSinks } from "../parts/useSinks";
import { useLayout } from "../parts/useLayout";
import { useLive } from "../state/live";
import { useUi } from "../state/ui";
import { WatchPhone } from "./WatchPhone";
import { WorkflowWatch } from "./WorkflowWatch";

export function WatchView({ steering }: { steering: boolean }) {
  const layout = useLayout();
  const { detail, events, turns, rate, text, problem } = useLive();
  const live = useLive((s) => s.states[s.id]);
  const { execution, selected, select, go } = useUi();
  const calls = useCalls();
  const sinks = useSinks((s) => s.sinks);
  useReactions(detail, live);
  const picture = useMemo(
    () =>
      detail && live
        ? project({ detail, live, turns, events: Math.max(detail.head, events.at(-1)?.seq ?? 0), rate: rate.at(-1) ?? 0, saying: text, calls, sinks: sinks.map((one) => [one.name, one.attached]) })
        : null,
    [detail, live, turns, events, rate, text, calls, sinks],
  );
  const nodes = useMemo(() => picture?.nodes.map((one) => ({ ...one, selected: one.id === selected })) ?? [], [picture, selected]);
  if (!execution) {
    return (
      <main className="empty">
        <h2>No execution is open</h2>
        <button className="go" onClick={() => go("fleet", "")}>Choose one</button>
      </main>
    );
  }
  if (problem && !detail) {
    return (
      <main className="empty" role="alert">
        <h2>It cannot be shown</h2>
        <p>{problem}</p>
        <button onClick={() => go("fleet", "")}>All executions</button>
      </main>
    );
  }
  if (detail?.execution.kind === "workflow" && live) return <WorkflowWatch detail={detail} live={live} />;
  if (!detail || !live || !picture) return <main className="empty" aria-busy="true"><h2>Reading the records…</h2></main>;
  if (layout === "phone") return <WatchPhone detail={detail} live={live} calls={calls} steering={steering} />;
  const act = budget(detail, "turns of this act") ?? budget(detail, "turns of act");
  return (
    <>
    <FamilyStrip detail={detail} />
    <div className={`bench ${layout}`}>
      <main className="stagearea" aria-label="Canvas of the loop">
        <Canvas
          locked
          nodes={nodes}
          edges={picture.edges}
          over={<PanelLayer detail={detail} live={live} calls={calls} />}
          onSelectionChange={undefined}
          onPaneClick={() => select("")}
        />
      </main>
      <section className="inspector" aria-label="Inspector">
        {(steering || live.status === "waiting-input") && <SteerPanel detail={detail} live={live} />}
        {layout === "desk" && <Inspector detail={detail} live={live} calls={calls} />}
        {layout === "tablet" && (
          <div className="tabletrow">
            <Ring used={act?.used ?? 0} limit={act?.limit} label={STATE_LABEL[live.agent as StateName] ?? ""} size={112} />
            <Inspector detail={detail} live={live} calls={calls} />
          </div>
        )}
        <BeadCard />
      </section>
      <Timeline />
      <HistoryStrip detail={detail} turns={turns} />
    </div>
    </>
  );
}
