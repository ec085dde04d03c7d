import { useEffect, useRef } from "react";
import { listen } from "./gestures/listen";
import { Announcer } from "./parts/Announcer";
import { TopBar } from "./parts/TopBar";
import { follow, useLive } from "./state/live";
import { useUi } from "./state/ui";
import { CompareView } from "./views/CompareView";
import { ComposeView } from "./views/ComposeView";
import { FleetView } from "./views/FleetView";
import { WatchView } from "./views/WatchView";

export function App() {
  const view = useUi((s) => s.view);
  const execution = useUi((s) => s.execution);
  const root = useRef<HTMLDivElement>(null);
  useEffect(follow, []);
  useEffect(() => listen(root.current!), []);
  useEffect(() => {
    if (execution !== useLive.getState().id) void useLive.getState().open(execution);
  }, [execution]);
  return (
    <div className="app" data-view={view} ref={root}>
      <TopBar />
      {view === "fleet" && <FleetView />}
      {(view === "watch" || view === "steer") && <WatchView steering={view === "steer"} />}
      {view === "compose" && <ComposeView />}
      {view === "compare" && <CompareView />}
      <Announcer />
    </div>
  );
}
