import { describe, expect, it } from "vitest";
import { Recogniser, type Gesture, type Kind } from "./recognise";

function setting(declared: Kind[] = ["tap"], near = "") {
  const told: Gesture[] = [];
  const timers: { run: () => void; ms: number }[] = [];
  const recogniser = new Recogniser((one) => told.push(one), (_, kind) => declared.includes(kind), () => near, {
    set: (run, ms) => timers.push({ run, ms }),
    clear: (timer) => { if (timers[timer - 1]) timers[timer - 1] = { run: () => undefined, ms: -1 }; },
  });
  const kinds = () => told.map((one) => one.kind + (one.direction ? `:${one.direction}` : ""));
  const two = (from: number[], to: number[], zone = "a", second = "") => {
    recogniser.down({ id: 1, x: from[0]!, y: from[1]!, at: 0 }, zone, "touch", true);
    recogniser.down({ id: 2, x: from[2]!, y: from[3]!, at: 5 }, second, "touch", false);
    for (let n = 1; n <= 10; n++) {
      const at = (index: number) => from[index]! + ((to[index]! - from[index]!) * n) / 10;
      recogniser.move({ id: 1, x: at(0), y: at(1), at: n * 10 });
      recogniser.move({ id: 2, x: at(2), y: at(3), at: n * 10 });
    }
    recogniser.up({ id: 1, x: to[0]!, y: to[1]!, at: 120 });
    recogniser.up({ id: 2, x: to[2]!, y: to[3]!, at: 121 });
  };
  const touch = (x: number, y: number, from: number, path: [number, number, number][] = []) => {
    recogniser.down({ id: 1, x, y, at: from }, "a", "touch", true);
    for (const [px, py, at] of path) recogniser.move({ id: 1, x: px, y: py, at });
    const [lx, ly, at] = path.at(-1) ?? [x, y, from + 30];
    recogniser.up({ id: 1, x: lx, y: ly, at: at + 5 });
  };
  return { recogniser, told, timers, kinds, two, touch };
}

describe("two fingers", () => {
  it("pinch where they come together, and end once", () => {
    const { two, told } = setting();
    two([0, 0, 100, 0], [30, 0, 70, 0]);
    expect(new Set(told.map((one) => one.kind))).toEqual(new Set(["pinch"]));
    expect(told.filter((one) => one.phase === "end")).toHaveLength(1);
    expect(told.at(-1)!.scale).toBeCloseTo(0.4);
  });
  it("spread, and the zone under the first one owns it wherever the second lands", () => {
    const { two, told } = setting();
    two([40, 0, 60, 0], [0, 0, 160, 0], "a", "other");
    expect(told.at(-1)).toMatchObject({ kind: "spread", zone: "a", phase: "end" });
  });
  it("rotate, locked against a little spreading", () => {
    const { two, told } = setting();
    two([-50, 0, 50, 0], [-38, -38, 38, 38]);
    expect(new Set(told.map((one) => one.kind))).toEqual(new Set(["rotate"]));
    expect(told.at(-1)!.angle).toBeCloseTo(45, 0);
  });
  it("straddling a zone are its own, and far from one are nobody's", () => {
    const near = setting([], "b");
    near.two([0, 0, 100, 0], [30, 0, 70, 0], "");
    expect(near.told.at(-1)!.zone).toBe("b");
    const far = setting();
    far.two([0, 0, 100, 0], [30, 0, 70, 0], "");
    expect(far.told).toEqual([]);
  });
  it("may come one by one, however slowly, where nobody listens to a long press", () => {
    const { recogniser, timers, kinds } = setting(["spread"]);
    recogniser.down({ id: 1, x: 40, y: 0, at: 0 }, "a", "touch", true);
    timers.at(-1)!.run();
    recogniser.down({ id: 2, x: 60, y: 0, at: 600 }, "a", "touch", false);
    recogniser.move({ id: 2, x: 160, y: 0, at: 620 });
    recogniser.up({ id: 2, x: 160, y: 0, at: 640 });
    recogniser.up({ id: 1, x: 40, y: 0, at: 641 });
    expect(new Set(kinds())).toEqual(new Set(["spread"]));
  });
  it("are no tap when they leave without having moved", () => {
    const { two, told } = setting();
    two([0, 0, 100, 0], [0, 0, 100, 0]);
    expect(told).toEqual([]);
  });
});

