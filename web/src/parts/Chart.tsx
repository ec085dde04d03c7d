// A line that changes over time. uPlot draws; colours come from the tokens and follow the theme.
import { useEffect, useRef } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { useUi } from "../state/ui";

const WHOLE = [1, 2, 5].flatMap((one) => [one, one * 10, one * 100, one * 1000]).sort((a, b) => a - b); // there is no half of a turn

export interface Layer { name: string; ys: number[]; tone: string }
interface Line { label: string; xs: number[]; ys: number[]; tone?: string; unit?: string; height?: number; layers?: Layer[]; note?: string }

/** `layers`: what it is made of, lowest first, each in its own colour; they add up to `ys`. */
export function Chart({ label, xs, ys, tone = "--blue", unit = "", height = 92, layers, note = "" }: Line) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const theme = useUi((s) => s.theme);
  const tones = layers ? layers.map((one) => one.tone).reverse() : [tone];
  const drawn = tones.join();
  useEffect(() => {
    const host = box.current!;
    const css = getComputedStyle(document.documentElement);
    const colour = (name: string) => css.getPropertyValue(name).trim();
    const axis = { stroke: colour("--muted"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, font: "11px Inter Variable, sans-serif", size: 42 };
    const points = { show: (u: uPlot) => u.data[0].length < 2, size: 7 };
    const made = new uPlot(
      {
        width: host.clientWidth || 240,
        height,
        cursor: { show: false },
        legend: { show: false },
        scales: { x: { time: false }, y: { range: (_, __, most) => [0, (most || 1) * 1.05] } }, // from nothing, or shares would lie
        axes: [{ ...axis, size: 20, incrs: WHOLE }, axis],
        series: [{}, ...tones.map((one) => layers
          ? { stroke: colour(one), width: 1, fill: `color-mix(in srgb, ${colour(one)} 62%, ${colour("--panel")})`, points: { ...points, fill: colour(one) } }
          : { stroke: colour(one), width: 2, fill: `${colour(one)}22`, points: { ...points, fill: colour(one) } })],
      },
      [[], ...tones.map(() => [])] as unknown as uPlot.AlignedData,
      host,
    );
    plot.current = made;
    const watch = new ResizeObserver(() => made.setSize({ width: Math.max(80, host.clientWidth), height }));
    watch.observe(host);
    return () => { watch.disconnect(); made.destroy(); plot.current = null; };
  }, [theme, drawn, height]);
  useEffect(() => { plot.current?.setData([xs, ...(layers ? heaped(layers) : [ys])]); }, [xs, ys, layers, theme, drawn, height]);
  const now = ys.at(-1) ?? 0;
  const shown = layers?.filter((one) => one.ys.at(-1));
  return (
    <figure className="chart" role="img" aria-label={`${label}: now ${now.toLocaleString("en", { maximumFractionDigits: 4 })}${unit}${shown ? `: ${shown.map((one) => `${one.name} ${one.ys.at(-1)}`).join(", ")}` : ""}`}>
      <figcaption>{label}{note && <em>{note}</em>}<b>{now.toLocaleString("en", { maximumFractionDigits: now < 1 ? 4 : 1 })}{unit}</b></figcaption>
      <div ref={box} />
      {shown && <small className="layers">{shown.map((one) => <i key={one.name} style={{ ["--of" as string]: `var(${one.tone})` }}>{one.name}</i>)}</small>}
    </figure>
  );
}

/** One on the other, the whole heap first: each is drawn over the one before. */
function heaped(layers: Layer[]): number[][] {
  const heap: number[][] = [];
  for (const one of layers) heap.push(one.ys.map((y, n) => y + (heap.at(-1)?.[n] ?? 0)));
  return heap.reverse();
}
