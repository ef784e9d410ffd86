"""Chapter 10: descent on everything at once in one pass, and more than two steps."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq

from needle.data.classifiers import attention
from needle.data.tokens import SparseTokens
from needle.kit.records import Training
from needle.learning.limit import predict_learning, samples_for
from needle.readout.limit import predict_readout
from needle.steps.alignment import predict_alignment
from needle.training.batch import gradient
from needle.training.onepass import predict_training
from needle.training.rounds import simulate_rounds
from needle.training.walk import simulate_training

TIMES = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 12.0)


def flow(
    loss: str, pi: float, lr: float, lr_b: float, rng: np.random.Generator
) -> dict[str, float]:
    """One-pass descent at d = 1000, L = 10, θ = 4."""
    model, rates = SparseTokens(10, 1, 4.0, pi), {"lr_q": lr, "lr_w": lr, "lr_b": lr_b}
    options = {"loss": loss, "method": "exact", **rates}
    run = simulate_training(model, 1000, TIMES, rng, **options)
    names = ("query_cos", "readout_cos", "query_norm", "readout_norm", "bias", "test_error")
    return {f"{name}@{one.samples:g}": getattr(one, name) for one in run for name in names}


def needed(L: int, theta: float, lr: float, rng: np.random.Generator) -> dict[str, float]:
    """Samples per dimension until the flow has a cosine above ½ and an error below 5 % for good.

    For good means to the end of the horizon 30 L/(π(1−π)θ⁴) + ½ + 4√2 L/(πθ²lr); π = ½,
    η_q = η_w = lr, η_b = 8.
    """
    model = SparseTokens(L, 1, theta, 0.5)
    horizon = 120 * L / theta**4 + 0.5 + 2 * math.sqrt(32) * L / (theta**2 * lr)
    times = horizon * np.linspace(0, 1, 1201)
    rates = {"lr_q": lr, "lr_w": lr, "lr_b": 8.0}
    run = predict_training(model, times, tolerance=0.02, **rates)
    cos, error = (np.array([getattr(x, name) for x in run]) for name in ("query_cos", "test_error"))

    def last(good: np.ndarray) -> float:
        bad = np.flatnonzero(~good)
        return float(times[bad[-1] + 1]) if bad[-1] + 1 < len(times) else math.nan

    first = np.flatnonzero(cos >= 0.5)
    return {
        "cosine": last(cos >= 0.5),
        "error": last(error <= 0.05),
        "first": float(times[first[0]]) if first.size else math.nan,
        "end_cosine": float(cos[-1]),
        "end_error": float(error[-1]),
    }


def goals(L: int, theta: float, rng: np.random.Generator) -> dict[str, float]:
    """The same two goals for two steps (η_w = ½, η_b = 4) and for the best learner.

    The error is that of a readout on half of the samples, at sharpness 2.5 and ridge 0.1, behind a
    query from the other half.
    """
    model = SparseTokens(L, 1, theta, 0.5)

    def cosine(alpha: float) -> float:
        return predict_alignment(model, alpha, lr_b=4.0).query_cos

    def staged_error(alpha: float) -> float:
        law = attention(model, temperature=2.5, cos=cosine(alpha / 2))
        return predict_readout(law, alpha / 2, 0.1).test_error

    def reached(value: Callable[[float], float], goal: float, low: float = 1e-2) -> float:
        excess = lambda log: value(math.exp(log)) - goal  # noqa: E731
        return math.exp(brentq(excess, math.log(low), math.log(50.0), xtol=5e-3))

    heights = np.linspace(0.02, 0.5, 100)
    return {
        "steps_cosine": reached(cosine, 0.5),
        "steps_error": reached(staged_error, 0.05),
        "best_cosine": float(samples_for(model, heights).max()),
        "best_error": reached(lambda alpha: predict_learning(model, alpha).test_error, 0.05, 1e-4),
    }


def basin(
    pi: float, size: float, cos: float, lr: float, lr_b: float, rng: np.random.Generator
) -> dict[str, float]:
    """Where the flow is after 30 samples per dimension, and its lowest cosine; L = 20, θ = 5.

    It starts at a query of length `size` and cosine `cos` and a readout of length 0.1.
    """
    model, times = SparseTokens(20, 1, 5.0, pi), np.linspace(0, 30, 121)
    rates = {"lr_q": lr, "lr_w": lr, "lr_b": lr_b}
    start = Training(0.0, cos, 0.0, size, 0.1, 0.0, 0.0, math.nan)
    run = predict_training(model, times, start=start, tolerance=0.03, **rates)
    return {
        "cos": run[-1].query_cos,
        "lowest": min(one.query_cos for one in run),
        "error": run[-1].test_error,
        "size": run[-1].query_norm,
    }


def ends(lr: float, lr_b: float, halving: float, rng: np.random.Generator) -> dict[str, float]:
    """Test error of the flow against samples, L = 10, θ = 5, π = ½.

    The rates of query and readout halve every `halving` samples (0: never), the intercept's stays.
    """
    model, found = SparseTokens(10, 1, 5.0, 0.5), {}
    totals = (1, 2, 4, 8, 16, 32, 64, 128)
    looks = sorted({*totals, *(np.arange(1, 128 / halving) * halving if halving else ())})
    last, done = (0.1, 0.1), 0.0
    for samples in looks:
        rate = lr * 2.0 ** -math.floor(done / halving) if halving else lr
        rates = {"lr_q": rate, "lr_w": rate, "lr_b": lr_b}
        (last,) = predict_training(model, [samples - done], start=last, tolerance=5e-3, **rates)
        assert isinstance(last, Training)
        done = samples
        if samples in totals:
            found |= {f"error@{samples:g}": last.test_error, f"cos@{samples:g}": last.query_cos}
    return found


def staged(L: int, alpha: float, rng: np.random.Generator) -> dict[str, float]:
    """Best of a grid of shares, sharpness and ridges for two steps and a readout on the rest."""
    model, best = SparseTokens(L, 1, 5.0, 0.5), (1.0, 0.0, 0.0, 0.0)
    for share in (0.3, 0.5, 0.7):
        cos = predict_alignment(model, share * alpha, lr_b=4.0).query_cos
        for T in (1.5, 2.5, 4.0):
            law = attention(model, temperature=T, cos=cos)
            for lam in (0.01, 0.1):
                error = predict_readout(law, (1 - share) * alpha, lam).test_error
                best = min(best, (error, share, T, lam))
    return dict(zip(("error", "share", "sharpness", "ridge"), best, strict=True))


def rounds(L: int, theta: float, kind: str, fresh: int, rng: np.random.Generator) -> dict:
    """Ten rounds on literal tokens at d = 200: one batch of 200, or fresh batches of 100 a step."""
    model = SparseTokens(L, 1, theta, 0.5)
    alpha = 0.5 if fresh else 1.0
    path = simulate_rounds(model, 200, alpha, 10, rng, kind=kind, fresh=bool(fresh))
    return {f"cos@{k + 1}": float(cos) for k, cos in enumerate(path)}


def literal(L: int, theta: float, rng: np.random.Generator) -> dict[str, float]:
    """Six rounds of the recipe as it stands, the same bags, d = 200, α = 1; η_w = ½, η_b = 4.

    A round is a step on readout and intercept, then one on the query. Its rate is constant and
    such that the first round ends at sharpness 1.
    """
    d, found, lr_q = 200, {}, math.nan
    X, y, _ = SparseTokens(L, 1, theta, 0.5).sample(d, d, rng)
    q, w, b = np.zeros(d), np.zeros(d), 0.0
    for k in range(1, 7):
        slope = gradient(X, y, q, w, b)
        w, b = w - 0.5 * slope.w, b - 4.0 * slope.b
        pull = gradient(X, y, q, w, b).q
        lr_q = 1 / float(np.linalg.norm(pull)) if k == 1 else lr_q
        q = q - lr_q * pull
        size = float(np.linalg.norm(q))
        found |= {f"cos@{k}": float(q[0]) / size, f"size@{k}": size, f"bias@{k}": b}
    return found