describe("one finger", () => {
  it("taps at once where no double tap is declared", () => {
    const { touch, kinds } = setting(["tap"]);
    touch(5, 5, 0);
    expect(kinds()).toEqual(["tap"]);
  });
  it("waits for the second tap where both are declared, and says one of the two", () => {
    const { touch, kinds, timers } = setting(["tap", "doubletap"]);
    touch(5, 5, 0);
    expect(kinds()).toEqual([]);
    touch(6, 6, 120);
    expect(kinds()).toEqual(["doubletap"]);
    for (const one of timers) one.run();
    expect(kinds()).toEqual(["doubletap"]);
  });
  it("hears a second tap that was quick although the page was busy and heard it late, and takes a slow one for another tap", () => {
    const { touch, kinds, timers } = setting(["tap", "doubletap"]);
    const waited = () => { for (const one of timers.splice(0)) one.run(); };
    touch(5, 5, 0);
    waited();
    touch(6, 6, 120);
    expect(kinds()).toEqual(["tap", "doubletap"]);
    touch(5, 5, 1000);
    waited();
    touch(5, 5, 1300);
    waited();
    touch(90, 90, 1340);
    waited();
    expect(kinds().slice(2)).toEqual(["tap", "tap", "tap"]);
  });
  it("holds, and is no tap afterwards", () => {
    const { recogniser, kinds, timers } = setting(["tap", "longpress"]);
    recogniser.down({ id: 1, x: 0, y: 0, at: 0 }, "a", "touch", true);
    timers[0]!.run();
    recogniser.up({ id: 1, x: 0, y: 0, at: 700 });
    expect(kinds()).toEqual(["longpress"]);
  });
  it("flicks in four directions when it is quick, and does nothing when it is slow", () => {
    const { touch, kinds } = setting();
    touch(0, 0, 0, [[40, 0, 20], [90, 2, 40]]);
    touch(0, 0, 500, [[-40, 0, 520], [-90, 2, 540]]);
    touch(0, 0, 1000, [[0, -40, 1020], [2, -90, 1040]]);
    touch(0, 0, 2000, [[0, 40, 2900], [0, 42, 3900]]);
    expect(kinds()).toEqual(["flick:right", "flick:left", "flick:up"]);
  });
  it("says nothing when the browser takes the touch away", () => {
    const { recogniser, told } = setting();
    recogniser.down({ id: 1, x: 0, y: 0, at: 0 }, "a", "touch", true);
    recogniser.up({ id: 1, x: 0, y: 0, at: 30 }, true);
    expect(told).toEqual([]);
  });
  it("heals after an end that never came", () => {
    const { recogniser, touch, kinds } = setting();
    recogniser.down({ id: 9, x: 0, y: 0, at: 0 }, "a", "touch", true);
    touch(5, 5, 5000);
    expect(kinds()).toEqual(["tap"]);
  });
});

describe("keys and wheel", () => {
  it("have a form of each gesture", () => {
    const all: Kind[] = ["tap", "doubletap", "longpress", "pinch", "spread", "rotate", "flick"];
    const { recogniser, kinds } = setting(all);
    const none = { alt: false, shift: false };
    for (const key of ["-", "+", "[", "]", "h", "Enter", " "]) expect(recogniser.key("a", key, none)).toBe(true);
    expect(recogniser.key("a", "ArrowUp", { alt: true, shift: false })).toBe(true);
    expect(recogniser.key("a", "ArrowUp", none)).toBe(false);
    recogniser.wheel("a", "scale", 60);
    recogniser.wheel("a", "angle", -60);
    expect(kinds()).toEqual(["pinch", "spread", "rotate", "rotate", "longpress", "doubletap", "tap", "flick:up", "pinch", "rotate"]);
  });
  it("leave a key alone that nobody listens to", () => {
    const { recogniser } = setting(["tap"]);
    expect(recogniser.key("a", "-", { alt: false, shift: false })).toBe(false);
    expect(recogniser.key("a", "Enter", { alt: false, shift: false })).toBe(true);
  });
});
