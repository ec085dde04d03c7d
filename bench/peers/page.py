"""Draws docs/explanation/peers.md's tables and plots from the JSON that run.py wrote; nothing on them is written by hand.

python bench/peers/page.py RESULTS.json ..   of one run, or of several lengths
"""

from __future__ import annotations

import json
import math
import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from run import LOOPS, verdict

DOCS = Path(__file__).parent.parent.parent / "docs"
PAGE = DOCS / "explanation" / "peers.md"
BEGIN, END = "<!-- measured -->", "<!-- end -->"
COLOURS = {
    "floor": "#8a8f98",
    "treadle": "#0b8f9c",
    "treadle-postgres": "#3fa9b5",
    "langgraph": "#c2571a",
    "langgraph-delta": "#d98a4e",
    "dbos": "#5b7fc4",
    "openai-agents": "#6b9e3d",
    "pydantic-ai": "#7a5bc4",
    "absurd": "#b8508f",
}
LOOKS = {"light": ("#ffffff", "#22262e", "#d9dde3"), "dark": ("#14171c", "#e6e9ee", "#343a44")}
WIDTH, HEIGHT, LEFT, BOTTOM, RIGHT, TOP = 640, 340, 64, 44, 130, 34


def plot(peers: dict[str, Any], figure: str, title: str, look: str) -> str:
    """An SVG of one figure over the number of turns, or of loops at once, both on logarithmic scales."""
    paper, ink, grid = LOOKS[look]
    rows, over = ("parallel", "loops") if figure == "turns_s" else ("rows", "turns")
    lines = {n: [(r[over], r[figure]) for r in p.get(rows) or () if r.get(figure)] for n, p in peers.items()}
    lines = {name: points for name, points in lines.items() if points}
    xs = [math.log10(x) for points in lines.values() for x, _ in points]
    ys = [math.log10(y) for points in lines.values() for _, y in points]
    low, high = math.floor(min(ys)), math.ceil(max(ys))

    def x_of(value: float) -> float:
        return LEFT + (value - min(xs)) / (max(xs) - min(xs) or 1) * (WIDTH - LEFT - RIGHT)

    def y_of(value: float) -> float:
        return HEIGHT - BOTTOM - (value - low) / (high - low or 1) * (HEIGHT - BOTTOM - TOP)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
        f"<title>{title}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="{paper}"/>',
        f'<text x="{LEFT}" y="20" fill="{ink}" font-size="14">{title}</text>',
    ]
    for power in range(low, high + 1):
        y = y_of(power)
        parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="{grid}"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" fill="{ink}" text-anchor="end">{10.0**power:,.10g}</text>')
    parts += [
        f'<text x="{x_of(x):.1f}" y="{HEIGHT - 22}" fill="{ink}" text-anchor="middle">{10**x:,.0f}</text>'
        for x in sorted(set(xs))
    ]
    parts.append(
        f'<text x="{(WIDTH - RIGHT + LEFT) / 2}" y="{HEIGHT - 6}" fill="{ink}" text-anchor="middle">{over}</text>'
    )
    heights: list[float] = []
    for name, points in sorted(lines.items(), key=lambda one: -one[1][-1][1]):
        places = [(x_of(math.log10(x)), y_of(math.log10(y))) for x, y in points]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
        colour = COLOURS.get(name, ink)
        parts.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2.5"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>' for x, y in places]
        heights.append(max(places[-1][1], heights[-1] + 15 if heights else 0))
        parts.append(f'<text x="{WIDTH - RIGHT + 12}" y="{heights[-1] + 4:.1f}" fill="{colour}">{name}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def picture(name: str, title: str) -> str:
    """The plot of the reader's own look."""
    return (
        f'<picture><source media="(prefers-color-scheme: dark)" srcset="../images/{name}-dark.svg">'
        f'<img alt="{title}" src="../images/{name}-light.svg"></picture>'
    )


def table(results: dict[str, Any]) -> str:
    """Every row, and the kills."""
    text = [
        "| | turns | a turn, ms | last ten, ms | processor, ms a turn | bytes a turn | resume, ms | start and imports, ms | memory, MB |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name, peer in results["peers"].items():
        for row in peer["rows"]:
            resume = "none" if row["resume_ms"] is None else f"{row['resume_ms']:,.0f}"
            start = f"{row['import_ms']:,.0f}" if row.get("import_ms") else ""
            text.append(
                f"| {name} | {row['turns']:,} | {row['turn_ms']:.2f} | {row['last_ms']:.2f} | {row['cpu_ms']:.2f} "
                f"| {row['bytes_a_turn']:,.0f} | {resume} | {start} | {row['rss_mb']:.0f} |"
            )
    out = {name: peer["left_out"] for name, peer in results["peers"].items() if peer.get("left_out")}
    if out:
        why = ", ".join(f"{name} at {turns:,}" for name, turns in out.items())
        text += ["", f"Left out, since they would have taken minutes: {why}."]
    text += ["", "| killed in a paid call | billed | counted | in doubt |", "| --- | ---: | ---: | ---: |"]
    for name, peer in results["peers"].items():
        kill = peer["kill"]
        counted = "lost" if kill["counted"] is None else kill["counted"]
        text.append(f"| {name} | {kill['billed']} | {counted} | {kill['in_doubt']} |")
    text += [
        "",
        "| loops at once in one process | "
        + " | ".join(f"{n}, turns a second" for n in LOOPS)
        + " | processor, ms a turn |",
    ]
    text += ["| --- |" + " ---: |" * (len(LOOPS) + 1)]
    for name, peer in results["peers"].items():
        if found := {row["loops"]: row for row in peer.get("parallel") or ()}:
            speeds = " | ".join(
                f"{found[n]['turns_s']:,.0f}" if n in found and found[n]["turns_s"] else "" for n in LOOPS
            )
            cpu = [row["cpu_ms"] for row in found.values() if row["cpu_ms"]][-1]
            text.append(f"| {name} | {speeds} | {cpu:.2f} |")
    held = "what is promised against peers holds."
    missed = "what is promised and does not hold: " + "; ".join(results["faults"]) + "."
    return "\n".join([*text, "", f"**Verdict**: {missed if results['faults'] else held}"])


def merged(files: list[str]) -> dict[str, Any]:
    """Several runs as one: their lengths differ, or a later file wins."""
    found = json.loads(Path(files[0]).read_text())
    for file in files[1:]:
        for name, peer in json.loads(Path(file).read_text())["peers"].items():
            old = found["peers"].setdefault(name, peer)
            rows = {row["turns"]: row for row in [*old["rows"], *peer["rows"]]}
            old["rows"] = [rows[turns] for turns in sorted(rows)]
            old["kill"] = peer["kill"] or old["kill"]
            old["parallel"] = peer.get("parallel") or old.get("parallel")
    longest = max(row["turns"] for peer in found["peers"].values() for row in peer["rows"])
    for peer in found["peers"].values():
        peer["left_out"] = None if peer["rows"][-1]["turns"] == longest else longest
    return {**found, "faults": verdict(found)}


def main(files: list[str]) -> None:
    results = merged(files)
    (Path(__file__).parent / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    figures = {
        "turn_ms": "Time a turn, ms (median)",
        "bytes_a_turn": "Bytes stored a turn",
        "turns_s": "Loops at once: turns a second",
    }
    shown: list[str] = []
    for figure, title in figures.items():
        name = f"peers-{figure.replace('_', '-')}"
        for look in LOOKS:
            (DOCS / "images" / f"{name}-{look}.svg").write_text(plot(results["peers"], figure, title, look))
        shown.append(picture(name, title))
    loads = [
        row["load"] for peer in results["peers"].values() for row in [*peer["rows"], *(peer.get("parallel") or ())]
    ]
    runs = "one run" if results["repeats"] == 1 else f"the median of {results['repeats']} runs"
    head = f"{results['machine']}; {runs} of each, turn about; load of the machine {min(loads)} to {max(loads)}."
    measured = "\n\n".join([BEGIN, head, *shown, table(results), END])
    page = PAGE.read_text()
    PAGE.write_text(re.sub(f"{BEGIN}.*{END}", lambda _: measured, page, flags=re.DOTALL))


if __name__ == "__main__":
    main(sys.argv[1:])
