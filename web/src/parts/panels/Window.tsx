// The prompt as two slabs with the boundary of the cache between them, and how much of the window content may fill.
import { act } from "../acts";
import { useWindow } from "../useWindow";
import { Slider } from "./Sliders";

const count = (tokens: number) => tokens.toLocaleString("en");

export function PromptPanel() {
  const { window: found, problem } = useWindow();
  if (!found) return <p className="quiet">{problem || "Reading…"}</p>;
  const fixed = found.static_tokens + found.tools_tokens;
  const changed = found.changed.length > 0;
  return (
    <div className="promptpanel">
      <div className={`bigslab static ${changed ? "anew" : found.cache_read_tokens ? "hit" : ""}`}>
        <b>Static</b><span>{count(fixed)} tokens</span>
        <small>system prompt {count(found.static_tokens)} · tools {count(found.tools_tokens)}</small>
        <small>{changed ? `made anew: ${found.changed.join(", ")}` : found.cache_read_tokens ? `${count(found.cache_read_tokens)} read from the cache` : "as it was; no cache hit told"}</small>
      </div>
      <div className="boundary"><small>cache boundary · {found.cache_key.slice(0, 10)}</small></div>
      <div className="bigslab dynamic">
        <b>Dynamic</b><span>{count(Math.max(0, found.used - fixed))} tokens</span>
        {Object.entries(found.kinds).filter(([kind, size]) => size > 0 && kind !== "system" && kind !== "tools").map(([kind, size]) => <small key={kind}>{kind} {count(size)}</small>)}
      </div>
    </div>
  );
}

export function RatioPanel() {
  const { window: found, problem } = useWindow();
  if (!found) return <p className="quiet">{problem || "Reading…"}</p>;
  return (
    <div className="ratiopanel">
      <RatioDial ratio={found.compact_at} used={(found.used / found.budget) * 100} />
      <Slider label="Content may fill" value={found.compact_at} least={20} most={100} unit=" %" commit={(compact_at) => void act("extend", { compact_at })} />
      <p className="quiet">{count(found.used)} of {count(found.budget)} tokens are filled. Past the ratio the history is compacted.</p>
    </div>
  );
}

/** A ring of the window: what is filled, and hatched red past the ratio. */
export function RatioDial({ ratio, used, size = 120 }: { ratio: number; used: number; size?: number }) {
  const past = 1 - ratio / 100;
  return (
    <svg className="ratiodial" width={size} height={size} viewBox="0 0 120 120" role="img" aria-label={`content ratio ${ratio} %, ${Math.round(used)} % filled`}>
      <circle cx="60" cy="60" r="48" className="track" />
      <circle cx="60" cy="60" r="48" className="past" pathLength={100} strokeDasharray={`${past * 100} 100`} strokeDashoffset={-ratio} />
      <circle cx="60" cy="60" r="48" className={used > ratio ? "fill over" : "fill"} pathLength={100} strokeDasharray={`${Math.min(100, Math.max(0.01, used))} 100`} />
      <text x="60" y="66" textAnchor="middle">{ratio}%</text>
    </svg>
  );
}
