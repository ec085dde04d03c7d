import { Icon } from "../canvas/Icon";
import { useLive } from "../state/live";
import { useUi, type View } from "../state/ui";
import { act } from "./acts";
import { StepButton } from "./StepButton";

const MODES: { view: View; label: string }[] = [
  { view: "compose", label: "Compose" },
  { view: "watch", label: "Watch" },
  { view: "steer", label: "Steer" },
];

export function TopBar() {
  const { view, execution, go, theme, setTheme } = useUi();
  const detail = useLive((s) => s.detail);
  const live = useLive((s) => s.states[s.id]);
  const connection = useLive((s) => s.connection);
  const inside = Boolean(execution) && (view === "watch" || view === "steer");
  const can = detail?.can ?? [];
  const title = inside ? String(detail?.definition?.["name"] ?? detail?.execution.task ?? "").slice(0, 60) : "Treadle studio";
  return (
    <header className="topbar">
      <button className="brand" onClick={() => go("fleet", "")}>
        <Icon name="control" size={26} width={2} />
        <b>{title || "Treadle studio"}</b>
        {inside && <code>{execution.slice(0, 8)}</code>}
        <span className="unseen">all executions</span>
      </button>
      <nav className="modes" aria-label="Mode">
        {MODES.map((one) => (
          <button
            key={one.view}
            aria-current={view === one.view ? "page" : undefined}
            disabled={one.view !== "compose" && !execution}
            onClick={() => go(one.view)}
          >
            {one.label}
          </button>
        ))}
      </nav>
      <Liveness connection={connection} status={inside ? (live?.status ?? "") : ""} />
      <div className="controls">
        {inside && can.includes("pause") && <button onClick={() => act("pause")}>Pause</button>}
        {inside && can.includes("step") && <StepButton />}
        {inside && can.includes("resume") && <button className="go" onClick={() => act("resume")}>Resume</button>}
        {inside && can.includes("retry") && <button className="go" onClick={() => act("retry")}>Retry</button>}
        {inside && can.includes("cancel") && <button className="stop" onClick={() => act("cancel")}>Stop</button>}
        <button className="round" aria-label={theme === "dark" ? "Light theme" : "Dark theme"} onClick={() => setTheme(theme === "dark" ? "light" : "dark")}>
          <Icon name={theme === "dark" ? "sun" : "moon"} />
        </button>
      </div>
    </header>
  );
}

function Liveness({ connection, status }: { connection: string; status: string }) {
  if (connection === "locked") return <span className="live off"><i />Locked</span>;
  if (connection !== "live") return <span className="live off"><i />{connection === "lost" ? "Reconnecting" : "Connecting"}</span>;
  if (status === "waiting-input") return <span className="live you"><i />Your turn</span>;
  if (status === "running" || !status) return <span className="live"><i />Live</span>;
  return <span className="live rest"><i />{status}</span>;
}
