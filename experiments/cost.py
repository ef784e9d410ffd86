"""What trials cost on the machine that runs them: CPU seconds, the least of eight calls."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from needle.data.classifiers import attention, pooled
from needle.data.sidebyside import vectorized
from needle.data.tokens import SparseTokens
from needle.readout.fit import simulate_readout
from needle.steps.alignment import simulate_alignment

CLOCK = getattr(time, "thread_time", time.process_time)


def one_trial(task: str, n: int, d: int, L: int) -> Callable[[np.random.Generator], object]:
    """The trial whose cost is asked for: model θ = 5, R = 1, π = ½; attention T = 2, cosine 0.8."""
    model, (kind, rule) = SparseTokens(L, 1, 5.0, 0.5), task.split(", ")
    if kind == "alignment":
        method = "dense" if rule == "literal" else "exact"
        return lambda rng: simulate_alignment(model, d, n / d, rng, method=method)
    laws = {"pooled": pooled, "vectorized": vectorized}

    def train(rng: np.random.Generator) -> object:
        law = laws[kind](model) if kind in laws else attention(model, temperature=2.0, cos=0.8)
        return simulate_readout(law, d, n / d, 0.1, rng, loss=rule)

    return train


def seconds(task: str, n: int, d: int, L: int, rng: np.random.Generator) -> dict[str, float]:
    """The least of eight measured calls, after one that does not count."""
    trial, times = one_trial(task, n, d, L), []
    for _ in range(9):
        start = CLOCK()
        trial(rng)
        times.append(CLOCK() - start)
    return {"seconds": min(times[1:])}
