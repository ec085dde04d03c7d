// The one live region, and the short notes at the bottom.
import { useUi } from "../state/ui";

export function Announcer() {
  const said = useUi((s) => s.said);
  const toasts = useUi((s) => s.toasts);
  const drop = useUi((s) => s.drop);
  return (
    <>
      <div role="status" aria-live="polite" className="unseen">{said}</div>
      <div className="toasts" aria-hidden="true">
        {toasts.map((one) => (
          <button key={one.id} tabIndex={-1} className={`toast ${one.tone}`} onClick={() => drop(one.id)}>{one.text}</button>
        ))}
      </div>
    </>
  );
}
