"""The explorer of Chapter 10: one pass over fresh bags, by class balance and rate of the intercept.

The flow of six numbers (`needle.predict_training`) at L = 10, R = 1, θ = 4 with η_q = η_w = 3.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from needle.data.tokens import SparseTokens
from needle.training.onepass import predict_training

from .base import Explorer, Slider

SHARES = (0.1, 0.2, 0.35, 0.5)
RATES = (0.3, 3.0, 24.0)  # of the intercept
SAMPLES = (
    0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 8.0, 10.0, 12.0
)  # fmt: skip
FIELDS = {"query": "query_cos", "readout": "readout_cos", "test": "test_error"}


@lru_cache(maxsize=16)
def flow(pi: float, lr_b: float) -> dict[str, list[float]]:
    """Cosines of query and readout, and the test error, at `SAMPLES` samples per dimension."""
    model = SparseTokens(10, 1, 4.0, pi)
    path = predict_training(model, SAMPLES, lr_q=3.0, lr_w=3.0, lr_b=lr_b, tolerance=0.01)
    return {name: [float(getattr(one, field)) for one in path] for name, field in FIELDS.items()}


def onepass(p: dict[str, Any]) -> dict[str, Any]:
    """The flow, what it has reached, and the lowest cosine of the query on the way."""
    rows, now = flow(p["pi"], p["lr_b"]), SAMPLES.index(p["alpha"])
    return {
        **rows,
        "here": {name: row[now] for name, row in rows.items()},
        "lowest": min(rows["query"]),
    }


EXPLORER = Explorer(
    title="One pass over fresh bags: does the query turn to the needle, or away from it first?",
    sliders=(
        Slider("pi", "π", "share of positives", SHARES),
        Slider("lr_b", "η_b", "rate of the intercept", RATES),
        Slider("alpha", "α", "samples per dimension so far", SAMPLES),
    ),
    start={"pi": 0.2, "lr_b": 0.3, "alpha": 1.5},
    values=onepass,
)
