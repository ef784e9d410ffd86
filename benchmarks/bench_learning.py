"""Promises of `needle.learning.limit`: curves in a second, rounds at the speed of memory."""

from __future__ import annotations

import math

import numpy as np

from benchmarks.clock import seconds
from needle.data.tokens import SparseTokens
from needle.learning import limit as learning
from needle.learning import posterior, verdicts
from needle.learning.amp import Literal, simulate_learning, subset_weights
from needle.learning.limit import learning_thresholds, predict_learning


def forget() -> None:
    """Empty all tables, so that they count."""
    for cached in (learning._curve, posterior.channel, verdicts._bags):
        cached.cache_clear()


def curve(model: SparseTokens) -> None:
    forget()
    for alpha in np.logspace(-1, 3, 100):
        predict_learning(model, alpha)


def rounds(bags: int, L: int, d: int) -> tuple[float, float]:
    """Seconds of one round on stored tokens, and of two plain products with them."""
    rng, theta = np.random.default_rng(0), 5.0
    where = np.zeros(bags * L)
    where[::L] = 1
    tokens = Literal(where, d, theta, rng)
    matrix = np.concatenate(tokens.kept)
    tokens.kept = [matrix]
    v, xi = np.full(bags * L, 1 / L), rng.standard_normal(d) / math.sqrt(d)

    def one_round() -> np.ndarray:
        f = tokens.transposed(v) - theta * (v @ (1 - v)) * xi
        snr = theta**2 * (v @ v) / d
        estimate = theta * f / (d * (1 + snr))
        h = tokens.times(estimate) - theta / (1 + snr) * v
        return subset_weights(theta * h.reshape(bags, L))[0]

    u, x = v.astype(np.float32), xi.astype(np.float32)
    return seconds(one_round, 7), seconds(lambda: (u @ matrix, matrix @ x), 7)


def run() -> list[dict[str, object]]:
    """One row for each promise."""
    model, long = SparseTokens(10, 1, 5.0, 0.5), SparseTokens(10**6, 1, 8.0, 0.5)
    one_round, plain = rounds(bags=500, L=100, d=1000)
    rng = np.random.default_rng(1)
    literal = seconds(lambda: simulate_learning(model, 1000, 4.0, rng, fresh=1), 3)
    exact = seconds(lambda: simulate_learning(model, 1000, 4.0, rng, method="exact", fresh=1), 3)

    def thresholds() -> None:
        forget()
        learning_thresholds(long)

    times = [
        ("one round of message passing, 5·10⁷ numbers, against two plain products with them",
         one_round, plain, 0.5),
        ("curve of 100 points at L = 10⁶, tables included, against 1 s",
         seconds(lambda: curve(long), 3), 1.0, 1),
        ("both thresholds at L = 10⁶, tables included, against ½ s",
         seconds(thresholds, 3), 0.5, 1),
        ("exact draw against literal tokens, L = 10, d = 1000, α = 4", exact, literal, 2),
    ]  # fmt: skip
    rows = [(what, f"{1e3 * a:.3g} ms", f"{1e3 * b:.3g} ms", b / a, r) for what, a, b, r in times]
    return [
        dict(zip(("what", "ours", "other", "ratio", "required"), row, strict=True)) for row in rows
    ]
