// One turn, then it is held; held longer (or with Shift, or by the menu key) it is one round.
import { useGestures } from "../gestures/zones";
import { act } from "./acts";

export function StepButton() {
  useGestures("stepper", { tap: () => void act("step"), longpress: () => void act("step", { unit: "round" }) });
  return (
    <button className="step" data-g="stepper" title="One turn or check, then it is held. Hold, or H: to the end of the round." aria-label="Step: one turn or check, then it is held. H: to the end of the round.">
      Step
    </button>
  );
}
