"""Plans on literal tokens: does the advice reach what it promises, and what does a search find?"""

from __future__ import annotations

from functools import lru_cache, partial

import numpy as np
from scipy.special import ndtr, softmax

from needle.data.classifiers import attention
from needle.data.tokens import SparseTokens
from needle.planning import PlanRow
from needle.planning import plan as planned
from needle.readout.fit import fit_readout
from needle.steps.rates import RATE_W, calibrated_rate
from needle.steps.rule import two_steps

SHARES, SHARPNESS, RIDGES = (0.25, 0.5, 0.75, 0.9, 1.0), (1.2, 2.0, 3.5), (0.003, 0.03, 0.3)
DRAWS = 400
plan = partial(planned, balanced=False)  # labels as they come


@lru_cache(maxsize=64)
def _row(L: int, R: int, d: int, n: int, pi: float, theta: float, loss: str) -> PlanRow:
    return plan(L=L, R=R, d=d, n=n, pi=pi, theta=theta, loss=loss).rows[0]


def _error(
    model: SparseTokens, q: np.ndarray, T: float, w: np.ndarray, b: float, seed: int
) -> float:
    """Test error of this very query and readout, over the same draws for every recipe."""
    law = attention(model, temperature=T, cos=float(np.clip(q[0], -1, 1)))
    y = np.repeat([1, -1], DRAWS)
    a, c, r = law.coefficients(y, np.random.default_rng(seed))
    overlap = w @ q if T else 0.0
    mean = model.theta * a * w[0] + c * overlap + b
    margin = y * mean / (r * np.sqrt(max(w @ w - overlap**2, 1e-300)))
    weight = np.where(y > 0, model.pi, 1 - model.pi) / DRAWS
    return float(weight @ ndtr(-margin))


def advice(
    L: int, R: int, theta: float, pi: float, d: int, n: int, loss: str, rng: np.random.Generator
) -> dict[str, float]:
    """One data set: the errors of the advised recipes and of a grid of others."""
    row, model = _row(L, R, d, n, pi, theta, loss), SparseTokens(L, R, theta, pi)
    X, y, _ = model.sample(n, d, rng)
    seed = int(rng.integers(2**31))
    found = {"promised_split": row.attention, "promised_twice": row.twice}
    found |= {"promised_pooled": row.pooled, "best_possible": row.best_possible}
    settings = {
        share: [(T, ridge, f"{share}/{T}/{ridge}") for T in SHARPNESS for ridge in RIDGES]
        for share in SHARES
    }
    settings.setdefault(row.share, []).append((row.temperature, row.ridge, "split"))
    settings[1.0].append((row.twice_temperature, row.twice_ridge, "twice"))
    for share, recipes in settings.items():
        n0 = n if share == 1 else round(share * n)
        rest = slice(0, n) if share == 1 else slice(n0, n)
        yes = np.mean(y[:n0] > 0)
        if not 0 < yes < 1 or len(set(y[rest])) < 2:
            found |= {name: min(pi, 1 - pi) for *_, name in recipes}
            continue
        q = two_steps(X[:n0], y[:n0], loss=loss, lr_w=RATE_W, lr_b=calibrated_rate(yes, loss)).q
        q /= np.linalg.norm(q)
        heights, features = X[rest] @ q, {}
        for T, ridge, name in recipes:
            if T not in features:
                s = softmax(T * heights, axis=1)
                features[T] = np.matmul(s[:, None], X[rest])[:, 0]
            fit = fit_readout(features[T], y[rest], ridge, loss=loss)
            found[name] = _error(model, q, T, fit.w, fit.b, seed)
    mean = X.mean(axis=1)
    for ridge in (0.1, 1.0, 10.0):
        fit = fit_readout(mean, y, ridge / L, loss=loss)
        found[f"pooled/{ridge}"] = _error(model, np.eye(1, d)[0], 0.0, fit.w, fit.b, seed)
    found["pooled"] = min(found[f"pooled/{ridge}"] for ridge in (0.1, 1.0, 10.0))
    name = {"attention": "split", "none": "silent"}.get(row.choice, row.choice)
    found["silent"] = min(pi, 1 - pi)
    found["promised"] = row.silent if row.choice == "none" else getattr(row, row.choice)
    found["advised"] = found[name]
    return found
