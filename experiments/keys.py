"""Keys, values, several queries and gates, on literal tokens or on what a rule sees of them."""

from __future__ import annotations

import math

import numpy as np

from needle.data.tokens import SparseTokens
from needle.oracle.keys import queries_error, sample_values
from needle.oracle.recurrence import recurrence_error
from needle.steps.rule import two_steps


def valued(L: int, theta: float, alpha: float, d: int, rng: np.random.Generator) -> float:
    """Cosine of the two-step query with ξ_k where the label is the value, θ_k = θ_v = θ."""
    X, y = sample_values(L, theta, theta, round(alpha * d), d, rng)
    q = two_steps(X, y, lr_b=4.0).q
    return float(q[0] / np.linalg.norm(q))


def spanned(K: int, L: int, theta: float, d: int, rng: np.random.Generator) -> float:
    """Mean squared cosine of K needle directions with K eigenvectors of 2d positive bags."""
    n = 2 * d
    X = rng.standard_normal((n, L, d))
    X[np.arange(n), 0, rng.integers(K, size=n)] += theta
    rows = X.reshape(-1, d)
    vectors = np.linalg.eigh(rows.T @ rows)[1][:, -K:]
    return float((vectors[:K] ** 2).sum() / K)


def queries(K: int, H: int, L: int, theta: float, rng: np.random.Generator) -> float:
    """Wrong answers on 400 bags of the best threshold on the largest of HL projections."""
    level, share = queries_error(L, theta, K, H).threshold, np.array_split(np.arange(K), H)
    q = np.stack([np.isin(np.arange(K), part) / math.sqrt(len(part)) for part in share])
    X, y = rng.standard_normal((400, L, K)), rng.choice([-1, 1], 400)
    yes = np.flatnonzero(y > 0)
    X[yes, 0, rng.integers(K, size=len(yes))] += theta
    return float(np.mean(((X @ q.T).max(axis=(1, 2)) > level) != (y > 0)))


def gates(gate: str, slope: float, threshold: float, L: int, rng: np.random.Generator) -> float:
    """Test error of a recurrence at θ = √(2 log L) + 1.5, 500 bags of each class."""
    model = SparseTokens(L, 1, math.sqrt(2 * math.log(L)) + 1.5, 0.5)
    t = threshold if threshold > 0 else None
    return recurrence_error(model, gate, rng, slope=slope, threshold=t, trials=500)
