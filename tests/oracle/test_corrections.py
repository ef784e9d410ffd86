"""First corrections, the price of a precise threshold, and what a bet saves: in numbers.

Every test would notice a tenth of what it is about.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import log_ndtr, ndtr
from scipy.stats import norm


def largest(log_L: float, R: int, x: float, pi: float) -> float:
    """Error of the largest token at θ = √(2 log L) + x, in logs: L may have a million digits."""
    a = math.sqrt(2 * log_L)

    def error(v: float) -> float:
        tall = math.exp(log_L + float(log_ndtr(-(a + v / a))))
        return pi * math.exp(-tall) * ndtr(v / a - x) ** R - (1 - pi) * math.expm1(-tall)

    grid = np.linspace(-10, 60, 141)
    best = grid[np.argmin([error(v) for v in grid])]
    found = minimize_scalar(error, bounds=(best - 1, best + 1), method="bounded")
    return float(found.fun)


@pytest.mark.parametrize("R", [1, 2, 4])
@pytest.mark.parametrize(("x", "pi"), [(-0.5, 0.5), (0.5, 0.3), (1.0, 0.1)])
def test_the_first_correction_for_several_needles(R, x, pi):
    """Appendix A: π Φ'(x) c/a (1 + x²/2 + log((k − p^R)/c)), c = R p^{R−1}, p = Φ(−x)."""
    log_L = 10**6 * math.log(10)
    p, k, a = float(ndtr(-x)), (1 - pi) / pi, math.sqrt(2 * log_L)
    c = R * p ** (R - 1)
    predicted = pi * norm.pdf(x) * c / a * (1 + x * x / 2 + math.log((k - p**R) / c))
    measured = largest(log_L, R, x, pi) - pi * p**R
    assert measured == pytest.approx(predicted, rel=0.03)


@pytest.mark.parametrize("rho", [0.8, 0.2])
def test_a_threshold_of_a_given_precision_finds_needles_of_the_stated_height(rho):
    """Half of the literal bags with a token at h pass τ(1 + ρ): τh + log(h − t) = log L + …"""
    L, tau, rng = 20_000, 1.5, np.random.default_rng(41)
    t = tau * (1 + rho)
    low, high = t + 0.1, 20.0
    for _ in range(60):
        h = (low + high) / 2
        excess = tau * h + math.log(h - t) - math.log(L) - tau**2 / 2 - math.log(rho * tau)
        low, high = (low, h) if excess > 0 else (h, high)
    pull = np.empty(300)
    for k in range(300):
        g = rng.standard_normal(L)
        pull[k] = ((g - t) * np.exp(tau * g)).sum()
    passed = [(pull + (x - t) * math.exp(tau * x) > 0).mean() for x in (0.93 * h, 1.07 * h)]
    assert passed[0] < 0.5 < passed[1]


def bet(log_share: float, c: float) -> float:
    """Least error over π of a bet on a share f of the places, δ = c √(2 log 1/π)."""
    unit = math.sqrt(-2 * log_share)

    def error(v: tuple[float, float]) -> float:
        f, s = v
        missed = 1 - f + f * ndtr(s - c * unit / math.sqrt(f))
        return float(missed + math.exp(min(log_ndtr(-s) - log_share, 50)))

    fs = c * c * np.linspace(0.9, 1.3, 401) if c < 0.85 else np.linspace(0.7, 1, 601)
    return min(error((f, unit + v)) for f in fs for v in np.linspace(-0.05, 2, 21))


@pytest.mark.parametrize("c", [0.5, 0.9])
def test_betting_at_rare_positives_saves_c_squared(c):
    """Chapter 2's vectorized weights, Appendix F: covering tends to error π, the bet to 1 − c²."""
    errors = [bet(-math.log(10) * k, c) for k in (10**4, 10**6)]
    assert errors[0] > errors[1] > 1 - c * c
    assert errors[1] == pytest.approx(1 - c * c, rel=0.03)
