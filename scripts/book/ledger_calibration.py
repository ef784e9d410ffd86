"""All z-scores of the book together, for the page "Ledger": two pictures, a test, fresh seeds.

The pictures are drawn when the page is built, as SVG in the ink of the page, and need no script.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from scipy import stats

from scripts.book.run_notebooks import ROOT

FRESH = ROOT / "experiments" / "results" / "fresh_agreements.json"
EDGES = np.arange(-3.75, 4.0, 0.5)  # no z of one decimal is an edge
SIZE, LEFT, RIGHT, TOP, BOTTOM = (360, 250), 44, 8, 10, 40


def rounded_distance(z: np.ndarray) -> float:
    """Kolmogorov's distance of numbers with one decimal from a normal law rounded alike."""
    values = np.unique(np.round(z, 1))
    below = np.searchsorted(np.sort(np.round(z, 1)), values + 0.05) / len(z)
    return float(np.max(np.abs(below - stats.norm.cdf(values + 0.05))))


def by_chance(records: Mapping[str, Mapping[str, Any]]) -> list[np.ndarray]:
    """The z-scores of every agreement that chance has a part in, without those of the test of
    all z-scores itself."""
    found = []
    for name, record in records.items():
        rows = [r["z"] for r in record["rows"] if r["standard_error"] and r["z"] is not None]
        if rows and not name.startswith("g-calibration"):
            found.append(np.array(rows, dtype=float))
    return found


def tested(chance: list[np.ndarray]) -> tuple[float, float, float]:
    """The distance of all rows, that of the first rows alone, and the latter's probability."""
    first = np.array([rows[0] for rows in chance])
    distance = rounded_distance(first)
    return (
        rounded_distance(np.concatenate(chance)),
        distance,
        float(stats.kstwo.sf(distance, len(first))),
    )


def drawing(
    marks: Iterable[str], x: tuple[float, float], y: tuple[float, float], ticks: Iterable[float],
    names: tuple[str, str], words: str,
) -> str:  # fmt: skip
    """Axes around marks that were drawn in the units of the picture."""
    width, height = SIZE
    bottom, right = height - BOTTOM, width - RIGHT
    parts = [
        f'<svg role="img" aria-label="{html.escape(words)}" viewBox="0 0 {width} {height}" '
        f'style="width: 100%; max-width: {width}px; height: auto" fill="currentColor" '
        'font-size="12">',
        f'<path d="M{LEFT} {TOP}V{bottom}H{right}" fill="none" stroke="currentColor"/>',
    ]
    for tick in range(-3, 4):
        place = across(tick, x)
        parts.append(
            f'<text x="{place:.1f}" y="{bottom + 15}" text-anchor="middle">{signed(tick)}</text>'
        )
    for tick in ticks:
        place = up(tick, y)
        parts.append(
            f'<text x="{LEFT - 5}" y="{place + 4:.1f}" text-anchor="end">{signed(tick)}</text>'
        )
    middle = (TOP + bottom) / 2
    turned = f'transform="translate(11 {middle}) rotate(-90)" text-anchor="middle"'
    parts += [
        f'<text x="{(LEFT + right) / 2}" y="{height - 6}" text-anchor="middle">{names[0]}</text>',
        f"<text {turned}>{names[1]}</text>",
    ]
    return "".join([*parts, *marks, "</svg>"])


def across(value: float, ends: tuple[float, float]) -> float:
    return LEFT + (value - ends[0]) / (ends[1] - ends[0]) * (SIZE[0] - LEFT - RIGHT)


def up(value: float, ends: tuple[float, float]) -> float:
    return SIZE[1] - BOTTOM - (value - ends[0]) / (ends[1] - ends[0]) * (SIZE[1] - BOTTOM - TOP)


def signed(value: float) -> str:
    return f"{value:g}".replace("-", "−")


def histogram(z: np.ndarray) -> str:
    """Bars of the z-scores, and the normal curve above them."""
    counts, _ = np.histogram(z, EDGES)
    expected = len(z) * np.diff(stats.norm.cdf(EDGES))
    x, y = (-3.75, 3.75), (0.0, 1.08 * float(max(counts.max(), expected.max())))
    marks = []
    for a, b, count in zip(EDGES[:-1], EDGES[1:], counts, strict=True):
        left, right, top = across(a, x), across(b, x), up(count, y)
        marks.append(
            f'<rect x="{left + 1:.1f}" y="{top:.1f}" width="{right - left - 2:.1f}" '
            f'height="{up(0, y) - top:.1f}" fill="#2f8fd0" opacity="0.75"/>'
        )
    fine = np.linspace(*x, 121)
    heights = len(z) * 0.5 * stats.norm.pdf(fine)
    marks.append(path(fine, heights, x, y))
    step = 50 if y[1] < 260 else 100
    words = f"Histogram of {len(z)} z-scores, and the normal curve."
    return drawing(marks, x, y, range(0, int(y[1]) + 1, step), ("z", "rows"), words)


