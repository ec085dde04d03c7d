// Icons by stroke alone, 24 × 24.
const PATHS = {
  control: "M19.5 9.5A8 8 0 005.3 8M4.5 14.5A8 8 0 0018.7 16M19.8 4.5v5h-5M4.2 19.5v-5h5",
  foundation: "M4 8l8-4 8 4-8 4zM4 12.5l8 4 8-4M4 17l8 4 8-4",
  perceive: "M2.5 12S6 5.5 12 5.5 21.5 12 21.5 12 18 18.5 12 18.5 2.5 12 2.5 12zM12 9a3 3 0 100 6 3 3 0 000-6z",
  reason:
    "M8.2 5a2.2 2.2 0 11-4.4 0 2.2 2.2 0 014.4 0zM8.2 19a2.2 2.2 0 11-4.4 0 2.2 2.2 0 014.4 0zM20.2 7.5a2.2 2.2 0 11-4.4 0 2.2 2.2 0 014.4 0zM6 7.2v9.6M18 9.7c0 4.3-12 2.3-12 7.1",
  act: "M13 2.8L5 13.5h6l-1 7.7 8-10.7h-6z",
  verify: "M12 3l7.5 2.8v5.6c0 4.6-3.2 7.9-7.5 9.6-4.3-1.7-7.5-5-7.5-9.6V5.8zM8.6 12l2.4 2.4 4.6-4.8",
  learn: "M5 4.5h10.5a3 3 0 013 3V20H8a3 3 0 01-3-3zM5 17a3 3 0 013-3h10.5M9 8.5h6",
  lock: "M6.5 11V8a5.5 5.5 0 0111 0v3M5.5 11h13v9h-13zM12 14.5v2",
  unlock: "M6.5 11V8a5.5 5.5 0 0110.6-2M5.5 11h13v9h-13zM12 14.5v2",
  plus: "M12 5v14M5 12h14",
  minus: "M5 12h14",
  fit: "M4 9V4h5M20 9V4h-5M4 15v5h5M20 15v5h-5",
  undo: "M8 5L4 9l4 4M4 9h10a6 6 0 010 12h-3",
  redo: "M16 5l4 4-4 4M20 9H10a6 6 0 000 12h3",
  sun: "M12 8a4 4 0 100 8 4 4 0 000-8zM12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.4 1.4M17.6 17.6L19 19M5 19l1.4-1.4M17.6 6.4L19 5",
  moon: "M20 14.5A8.5 8.5 0 119.5 4a7 7 0 0010.5 10.5z",
  check: "M5 12.5l4.5 4.5L19 7.5",
  cross: "M6 6l12 12M18 6L6 18",
  grid: "M4 4h6v6H4zM14 4h6v6h-6zM4 14h6v6H4zM14 14h6v6h-6z",
  pulse: "M3 12h4l3-8 4 16 3-8h4",
} as const;
export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 20, width = 1.8 }: { name: IconName; size?: number; width?: number }) {
  return (
    <svg width={size} height={size} viewBox="0 0 24 24" aria-hidden="true" className="icon">
      <path d={PATHS[name]} fill="none" stroke="currentColor" strokeWidth={width} strokeLinecap="round" strokeLinejoin="round" />
    </svg>
  );
}
