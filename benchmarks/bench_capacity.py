"""Separability beside linear programming, and capacity beside quadrature and minimisation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.integrate import quad
from scipy.optimize import linprog, minimize
from scipy.stats import norm

from benchmarks.clock import now
from needle.data.classifiers import attention, gaussian_mixture, pooled
from needle.data.law import FeatureLaw
from needle.data.tokens import SparseTokens
from needle.readout.capacity import predict_capacity, separability

MODEL = SparseTokens(L=10, R=1, theta=5.0, pi=0.5)


def clock(*functions: Callable[[], Any], repeat: int) -> list[float]:
    """The median CPU seconds of each function, called in turn."""
    seconds = []
    for _ in range(repeat):
        row = []
        for function in functions:
            start = now()
            function()
            row.append(now() - start)
        seconds.append(row)
    return np.median(seconds, axis=0).tolist()


def programme(F: np.ndarray, y: np.ndarray) -> Any:
    """SciPy's HiGHS on: the largest t ≤ 1 with A v ≥ t, |v|_∞ ≤ 1, A_i = y_i(f_i, 1).

    Feasible and bounded, so HiGHS always ends with an answer: separable when t > 0. The bare
    feasibility problem A v ≥ 1 is a little faster but ends undecided on many infeasible sets.
    """
    A = np.column_stack([-F, -np.ones(len(F)), y]) * y[:, None]
    cost, p = np.eye(1, A.shape[1], A.shape[1] - 1)[0], A.shape[1] - 1
    bounds = [(-1, 1)] * p + [(None, 1)]
    return linprog(-cost, A_ub=A, b_ub=np.zeros(len(A)), bounds=bounds, method="highs")


def beside_highs(what: str, law: FeatureLaw, sizes: list[int], repeat: int) -> dict[str, Any]:
    """Total time over data sets on both sides of the threshold, at d = 200."""
    samples = [law.sample(n, 200, np.random.default_rng(n)) for n in sizes]
    pairs = [
        clock(lambda s=s: separability(*s), lambda s=s: programme(*s), repeat=repeat)
        for s in samples
    ]
    mine = [separability(*s).separable for s in samples]
    assert mine == [programme(*s).fun < -1e-9 for s in samples], mine
    ours, theirs = np.sum(pairs, axis=0)
    return {
        "what": f"separability, {what}, d=200, n={sizes[0]}–{sizes[-1]}",
        "ours": f"{1e3 * ours / len(sizes):.0f} ms ({sum(mine)} of {len(sizes)} separable)",
        "other": f"{1e3 * theirs / len(sizes):.0f} ms (HiGHS)",
        "ratio": float(theirs / ours),
        "required": 5,
    }


def quadrature() -> float:
    """Capacity of the balanced mixture by scipy's quad under Nelder–Mead."""

    def expectation(x: np.ndarray) -> float:
        spread, total = np.hypot(1, x[0]), 0.0
        for sign in (1, -1):
            t = x[0] + sign * x[1]
            value = quad(lambda G, t=t: (spread * G - t) ** 2 * norm.pdf(G), t / spread, np.inf)
            total += value[0] / 2
        return total

    return 1 / minimize(expectation, [0.1, 0.1], method="Nelder-Mead").fun


def run() -> list[dict[str, Any]]:
    coin = gaussian_mixture(mean=0.0, var_pos=1.0, var_neg=1.0)
    focused = attention(MODEL, temperature=2.0, cos=0.8)
    rows = [
        beside_highs("coin labels", coin, [380, 390, 400, 410, 420], repeat=5),
        beside_highs("pooled", pooled(MODEL), [560, 590, 620, 650], repeat=3),
        beside_highs("attention", focused, [3100, 3300, 3500], repeat=1),
    ]
    sample = focused.sample(8000, 500, np.random.default_rng(0))
    (large,) = clock(lambda: separability(*sample), repeat=1)
    rows.append(
        {
            "what": "separability, attention, d=500, n=8000",
            "ours": f"{large:.1f} s",
            "other": "not attempted with HiGHS",
        }
    )
    law = gaussian_mixture(var_pos=1.0, var_neg=1.0)
    ours, theirs = clock(lambda: predict_capacity(law), quadrature, repeat=3)
    (general,) = clock(lambda: predict_capacity(focused), repeat=3)
    rows.append(
        {
            "what": "capacity of two Gaussians",
            "ours": f"{1e3 * ours:.1f} ms (attention: {1e3 * general:.0f} ms)",
            "other": f"{1e3 * theirs:.0f} ms (quad under Nelder–Mead)",
            "ratio": float(theirs / ours),
            "required": 200,
        }
    )
    return rows


if __name__ == "__main__":
    for row in run():
        print(row)
