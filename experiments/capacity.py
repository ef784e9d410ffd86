"""Capacity: certified data sets, training losses near the threshold, and maps of the theory."""

from functools import lru_cache

import numpy as np

from needle.data.classifiers import attention, gaussian_mixture, pooled
from needle.data.law import FeatureLaw
from needle.data.sidebyside import vectorized
from needle.data.tokens import SparseTokens
from needle.readout.capacity import (
    predict_capacity,
    predict_capacity_width,
    simulate_capacity,
    simulate_repair,
)
from needle.readout.fit import simulate_readout
from needle.readout.margin import simulate_margin

Numbers = dict[str, float]
SHARES, SCALED = np.linspace(0.5, 1.7, 13), np.linspace(-3, 3, 13)


@lru_cache
def known(name: str) -> tuple[FeatureLaw, float, float]:
    """The law of this name with its predicted capacity and width."""
    model = SparseTokens(L=10, R=1, theta=5.0, pi=0.5)
    law = {
        "pooled": lambda: pooled(model),
        "vectorized": lambda: vectorized(model),
        "attention": lambda: attention(model, temperature=2.0, cos=0.8),
        "uninformed": lambda: attention(model, temperature=2.0, cos=0.0),
        "coin": lambda: gaussian_mixture(mean=0.0, var_pos=1.0, var_neg=1.0),
        "mixture": lambda: gaussian_mixture(var_pos=1.0, var_neg=1.0),
        "unequal": lambda: gaussian_mixture(var_pos=0.5, var_neg=2.0, pi=0.3),
        "rare": lambda: attention(SparseTokens(6, 2, 2.5, 0.25), temperature=1.5, cos=0.6),
        "vectorized, L = 4": lambda: vectorized(SparseTokens(4, 1, 3.0, 0.5)),
    }[name]()
    return law, predict_capacity(law), predict_capacity_width(law)


def thresholds(classifier: str, d: int, sets: int, rng: np.random.Generator) -> Numbers:
    """A batch of data sets, each drawn to its last separable α.

    Mean and unbiased variance of it, and the share of data sets that are separable at 0.5 … 1.7
    times the predicted capacity α* ("share 0.5", …) and at α* + xσ/√d with x = −3 … 3 ("x -3.0",
    …), σ the predicted width.
    """
    law, capacity, width = known(classifier)
    last = np.array([simulate_capacity(law, d, rng) for _ in range(sets)])
    found = {"last": float(last.mean()), "variance": float(last.var(ddof=1))}
    for x in SHARES:
        found[f"share {x:.1f}"] = float(np.mean(last >= x * capacity))
    for x in SCALED:
        found[f"x {x:.1f}"] = float(np.mean(last >= capacity + x * width / d**0.5))
    return found


def repairs(classifier: str, d: int, draws: int, rng: np.random.Generator) -> Numbers:
    """σ² from the variance of least repairs at the capacity, unbiased, over a batch of draws."""
    law, capacity, _ = known(classifier)
    n = round(capacity * d)
    total = np.array([simulate_repair(law, n, rng) for _ in range(draws)])
    return {"squared width": float(capacity**3 * total.var(ddof=1) / n - 2 * capacity**2)}


def elsewhere(
    classifier: str,
    theta: float,
    pi: float,
    temperature: float,
    cosine: float,
    d: int,
    sets: int,
    rng: np.random.Generator,
) -> float:
    """The mean last separable α of a batch of data sets, for other models and queries."""
    model = SparseTokens(10, 1, theta, pi)
    law = attention(model, temperature=temperature, cos=cosine)
    if classifier != "attention":
        law = {"pooled": pooled, "vectorized": vectorized}[classifier](model)
    return float(np.mean([simulate_capacity(law, d, rng) for _ in range(sets)]))


def through_origin(d: int, rng: np.random.Generator) -> float:
    """The last separable α of two unit Gaussians at ±1, hyperplanes through the origin."""
    return simulate_capacity(known("mixture")[0], d, rng, intercept=False)


def margin(alpha: float, d: int, rng: np.random.Generator) -> Numbers:
    """The hyperplane of largest margin for attention with a query of cosine 0.8."""
    found = simulate_margin(known("attention")[0], d, alpha, rng)
    names = ("margin", "test_error", "signal", "bias")
    return {name: getattr(found, name) for name in names}


def training_loss(
    classifier: str, share: float, lam: float, d: int, rng: np.random.Generator
) -> float:
    """The logistic training loss at a share of the predicted capacity."""
    law, capacity, _ = known(classifier)
    return simulate_readout(law, d, share * capacity, lam, rng).train_loss


# theory of the larger maps: no chance in it, one trial


def star(
    temperature: float,
    cosine: float,
    rng: np.random.Generator | None,
    theta: float = 5.0,
    pi: float = 0.5,
    L: int = 10,
) -> float:
    """The capacity of attention features."""
    model = SparseTokens(L, 1, theta, pi)
    return predict_capacity(attention(model, temperature=temperature, cos=cosine))
