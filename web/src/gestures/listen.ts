// The page's side of the recogniser: one set of listeners on the root; elements opt in with data-g="zone".
import { Recogniser, type Gesture } from "./recognise";
import { declares, deliver } from "./zones";

const NEAR = 28; // how far beside a zone the middle of two fingers may lie
const INTERACTIVE = ".react-flow__handle,button:not(.bead),input,select,textarea,a,[data-g]";
const DRAGGED = ".react-flow__handle,[data-palette],.grip";
const HEARD_AS_KEY_MS = 700;

/** The zone that an element belongs to; none where a control lies between. */
function zoneOf(target: EventTarget | null): string {
  return (target as Element | null)?.closest?.(INTERACTIVE)?.getAttribute("data-g") ?? "";
}

export function listen(root: HTMLElement): () => void {
  const near = (x: number, y: number): string => {
    for (const element of root.querySelectorAll("[data-g]")) {
      const box = element.getBoundingClientRect();
      if (x > box.left - NEAR && x < box.right + NEAR && y > box.top - NEAR && y < box.bottom + NEAR) return element.getAttribute("data-g") ?? "";
    }
    return "";
  };
  const it = new Recogniser(deliver, declares, near, { set: (run, ms) => window.setTimeout(run, ms), clear: (timer) => clearTimeout(timer) });
  let pressed = -Infinity; // when a key or a pointer has last been heard: the click that follows is no news
  let lastLong = -Infinity;
  const point = (e: PointerEvent) => ({ id: e.pointerId, x: e.clientX, y: e.clientY, at: e.timeStamp });
  const via = (e: PointerEvent) => e.pointerType as Gesture["via"];

  const down = (e: PointerEvent) => {
    pressed = e.timeStamp;
    if (e.pointerType === "mouse" && e.button !== 0) return;
    it.down(point(e), zoneOf(e.target), via(e), e.isPrimary);
  };
  const move = (e: PointerEvent) => it.move(point(e));
  const up = (e: PointerEvent) => it.up(point(e), e.type === "pointercancel");
  // d3-zoom reads touches: while a zone owns two fingers it must not see them.
  const guard = (e: TouchEvent) => {
    if (!it.holdsTwo) {
      // What is dragged from here is never a scroll. Left to itself the browser may take a quick one for a fling, and a tap that follows ends that and clicks nothing.
      if (e.type === "touchmove" && e.cancelable && (e.target as Element).closest(DRAGGED)) e.preventDefault();
      return;
    }
    e.stopPropagation();
    if (e.cancelable) e.preventDefault();
  };
  const wheel = (e: WheelEvent) => {
    if (!e.ctrlKey && !e.shiftKey) return;
    const zone = zoneOf(e.target);
    if (!zone) return;
    e.preventDefault();
    e.stopPropagation();
    it.wheel(zone, e.ctrlKey ? "scale" : "angle", e.deltaY || e.deltaX);
  };
  const key = (e: KeyboardEvent) => {
    const target = e.target as Element;
    if (e.ctrlKey || e.metaKey || target.closest("input:not([type=checkbox]),textarea,select,[contenteditable]")) return;
    const zone = target.getAttribute("data-g") ?? (target.classList.contains("react-flow__node") ? target.querySelector("[data-g]")?.getAttribute("data-g") : null) ?? "";
    if (!zone || !it.key(zone, e.key, { alt: e.altKey, shift: e.shiftKey })) return;
    pressed = e.timeStamp;
    e.preventDefault();
    e.stopPropagation();
  };
  const menu = (e: MouseEvent) => {
    const zone = zoneOf(e.target);
    if (!zone || !declares(zone, "longpress")) return;
    e.preventDefault();
    if (e.timeStamp - lastLong < 900) return;
    lastLong = e.timeStamp;
    it.menu(zone, e.button === 2 && (e as PointerEvent).pointerType !== "touch" ? "mouse" : "touch");
  };
  // Assistive technology clicks without a pointer or a key.
  const click = (e: MouseEvent) => {
    const zone = zoneOf(e.target);
    if (zone && e.detail === 0 && e.timeStamp - pressed > HEARD_AS_KEY_MS) it.key(zone, " ", { alt: false, shift: false });
  };
  const on = { capture: true, passive: false };
  const bindings: [EventTarget, string, EventListener][] = [
    [root, "pointerdown", down as EventListener], [window, "pointermove", move as EventListener], [window, "pointerup", up as EventListener],
    [window, "pointercancel", up as EventListener], [root, "touchstart", guard as EventListener], [root, "touchmove", guard as EventListener],
    [root, "wheel", wheel as EventListener], [root, "keydown", key as EventListener], [root, "contextmenu", menu as EventListener], [root, "click", click as EventListener],
  ];
  for (const [target, kind, run] of bindings) target.addEventListener(kind, run, on);
  return () => { for (const [target, kind, run] of bindings) target.removeEventListener(kind, run, on); };
}
