import "@fontsource-variable/inter/wght.css";
import "@fontsource-variable/jetbrains-mono/wght.css";
import "@xyflow/react/dist/style.css";
import "./style/tokens.css";
import "./style/app.css";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./App";
import { useLive } from "./state/live";
import { useUi } from "./state/ui";

document.documentElement.dataset["theme"] = useUi.getState().theme;
// Asked for before anything is drawn: the answer is on its way while React starts.
void useLive.getState().open(useUi.getState().execution);
createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <App />
  </StrictMode>,
);
