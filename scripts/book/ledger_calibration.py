"""All z-scores of the book together, for the page "Ledger": two pictures, a test, fresh seeds.

The pictures are drawn when the page is built, as those of the chapters are.
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy import stats

from scripts.book.run_notebooks import ROOT
from utils.figures import color_of, finish, panels, theory

FRESH = ROOT / "experiments" / "results" / "fresh_agreements.json"
EDGES = np.arange(-3.75, 4.0, 0.5)  # no z of one decimal is an edge


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


def pictures(z: np.ndarray) -> Figure:
    """Bars of the z-scores below the normal curve, and all in order against its quantiles."""
    fig, (left, right) = panels(1, 2)
    left.hist(z, EDGES, color=color_of("vectorized"), alpha=0.75, rwidth=0.94)
    fine = np.linspace(EDGES[0], EDGES[-1], 121)
    theory(left, fine, len(z) * (EDGES[1] - EDGES[0]) * stats.norm.pdf(fine))
    finish(left, x="z", y="rows")
    levels = stats.norm.ppf((np.arange(len(z)) + 0.5) / len(z))
    theory(right, EDGES[[0, -1]], EDGES[[0, -1]])
    right.plot(levels, np.sort(z), ".", color=color_of("vectorized"), ms=4)
    finish(right, x="normal quantile", y="z")
    return fig


def drawn(z: np.ndarray) -> str:
    """The pictures in the page, in its inks."""
    sys.path.insert(0, str(ROOT / "site" / "ext"))
    import needle_svg

    with io.StringIO() as file:
        pictures(z).savefig(file, format="svg", metadata={"Date": None})
        words = f"{len(z)} z-scores: a histogram, and in order against the normal quantiles."
        return str(needle_svg.inline(file.getvalue(), "z-scores", words)).replace("\n", " ")


def signed(value: float) -> str:
    return f"{value:g}".replace("-", "−")


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
        f'<figure class="book-figure">{drawn(z)}</figure>',
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
