// A gauge as a ring: how much of a limit is used. Amber near it and at it: a budget that is used up is no failure.
export function Ring({ used, limit, label, size = 132, near = 0.8 }: { used: number; limit?: number | null; label: string; size?: number; near?: number }) {
  const share = limit ? Math.min(1, used / limit) : 0;
  const tone = limit && share >= near ? "var(--amber)" : "var(--blue)";
  return (
    <figure className="gauge" style={{ width: size }} role="img" aria-label={`${label}: ${used}${limit ? ` of ${limit}` : ""}`}>
      <svg width={size} height={size} viewBox="0 0 120 120" aria-hidden="true">
        <circle cx="60" cy="60" r="50" className="track" />
        <circle cx="60" cy="60" r="50" className="fill" pathLength={1} strokeDasharray={`${share} 1`} stroke={tone} />
        <text x="60" y="46" className="t">{label}</text>
        <text x="60" y="74" className="n">{used}</text>
        {limit ? <text x="60" y="92" className="t">of {limit}</text> : null}
      </svg>
    </figure>
  );
}
