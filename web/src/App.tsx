import { lazy, Suspense, useEffect, useRef } from "react";
import { listen } from "./gestures/listen";
import { Broken } from "./parts/Broken";
import { Announcer } from "./parts/Announcer";
import { TopBar } from "./parts/TopBar";
import { follow, useLive } from "./state/live";
import { useUi } from "./state/ui";
import { FleetView } from "./views/FleetView";
import { WatchView } from "./views/WatchView";

// What a first look at a loop does not need comes when it is asked for.
const ComposeView = lazy(() => import("./views/ComposeView").then((found) => ({ default: found.ComposeView })));
const CompareView = lazy(() => import("./views/CompareView").then((found) => ({ default: found.CompareView })));

export function App() {
  const view = useUi((s) => s.view);
  const execution = useUi((s) => s.execution);
  const locked = useLive((s) => s.connection === "locked");
  const root = useRef<HTMLDivElement>(null);
  useEffect(follow, []);
  useEffect(() => listen(root.current!), []);
  useEffect(() => {
    if (execution !== useLive.getState().id) void useLive.getState().open(execution);
  }, [execution]);
  return (
    <div className="app" data-view={view} ref={root}>
      <TopBar />
      {locked && <p className="notice" role="alert">This page&rsquo;s link is no longer good: the studio was started anew. Open the link that it has printed, and this page goes on.</p>}
      <Broken key={view}>
        <Suspense fallback={<main className="empty" aria-busy="true" />}>
          {view === "fleet" && <FleetView />}
          {(view === "watch" || view === "steer") && <WatchView steering={view === "steer"} />}
          {view === "compose" && <ComposeView />}
          {view === "compare" && <CompareView />}
        </Suspense>
      </Broken>
      <Announcer />
    </div>
  );
}
