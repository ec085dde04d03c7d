import { useSyncExternalStore } from "react";

export type Layout = "phone" | "tablet" | "desk";
const read = (): Layout => (innerWidth < 700 ? "phone" : innerWidth < 1120 ? "tablet" : "desk");

export function useLayout(): Layout {
  return useSyncExternalStore((told) => {
    addEventListener("resize", told);
    return () => removeEventListener("resize", told);
  }, read);
}
