// Outlines of the stages, as SVG paths in a box of w × h that begins at 0,0.
import type { Stage } from "../graph/stages";

export function outline(stage: Stage, w: number, h: number): string {
  const r = h / 2;
  switch (stage) {
    case "control":
      return rounded(w, h, Math.min(18, r));
    case "foundation":
      return rounded(w, h, 3);
    case "perceive":
      return `M${r},0H${w - r}A${r},${r} 0 0 1 ${w - r},${h}H${r}A${r},${r} 0 0 1 ${r},0Z`;
    case "reason":
      return `M${r * 0.6},0H${w - r * 0.6}L${w},${r}L${w - r * 0.6},${h}H${r * 0.6}L0,${r}Z`;
    case "act":
      return `M10,0H${w - r * 0.7}L${w},${r}L${w - r * 0.7},${h}H10Q0,${h} 0,${h - 10}V10Q0,0 10,0Z`;
    case "verify": {
      const c = Math.min(16, r * 0.6);
      return `M${c},0H${w - c}L${w},${c}V${h - c}L${w - c},${h}H${c}L0,${h - c}V${c}Z`;
    }
    case "learn":
      return `M10,0H${w - 22}L${w},22V${h - 10}Q${w},${h} ${w - 10},${h}H10Q0,${h} 0,${h - 10}V10Q0,0 10,0Z`;
  }
}

function rounded(w: number, h: number, r: number): string {
  return `M${r},0H${w - r}Q${w},0 ${w},${r}V${h - r}Q${w},${h} ${w - r},${h}H${r}Q0,${h} 0,${h - r}V${r}Q0,0 ${r},0Z`;
}

/** What a shape has besides its outline: the slab's base bar, the page's fold. */
export function extra(stage: Stage, w: number, h: number): string {
  if (stage === "foundation") return `M1,${h + 4}H${w - 1}`;
  if (stage === "learn") return `M${w - 22},0V22H${w}`;
  return "";
}
