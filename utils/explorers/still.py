"""The picture of a movable figure where nothing moves: drawn without the page and its styles."""

from __future__ import annotations

import html
import math
from typing import Any

from matplotlib.ticker import MaxNLocator

from ..figures import COLORS

WIDE, HIGH, LEFT, RIGHT, TOP, FOOT = 560, 300, 52, 548, 40, 256


def picture(held: dict[str, Any]) -> str:
    """The curves at the start of the sliders, with axes and names, as SVG in whole pixels."""
    spec, data = held["spec"], held["data"]
    stops = [slider["stops"] for slider in spec["sliders"]]
    row = 0
    for allowed, value in zip(stops, spec["start"].values(), strict=True):
        row = row * len(allowed) + allowed.index(value)
    across, up = (spec["axes"][side] for side in "xy")
    parts = [f'<path d="M{LEFT},{TOP}V{FOOT}H{RIGHT}" fill="none" stroke="currentcolor"/>']
    parts += [text(shift(across, t, LEFT, RIGHT), FOOT + 17, f"{t:g}") for t in ticks(across)]
    parts += [text(LEFT - 6, shift(up, t, FOOT, TOP) + 4, f"{t:g}", "end") for t in ticks(up)]
    parts += [text((LEFT + RIGHT) // 2, HIGH - 8, across["label"])]
    parts += [text(8, 14, up["label"], "start")]
    place = 8
    for about, curve in zip(spec["curves"], data["rows"][row], strict=True):
        color, name = COLORS[about["color"]], about["name"]
        ys = curve.get("y", up["domain"])
        xs = curve.get("x", [curve.get("at")] * 2 if "at" in curve else data["x"])
        pairs = [p for p in zip(xs, ys, strict=True) if None not in p and inside(up, p[1])]
        spots = [(shift(across, a, LEFT, RIGHT), shift(up, b, FOOT, TOP)) for a, b in pairs]
        if about["dots"]:
            parts += [f'<circle cx="{a}" cy="{b}" r="4" fill="{color}"/>' for a, b in spots]
        elif spots:
            d = "L".join(f"{a},{b}" for a, b in spots)
            dash = f' stroke-dasharray="{about["dash"]}"' if about["dash"] else ""
            parts.append(f'<path d="M{d}" fill="none" stroke="{color}" stroke-width="2"{dash}/>')
        parts.append(text(place, 30, name, "start", color))
        place += 24 + 7 * len(name)
    start = zip(spec["sliders"], spec["start"].values(), strict=True)
    said = ", ".join(f"{slider['symbol']} = {value:g}" for slider, value in start)
    told = html.escape(f"{spec['title']} Drawn at {said}.")
    drawn = (
        f'<svg viewBox="0 0 {WIDE} {HIGH}" role="img" aria-label="{told}">{"".join(parts)}</svg>'
    )
    return f"<p><strong>{html.escape(spec['title'])}</strong> Drawn at {said}.</p>{drawn}"


def text(x: int, y: int, words: str, anchor: str = "middle", color: str = "currentcolor") -> str:
    """Words at a place."""
    style = f'font-size="13" font-family="sans-serif" text-anchor="{anchor}" fill="{color}"'
    return f'<text x="{x}" y="{y}" {style}>{html.escape(words)}</text>'


def ticks(axis: dict[str, Any]) -> list[float]:
    """Round places on an axis: powers of ten where it is logarithmic."""
    low, high = axis["domain"]
    if axis["log"]:
        powers = range(math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9) + 1)
        return [10.0**k for k in powers]
    return [t for t in MaxNLocator(6).tick_values(low, high) if low <= t <= high]


def inside(axis: dict[str, Any], value: float) -> bool:
    """Whether a height is on its axis."""
    return bool(axis["domain"][0] <= value <= axis["domain"][1])


def shift(axis: dict[str, Any], value: float, start: int, end: int) -> int:
    """Where a number stands between two pixels."""
    low, high = axis["domain"]
    if axis["log"]:
        low, high, value = math.log(low), math.log(high), math.log(value)
    return round(start + (end - start) * (value - low) / (high - low))
