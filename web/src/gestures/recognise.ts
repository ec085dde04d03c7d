// Which gesture a stream of pointers is. Pure: no page, no clock but the times that come with the points; `listen.ts` feeds it.
// The zone under the first finger owns the gesture, the second may land anywhere; two that straddle a zone are its own.
export type Kind = "tap" | "doubletap" | "longpress" | "pinch" | "spread" | "rotate" | "flick";
export type Direction = "left" | "right" | "up" | "down";
export type Phase = "move" | "end";
export interface Gesture {
  kind: Kind;
  zone: string;
  phase: Phase; // of what two fingers do; all else has ended when it is told
  scale: number;
  angle: number; // degrees since it began, clockwise
  direction: Direction | "";
  via: "touch" | "pen" | "mouse" | "wheel" | "key";
}
export interface Point { id: number; x: number; y: number; at: number }
export interface Timers { set(run: () => void, ms: number): number; clear(timer: number): void }
interface Finger extends Point { x0: number; y0: number; trail: Point[] }

export const LIMIT = { long: 480, slop: 10, double: 250, doubleApart: 28, flickSpeed: 0.45, flickLeast: 32, scale: Math.log(1.12), angle: 10 };

export class Recogniser {
  private readonly fingers = new Map<number, Finger>();
  private owner = "";
  private via: Gesture["via"] = "touch";
  private moved = false;
  private over = false; // this touch has said what it had to say
  private timer = 0;
  private waiting: { timer: number; zone: string; x: number; y: number; at: number } | null = null;
  private told: { zone: string; x: number; y: number; at: number } | null = null; // the tap for whose second one the wait is over
  private pair: { distance: number; last: number; turned: number; lock: "scale" | "angle" | ""; scale: number } | null = null;

  /** `declares`: whether a zone listens to a kind. A tap waits for its second one only where both are declared. */
  constructor(
    private readonly emit: (gesture: Gesture) => void,
    private readonly declares: (zone: string, kind: Kind) => boolean,
    private readonly zoneNear: (x: number, y: number) => string,
    private readonly timers: Timers,
  ) {}

  /** Whether a zone owns two fingers now: nobody else may read them then. */
  get holdsTwo(): boolean {
    return this.owner !== "" && this.fingers.size > 1;
  }

  down(point: Point, zone: string, via: Gesture["via"], primary: boolean): void {
    if (primary) this.reset(); // heals itself after an end that never came
    this.fingers.set(point.id, { ...point, x0: point.x, y0: point.y, trail: [point] });
    this.via = via;
    if (this.fingers.size === 1) {
      this.owner = zone;
      if (zone) this.timer = this.timers.set(() => this.long(), LIMIT.long);
      return;
    }
    this.timers.clear(this.timer);
    if (this.fingers.size !== 2 || this.over) return;
    const [a, b] = [...this.fingers.values()] as [Finger, Finger];
    this.owner ||= this.zoneNear((a.x + b.x) / 2, (a.y + b.y) / 2);
    if (!this.owner) return;
    const { distance, angle } = between(a, b);
    this.pair = { distance, last: angle, turned: 0, lock: "", scale: 1 };
  }

  move(point: Point): void {
    const finger = this.fingers.get(point.id);
    if (!finger) return;
    Object.assign(finger, point);
    finger.trail = [...finger.trail.slice(-11), point];
    if (!this.moved && Math.hypot(finger.x - finger.x0, finger.y - finger.y0) > LIMIT.slop) {
      this.moved = true;
      this.timers.clear(this.timer);
    }
    const pair = this.pair;
    if (!pair || this.fingers.size !== 2) return;
    const [a, b] = [...this.fingers.values()] as [Finger, Finger];
    const now = between(a, b);
    let by = now.angle - pair.last;
    if (by > 180) by -= 360;
    if (by < -180) by += 360;
    pair.turned += by;
    pair.last = now.angle;
    pair.scale = now.distance / pair.distance;
    if (!pair.lock) {
      const scaled = Math.abs(Math.log(pair.scale)) / LIMIT.scale;
      const turned = Math.abs(pair.turned) / LIMIT.angle;
      if (Math.max(scaled, turned) < 1) return;
      pair.lock = scaled >= turned ? "scale" : "angle"; // whichever passes its threshold first
    }
    this.tellPair("move");
  }

  up(point: Point, cancelled = false): void {
    const finger = this.fingers.get(point.id);
    if (!finger) return;
    if (this.pair?.lock && this.fingers.size === 2) {
      this.tellPair("end");
      this.over = true;
    } else if (this.pair) this.over = true;
    if (this.fingers.size === 1 && this.owner && !this.over && !cancelled) this.one(finger, point);
    this.fingers.delete(point.id);
    this.timers.clear(this.timer);
    this.pair = null;
    if (this.fingers.size === 0) this.reset();
  }

