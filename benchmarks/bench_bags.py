"""A fixed fit of `NeedleClassifier` on a million tokens of 128 entries in single precision.

It reads all tokens four times (means, query, heights, averages) and looks at one in fifteen of the
negatives' for their covariance; so it is held against four products of the tokens with a vector.
Times are CPU seconds of one thread, which other work on the machine disturbs least.
"""

from __future__ import annotations

import tracemalloc

import numpy as np

from benchmarks.clock import cpu_seconds
from needle.bags.arrays import Bags
from needle.bags.classifier import NeedleClassifier

TOKENS, WIDTH, LENGTH = 1_000_000, 128, 200


def made(tokens: int = TOKENS) -> tuple[Bags, np.ndarray]:
    """Bags of 200 tokens, every second one positive with a needle at its first place."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((tokens, WIDTH), dtype=np.float32)
    starts = np.arange(0, tokens + 1, LENGTH)
    y = np.resize([1, -1], len(starts) - 1)
    X[starts[:-1][y > 0], 0] += 5
    return Bags(X, starts), y


def run() -> list[dict[str, object]]:
    """Time and memory of one fit with nothing to choose."""
    bags, y = made()
    X, direction = bags.tokens, np.ones(WIDTH, np.float32)

    def fit() -> None:
        NeedleClassifier(sharpness=2.0, ridge=0.1, units="common").fit(bags, y)

    once, ours = cpu_seconds(lambda: X @ direction), cpu_seconds(fit)
    tracemalloc.start()
    fit()
    extra = tracemalloc.get_traced_memory()[1] / X.nbytes
    tracemalloc.stop()
    rows = [
        ("fixed fit, 10⁶ × 128 float32, against four passes over the tokens", ours, 4 * once, ""),
        ("memory of the fit with its tokens, in units of the tokens, against 1.5",
         1 + extra, 1.5, 1),
    ]  # fmt: skip
    return [
        {"what": what, "ours": mine, "other": other, "ratio": other / mine, "required": required}
        for what, mine, other, required in rows
    ]
