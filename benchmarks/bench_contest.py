"""A map of who wins, a limit of the hinge loss, the limits of long bags: against their budgets.

All of it runs on one core, and its CPU time is measured: other work on the machine hardly moves it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np

from needle.data.classifiers import attention, pooled
from needle.data.tokens import SparseTokens
from needle.readout.contest import predict_contest
from needle.readout.crossing import sharpness_law
from needle.readout.limit import predict_readout
from needle.readout.longbags import predict_long_bags


def seconds(work: Callable[[], object], repeats: int = 7) -> float:
    """Least CPU time of one call, after a first one that does not count."""
    times = []
    for k in range(repeats + 1):
        start = time.process_time()
        work()
        times.append(math.inf if k == 0 < repeats else time.process_time() - start)
    return min(times)


def strengths() -> None:
    """400 points over needles and strength, on one core."""
    for R in range(1, 17):
        for theta in np.geomspace(0.4, 6.8, 25):
            predict_contest(SparseTokens(20, R, float(theta), 0.5), 4.0, 4.0, temperature=1.0)


def cosines() -> None:
    """400 points over samples and the cosine of the query, on one core."""
    model = SparseTokens(10, 1, 5.0, 0.5)
    for alpha in np.geomspace(0.1, 70, 20):
        for cos in np.linspace(0, 1, 20):
            predict_contest(model, alpha / 4, 0.75 * alpha, cos=float(cos))


def run() -> list[dict[str, object]]:
    """One row for each promise; times in seconds."""
    model, long = SparseTokens(10, 1, 5.0, 0.5), SparseTokens(10**5, 30, 6.0, 0.5)
    law = attention(model, temperature=2.0, cos=0.8)
    laws = {"attention": law, "pooled": pooled(model)}
    times = []
    for name, work in (("needles and strength", strengths), ("samples and cosine", cosines)):
        times.append((f"map of 400 points over {name}, against 20 s", seconds(work, 0), 20))
    for name, each in laws.items():
        for lam in (0.001, 0.01, 0.1):
            took = seconds(lambda f=each, lam=lam: predict_readout(f, 4.0, lam, loss="hinge"))
            times.append((f"hinge limit, {name}, λ = {lam:g}, against 30 ms", took, 0.03))
    took = seconds(lambda: predict_long_bags(long, temperature=0.5, cos=0.3))
    times.append(("limits of long bags (error, capacity, 1/α), against 200 ms", took, 0.2))
    times.append(
        ("law of the best sharpness, against 1 ms", seconds(lambda: sharpness_law(long)), 1e-3)
    )
    return [
        {"what": what, "ours": ours, "other": other, "ratio": other / ours, "required": 1}
        for what, ours, other in times
    ]
