"""The explorer of Chapter 8: the same bags again, by samples per dimension, decay and time.

What it shows is the limit of full-batch descent on query, readout and intercept, stored at all its
settings: at every step to 40 and at six later times (`experiments/results/again-time.csv`). In
between its lines are straight, as they are drawn. The tests hold stops and lines against runs of
other populations.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..results import stored
from .base import Explorer, Slider

FIELDS = {  # as they are called on the page, and in the table
    "test": "test_error", "train": "train_error", "cosine": "query_cos", "length": "query_norm"
}  # fmt: skip
ALPHAS = (0.5, 1.0, 2.0, 4.0, 8.0)
DECAYS = (0.0, 0.1, 0.2, 0.3, 0.4)
TIMES = (*np.arange(2, 20.25, 0.5).tolist(), 24.0, 30.0, 40.0, 60.0, 100.0, 150.0)


def course(alpha: float, decay: float) -> dict[str, list[float]]:
    """Errors, cosine and length of the query at the stored times."""
    found = stored("again-time").only(alpha=alpha, decay=decay)
    return {
        name: [float(found[f"{field}@{2 * time:g}"]) for time in TIMES]
        for name, field in FIELDS.items()
    }


def descent(p: dict[str, Any]) -> dict[str, Any]:
    """What descent at rates ½ has learned at each time, and when it was best."""
    rows, now = course(p["alpha"], p["decay"]), TIMES.index(p["time"])
    best = int(np.argmin(rows["test"]))
    return {
        **rows,
        "here": {name: row[now] for name, row in rows.items()},
        "least": rows["test"][best],
        "when": TIMES[best],
        "how": "Stored: the limit d → ∞, exact to 1 %; small training errors less.",
    }


EXPLORER = Explorer(
    title="The same bags in every step: what is learned, and when is it forgotten?",
    sliders=(
        Slider("alpha", "α", "bags per dimension", ALPHAS),
        Slider("decay", "λ", "decay", DECAYS),
        Slider("time", "t", "time, steps × rate", TIMES),
    ),
    start={"alpha": 2.0, "decay": 0.0, "time": 40.0},
    values=descent,
)