def path(xs: np.ndarray, ys: np.ndarray, x: tuple[float, float], y: tuple[float, float]) -> str:
    points = " ".join(f"{across(a, x):.1f},{up(b, y):.1f}" for a, b in zip(xs, ys, strict=True))
    return f'<polyline points="{points}" fill="none" stroke="currentColor" stroke-width="1.5"/>'


def quantiles(z: np.ndarray) -> str:
    """The z-scores in order against the quantiles of the normal law, and the diagonal."""
    levels = stats.norm.ppf((np.arange(len(z)) + 0.5) / len(z))
    x, y = (-3.75, 3.75), (-4.2, 4.2)
    marks = [path(np.array(x), np.array(x), x, y)]
    marks += [
        f'<circle cx="{across(a, x):.1f}" cy="{up(b, y):.1f}" r="1.8" fill="#2f8fd0"/>'
        for a, b in zip(levels, np.sort(z), strict=True)
        if abs(b) < y[1]
    ]
    words = f"{len(z)} z-scores in order against the quantiles of the normal law, and the diagonal."
    return drawing(marks, x, y, range(-4, 5, 2), ("normal quantile", "z"), words)


def fresh_seeds() -> list[str]:
    """What the chapters gave when they were executed with other seeds."""
    if not FRESH.exists():
        return []
    told = json.loads(FRESH.read_text(encoding="utf-8"))
    chance = by_chance({found["claim"]: found for found in told["agreements"]})
    whole, distance, p = tested(chance)
    refused = [found["claim"] for found in told["agreements"] if found["verdict"] != "agrees"]
    said = "none was refused" if not refused else f"refused: {', '.join(refused)}"
    return [
        "### At fresh seeds",
        "",
        f"The chapters were executed once more with every seed replaced by another one (shift"
        f" {told['shift']}): of {len(told['agreements'])} agreements {said}. The largest |z| of the"
        f" {sum(map(len, chance))} rows that chance has a part in is"
        f" {max(float(np.abs(rows).max()) for rows in chance):.1f}; distance of all from the normal"
        f" law {whole:.3f}, of the first rows {distance:.3f}, p = {p:.2f}. Rows on stored runs keep"
        " the seeds of these runs. `python -m scripts.check.fresh_chapters` does it again.",
        "",
    ]


def calibration(records: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """What all z-scores together say, in Markdown."""
    chance = by_chance(records)
    z = np.concatenate(chance)
    whole, distance, p = tested(chance)
    rates = np.array([record["false_alarm"] for record in records.values()])
    refused = 1 - np.prod(1 - rates)
    figure = (
        '<figure><div style="display: flex; flex-wrap: wrap; gap: 1rem">'
        f'<div style="flex: 1 1 300px">{histogram(z)}</div>'
        f'<div style="flex: 1 1 300px">{quantiles(z)}</div></div></figure>'
    )
    return [
        f"The book holds {len(records)} agreements with"
        f" {sum(len(record['rows']) for record in records.values())} rows; chance has a part in"
        f" {len(z)} rows of {len(chance)} agreements. If all of it is true, at least one agreement"
        f" is refused at fresh seeds with a probability of at most {rates.sum():.2%}"
        f" ({refused:.2%} if they were independent).",
        "",
        f"The distance of Kolmogorov and Smirnov between all z-scores and the standard normal law,"
        f" rounded to one decimal as they are, is {whole:.3f}. Rows of one agreement share"
        f" their trials, so the test takes the first row of each: distance {distance:.3f} of"
        f" {len(chance)} z-scores, p = {p:.2f}.",
        "",
        figure,
        "",
        "*Left: how many of the z-scores lie where (bars), and of a normal law (line)."
        " Right: the same in order, against the quantiles of the normal law.*",
        "",
        *fresh_seeds(),
        "| z-scores between | found | expected |",
        "| --- | ---: | ---: |",
        *counted(z),
    ]


def counted(z: np.ndarray) -> list[str]:
    """The histogram in numbers."""
    edges = np.r_[-np.inf, np.arange(-2.75, 3.0, 0.5), np.inf]
    counts, expected = np.histogram(z, edges)[0], len(z) * np.diff(stats.norm.cdf(edges))
    ends = [f"{signed(edge)}".replace("inf", "∞") for edge in edges]
    return [
        f"| {a} and {b} | {n} | {e:.0f} |"
        for a, b, n, e in zip(ends[:-1], ends[1:], counts, expected, strict=True)
    ]
