"""Promises of `needle.training.onepass`: a flow at any length and a descent in seconds."""

from __future__ import annotations

import numpy as np

from benchmarks.clock import seconds
from needle.data.tokens import SparseTokens
from needle.training.batch import predict_descent, simulate_descent
from needle.training.onepass import predict_training

RATES = {"lr_q": 3.0, "lr_w": 3.0, "lr_b": 3.0}
TIMES = np.linspace(0, 20, 21)


def flow(L: int, theta: float, loss: str) -> float:
    """Seconds of one trajectory of twenty samples per dimension."""
    rates = {name: rate / (1 if loss == "logistic" else 3) for name, rate in RATES.items()}
    model = SparseTokens(L, 1, theta, 0.5)
    return seconds(lambda: predict_training(model, TIMES, loss=loss, **rates), 2)


def descent() -> float:
    """Seconds of three hundred full steps on 1600 bags of 20 tokens in 400 dimensions."""
    model, rng = SparseTokens(20, 1, 5.0, 0.5), np.random.default_rng(0)
    return seconds(lambda: simulate_descent(model, 400, 4.0, [300], rng, **RATES), 1)


def limit() -> float:
    """Seconds of three hundred steps of the limit at its default size."""
    return seconds(lambda: predict_descent(SparseTokens(20, 1, 5.0, 0.5), 4.0, [300]), 1)


def run() -> list[dict[str, object]]:
    """One row for each promise."""
    times = [
        ("trajectory at L = 10, logistic loss, against 2 s", flow(10, 4.0, "logistic"), 2.0, 1),
        ("trajectory at L = 10, square loss, against 2 s", flow(10, 4.0, "square"), 2.0, 1),
        ("trajectory at L = 100, logistic loss, against 20 s", flow(100, 6.0, "logistic"), 20.0, 1),
        ("trajectory at L = 100, square loss, against 20 s", flow(100, 6.0, "square"), 20.0, 1),
        ("300 full steps at L = 20, d = 400, α = 4, against 5 s", descent(), 5.0, 1),
        ("300 steps of the limit at L = 20, against 10 s", limit(), 10.0, 1),
    ]  # fmt: skip
    return [
        {"what": what, "ours": ours, "other": other, "ratio": other / ours, "required": required}
        for what, ours, other, required in times
    ]
