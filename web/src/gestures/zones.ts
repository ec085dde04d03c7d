// Who listens to which gesture in which zone. A zone is a name, or a kind with an id behind it: `call:7` is heard by `call`, too.
import { useEffect, useRef } from "react";
import type { Gesture, Kind } from "./recognise";

export type Reaction = (gesture: Gesture, id: string) => void;
export type Reactions = Partial<Record<Kind, Reaction>>;
const zones = new Map<string, Set<{ current: Reactions }>>();

function heard(zone: string): { reactions: Reactions; id: string }[] {
  const [kind = "", ...rest] = zone.split(":");
  const found = [...(zones.get(zone) ?? [])].map((one) => ({ reactions: one.current, id: "" }));
  return rest.length ? [...found, ...[...(zones.get(kind) ?? [])].map((one) => ({ reactions: one.current, id: rest.join(":") }))] : found;
}

export const declares = (zone: string, kind: Kind): boolean => heard(zone).some((one) => one.reactions[kind]);

export function deliver(gesture: Gesture): void {
  for (const { reactions, id } of heard(gesture.zone)) reactions[gesture.kind]?.(gesture, id);
}

/** Listens while the component is there. */
export function useGestures(zone: string, reactions: Reactions): void {
  const latest = useRef(reactions);
  latest.current = reactions;
  useEffect(() => {
    const all = zones.get(zone) ?? new Set();
    zones.set(zone, all);
    all.add(latest);
    return () => { all.delete(latest); };
  }, [zone]);
}

/** A reaction to the end of a gesture of two fingers alone. */
export const atEnd = (run: (gesture: Gesture, id: string) => void): Reaction => (gesture, id) => { if (gesture.phase === "end") run(gesture, id); };