  /** Android's long press and the right button: both arrive as a context menu. */
  menu(zone: string, via: Gesture["via"]): void {
    if (this.over && this.fingers.size) return;
    this.over = true;
    this.timers.clear(this.timer);
    this.tell("longpress", zone, { via });
  }

  wheel(zone: string, form: "scale" | "angle", delta: number): void {
    if (form === "angle") return this.tell("rotate", zone, { angle: Math.sign(delta) * 25, via: "wheel" });
    this.tell(delta > 0 ? "pinch" : "spread", zone, { scale: delta > 0 ? 0.8 : 1.25, via: "wheel" });
  }

  /** The keyboard's form of a gesture; false where the key is none or nobody listens. */
  key(zone: string, key: string, mods: { alt: boolean; shift: boolean }): boolean {
    const found = ofKey(key, mods);
    if (!found) return false;
    const kind = found.kind === "doubletap" && !this.declares(zone, "doubletap") ? "tap" : found.kind;
    if (!this.declares(zone, kind)) return false;
    this.tell(kind, zone, { ...found, via: "key" });
    return true;
  }

  private one(finger: Finger, point: Point): void {
    const from = finger.trail.find((one) => point.at - one.at < 90) ?? finger.trail[0]!;
    const took = Math.max(1, point.at - from.at);
    const [dx, dy] = [point.x - finger.x0, point.y - finger.y0];
    const across = Math.abs(dx) > Math.abs(dy);
    const speed = Math.abs(across ? point.x - from.x : point.y - from.y) / took;
    const far = Math.abs(across ? dx : dy);
    // A mouse is dragged and let go; it need not be thrown.
    const quick = this.via === "mouse" ? far > LIMIT.flickLeast : speed > LIMIT.flickSpeed && far > LIMIT.flickLeast;
    if (quick) {
      const direction: Direction = across ? (dx > 0 ? "right" : "left") : dy > 0 ? "down" : "up";
      return this.tell("flick", this.owner, { direction });
    }
    if (!this.moved) this.tapped(point);
  }

  private tapped(point: Point): void {
    // A page that is busy hears of a quick second tap when its wait is over: what counts is when the finger tapped.
    const late = this.told && point.at - this.told.at < LIMIT.double ? this.told : null;
    const before = this.waiting ?? late;
    const zone = this.owner;
    if (before && before.zone === zone && Math.hypot(point.x - before.x, point.y - before.y) < LIMIT.doubleApart) {
      if (this.waiting) this.timers.clear(this.waiting.timer);
      this.waiting = this.told = null;
      return this.tell("doubletap", zone);
    }
    const both = this.declares(zone, "doubletap");
    if (!both) return this.tell("tap", zone);
    const via = this.via;
    const timer = this.timers.set(() => {
      this.waiting = null;
      this.told = { zone, x: point.x, y: point.y, at: point.at };
      this.tell("tap", zone, { via });
    }, LIMIT.double);
    this.waiting = { timer, zone, x: point.x, y: point.y, at: point.at };
  }

  private long(): void {
    if (this.moved || this.over || this.fingers.size !== 1 || !this.declares(this.owner, "longpress")) return;
    this.over = true; // where nobody listens to a long press, a second finger may still come
    this.tell("longpress", this.owner);
  }

  private tellPair(phase: Phase): void {
    const pair = this.pair!;
    const kind: Kind = pair.lock === "angle" ? "rotate" : pair.scale < 1 ? "pinch" : "spread";
    this.tell(kind, this.owner, { phase, scale: pair.scale, angle: pair.turned });
  }

  private tell(kind: Kind, zone: string, more: Partial<Gesture> = {}): void {
    this.emit({ phase: "end", scale: 1, angle: 0, direction: "", via: this.via, ...more, kind, zone });
  }

  private reset(): void {
    this.timers.clear(this.timer);
    this.fingers.clear();
    this.owner = "";
    this.pair = null;
    this.moved = this.over = false;
  }
}

function between(a: Point, b: Point): { distance: number; angle: number } {
  return { distance: Math.hypot(b.x - a.x, b.y - a.y) || 1, angle: (Math.atan2(b.y - a.y, b.x - a.x) * 180) / Math.PI };
}

function ofKey(key: string, { alt, shift }: { alt: boolean; shift: boolean }): (Partial<Gesture> & { kind: Kind }) | null {
  if (alt) return key.startsWith("Arrow") ? { kind: "flick", direction: key.slice(5).toLowerCase() as Direction } : null;
  switch (key) {
    case "-":
      return { kind: "pinch", scale: 0.8 };
    case "+":
    case "=":
      return { kind: "spread", scale: 1.25 };
    case "[":
    case "]":
      return { kind: "rotate", angle: key === "[" ? -25 : 25 };
    case "h":
    case "H":
    case "ContextMenu":
      return { kind: "longpress" };
    case "F10":
      return shift ? { kind: "longpress" } : null;
    case "Enter":
      return { kind: "doubletap" };
    case " ":
      return { kind: "tap" };
    default:
      return null;
  }
}
