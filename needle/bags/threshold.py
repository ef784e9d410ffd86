"""From scores of held-out bags to a decision: the threshold, and how probable a bag is."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from .arrays import Array


def best_threshold(scores: Array, y: Array, goal: str, weight: Array | None = None) -> float:
    """The score from which on bags are called positive, best for a goal on these scores.

    goal "error": fewest wrong; "balanced": the mean of the two labels' errors; "f1": the harmonic
    mean of precision and recall of the positives. Between two scores the middle is taken.

    >>> best_threshold(np.array([0.0, 1.0, 2.0, 4.0]), np.array([-1, -1, 1, 1]), "f1")
    1.5
    """
    weight = np.ones(len(y)) if weight is None else weight
    order = np.argsort(-scores, kind="stable")
    s, yes = scores[order], np.where(y[order] > 0, weight[order], 0.0)
    no = weight[order] - yes
    hit, raised = (np.concatenate([[0.0], np.cumsum(part)]) for part in (yes, no))
    P, N = hit[-1], raised[-1]
    value = {
        "error": hit + N - raised,
        "balanced": hit / P + 1 - raised / N,
        "f1": 2 * hit / (hit + raised + P),
    }[goal]
    value[1:-1][s[1:] == s[:-1]] = -np.inf  # no threshold lies between equal scores
    k = int(np.argmax(value))
    if k == 0:
        return float(s[0]) + 1.0
    return float(s[-1]) - 1.0 if k == len(s) else float(s[k - 1] + s[k]) / 2


def platt(scores: Array, y: Array, weight: Array | None = None) -> tuple[float, float]:
    """Slope ≥ 0 and shift of σ(slope·score + shift), by maximum likelihood on these scores.

    The targets are Platt's, (n₊+1)/(n₊+2) and 1/(n₋+2), so that separable scores stay calibrated.

    >>> rng = np.random.default_rng(0)
    >>> s = rng.normal(size=20_000)
    >>> y = np.where(rng.random(20_000) < 1 / (1 + np.exp(-(2 * s - 1))), 1, -1)
    >>> [round(value, 1) for value in platt(s, y)]
    [2.0, -1.0]
    """
    weight = np.ones(len(y)) if weight is None else weight
    P, N = float(weight[y > 0].sum()), float(weight[y < 0].sum())
    target = np.where(y > 0, (P + 1) / (P + 2), 1 / (N + 2))

    def loss(v: Array) -> tuple[float, Array]:
        z = v[0] * scores + v[1]
        pull = weight * (1 / (1 + np.exp(-z)) - target) / weight.sum()
        value = weight @ (np.logaddexp(0, z) - target * z) / weight.sum()
        return float(value), np.array([pull @ scores, pull.sum()])

    bounds = [(1e-6, None), (None, None)]
    found = minimize(loss, np.array([1.0, 0.0]), jac=True, method="L-BFGS-B", bounds=bounds)
    return float(found.x[0]), float(found.x[1])
