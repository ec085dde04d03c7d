// A line that changes over time. uPlot draws; colours come from the tokens and follow the theme.
import { useEffect, useRef } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { useUi } from "../state/ui";

interface Line { label: string; xs: number[]; ys: number[]; tone?: string; unit?: string; height?: number; under?: number[]; underTone?: string; parts?: string }

/** `under`: a part of it, drawn below in its own colour; `parts` says in words what that is. */
export function Chart({ label, xs, ys, tone = "--blue", unit = "", height = 92, under, underTone = "--blue", parts = "" }: Line) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const theme = useUi((s) => s.theme);
  useEffect(() => {
    const host = box.current!;
    const css = getComputedStyle(document.documentElement);
    const colour = (name: string) => css.getPropertyValue(name).trim();
    const axis = { stroke: colour("--muted"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, font: "11px Inter Variable, sans-serif", size: 34 };
    const made = new uPlot(
      {
        width: host.clientWidth || 240,
        height,
        cursor: { show: false },
        legend: { show: false },
        scales: { x: { time: false } },
        axes: [{ ...axis, size: 20 }, axis],
        series: [{}, ...(under ? [tone, underTone] : [tone]).map((one) => ({ stroke: colour(one), width: 2, fill: `${colour(one)}22`, points: { show: (u: uPlot) => u.data[0].length < 2, size: 7, fill: colour(one) } }))],
      },
      under ? [[], [], []] : [[], []],
      host,
    );
    plot.current = made;
    const watch = new ResizeObserver(() => made.setSize({ width: Math.max(80, host.clientWidth), height }));
    watch.observe(host);
    return () => { watch.disconnect(); made.destroy(); plot.current = null; };
  }, [theme, tone, underTone, !under, height]);
  useEffect(() => { plot.current?.setData(under ? [xs, ys, under] : [xs, ys]); }, [xs, ys, under, theme, tone, underTone, height]);
  const now = ys.at(-1) ?? 0;
  return (
    <figure className="chart" role="img" aria-label={`${label}: now ${now.toLocaleString("en", { maximumFractionDigits: 4 })}${unit}`}>
      <figcaption>{label}{parts && under && <em style={{ ["--of" as string]: `var(${underTone})` }}>{Math.round((100 * (under.at(-1) ?? 0)) / Math.max(1, now))} % {parts}</em>}<b>{now.toLocaleString("en", { maximumFractionDigits: now < 1 ? 4 : 1 })}{unit}</b></figcaption>
      <div ref={box} />
    </figure>
  );
}
