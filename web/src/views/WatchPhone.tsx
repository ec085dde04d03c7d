// Watch on a phone: the loop as a line with a big turn ring; Steer as a sheet at thumb height.
import type { Detail, LiveState } from "../api/client";
import { Icon, type IconName } from "../canvas/Icon";
import { budget } from "../graph/project";
import { STATE_LABEL, type StateName } from "../graph/stages";
import { act } from "../parts/acts";
import { FamilyStrip } from "../parts/FamilyStrip";
import { HistoryStrip } from "../parts/HistoryStrip";
import { Body, WORDS } from "../parts/Inspector";
import { PanelBody } from "../parts/panels/PanelBody";
import { PlanSteps } from "../parts/PlanSteps";
import { Ring } from "../parts/Ring";
import { StepButton } from "../parts/StepButton";
import { SteerPanel } from "../parts/SteerPanel";
import { BeadCard, Timeline } from "../parts/Timeline";
import type { SeenCall } from "../parts/useCalls";
import { plain, waiting } from "../parts/words";
import { usePanel } from "../state/panel";
import { useLive } from "../state/live";
import { useUi } from "../state/ui";

/** Lines that open, at a tap, what a desk shows beside the canvas. */
const OPENS = new Set(["act", "verify", "foundation", "hub", "learn"]);

export function WatchPhone({ detail, live, calls, steering }: { detail: Detail; live: LiveState; calls: SeenCall[]; steering: boolean }) {
  const { go, selected } = useUi();
  const events = useLive((s) => s.events);
  const turns = useLive((s) => s.turns);
  const panel = usePanel((s) => s.kind);
  const locked = Boolean(detail.plan?.needs_approval && !detail.plan.approved);
  const cap = budget(detail, "turns of this act") ?? budget(detail, "turns of act");
  const running = live.status === "running";
  const ended = !running && live.status !== "paused" && live.status !== "waiting-input";
  const lines: { id: string; icon: IconName; label: string; sub: string; tone: string }[] = [
    { id: "perceive", icon: "perceive", label: "Context map", sub: "spread to open it", tone: "" },
    { id: "reason", icon: "reason", label: "Reason", sub: live.step === "calling" ? "the model answers" : `turn ${live.turns}`, tone: running && live.step === "calling" ? "run" : "ok" },
    { id: "act", icon: "act", label: "Tools", sub: calls.map((one) => one.name).join(", ") || "no calls yet", tone: running && live.step === "tools" ? "run" : "ok" },
    { id: "verify", icon: "verify", label: "Check", sub: `round ${live.round} of ${budget(detail, "rounds")?.limit}`, tone: live.phase === "evaluate" && running ? "run" : "" },
    { id: "foundation", icon: "foundation", label: "Foundation", sub: String(detail.definition?.["model"] ?? ""), tone: "" },
    { id: "hub", icon: "control", label: "Control hub", sub: `${detail.guards.length} guards · hold to pin`, tone: "" },
    { id: "telemetry", icon: "pulse", label: "Telemetry", sub: "tap for sinks, spread for the fleet", tone: "" },
    ...(!ended ? [] : [{ id: live.status === "done" ? "completed" : "failed", icon: (live.status === "done" ? "check" : "cross") as IconName, label: live.status === "done" ? "Completed" : "Failed", sub: detail.rest.label, tone: live.status === "done" ? "ok" : "" }]),
    { id: "learn", icon: "learn", label: "Session log", sub: `${Math.max(detail.head, events.at(-1)?.seq ?? 0)} events`, tone: "" },
  ];
  const sheet = !panel && (steering || live.status === "waiting-input");
  return (
    <div className="phone">
      <FamilyStrip detail={detail} />
      <main>
        <h1 className="phonetitle">{String(detail.definition?.["name"] ?? detail.execution.task).slice(0, 120)}</h1>
        <div className="bigring" data-g="executing" tabIndex={0} role="group" aria-label="Executing: minus for iterations, H for warning bands">
          <Ring used={cap?.used ?? 0} limit={cap?.limit} label={running ? (STATE_LABEL[live.agent as StateName] ?? "") : (WORDS[live.status ?? ""] ?? live.status ?? "")} size={190} />
          {detail.plan?.needs_approval && (
            <button className={`padlock ${locked ? "locked" : "open"} ${detail.plan.request_id ? "asks" : ""}`} data-g="padlock" aria-label={locked ? "Approve the plan" : "The plan is approved"}>
              <Icon name={locked ? "lock" : "unlock"} size={18} />
            </button>
          )}
        </div>
        <p className="why">{running ? waiting(detail.execution) : detail.plan?.request_id ? "A plan waits for your decision." : plain(detail.rest.why)}</p>
        <PlanSteps detail={detail} />
        <ul className="line">
          {lines.map((one) => (
            <li key={one.id}>
              <button data-g={one.id} aria-expanded={OPENS.has(one.id) ? selected === one.id : undefined}>
                <Icon name={one.icon} /><span><b>{one.label}</b><small>{one.sub}</small></span><i className={one.tone} />
              </button>
              {selected === one.id && OPENS.has(one.id) && <div className="opened"><Body id={one.id} detail={detail} live={live} calls={calls} /></div>}
            </li>
          ))}
        </ul>
        <div className="phonelog"><BeadCard /><Timeline shown={8} /></div>
        <HistoryStrip detail={detail} turns={turns} />
      </main>
      {panel && <section className="sheet panelsheet"><span className="grab" /><PanelBody detail={detail} live={live} calls={calls} /></section>}
      {sheet && (
        <section className="sheet" aria-label="Steer">
          <span className="grab" />
          <SteerPanel detail={detail} live={live} />
        </section>
      )}
      <nav className="dock" aria-label="Controls">
        {detail.can.includes("pause") && <button onClick={() => void act("pause")}>Pause</button>}
        {detail.can.includes("step") && <StepButton />}
        {detail.can.includes("resume") && <button onClick={() => void act("resume")}>Resume</button>}
        <button className={steering ? "" : "you"} onClick={() => go(steering ? "watch" : "steer")}>{steering ? "Watch" : "Steer"}</button>
        {detail.can.includes("cancel") && <button className="stop" onClick={() => void act("cancel")}>Stop</button>}
      </nav>
    </div>
  );
}
