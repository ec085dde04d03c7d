// The dotted ground, a part of what is panned. It lies under everything, so that the browser keeps all of the canvas in one layer:
// nodes alone are too sparse for that, each would get its own, and moving two hundred layers costs more than a frame.
import { ViewportPortal } from "@xyflow/react";

export function Dots() {
  return (
    <ViewportPortal>
      <div className="dots" aria-hidden="true" />
    </ViewportPortal>
  );
}
