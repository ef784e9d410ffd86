"""When attention loses to averaging: how good a query must be, and how sharp it may be.

Two ways lead below pooling: a query that knows too little (`predict_crossing`, `crossing_law`), and
a softmax too sharp for bags with many needles, even with a perfect query (`sharpness_law`). The
laws hold for long bags with e^{4T²} ≪ L, where the sums of the softmax obey central limit theorems:
after division by r the features are pooled ones with δ = θR/√L replaced by

    δ_eff Λ,   δ_eff = δ e^{Tθs − T²/2} √(1 − s²T²/(1+T²)),   Λ = R⁻¹ Σ_j e^{T g_j − T²/2}.

Appendix C, prp-c-long and prp-c-sharp.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.special import ndtr

from ..data.classifiers import attention, pooled
from ..data.tokens import SparseTokens, check_model
from ..kit.checks import check_real
from ..kit.nodes import falling_normals, softmax_sums
from ..kit.records import ConvergenceError
from .limit import predict_readout

Array = np.ndarray


def _gains(R: int, T: float) -> tuple[Array, Array]:
    """Λ at quadrature points, and their weights."""
    if R == 1:
        g = np.linspace(-9, 9 + 2 * T, 1201)
        weight = np.exp(-(g**2) / 2)
        return np.exp(T * g - T * T / 2), weight / weight.sum()
    groups, weight = falling_normals(R, 0, 12)
    peak, sums = softmax_sums(*groups[0], R, T)
    return np.exp(peak - T * T / 2) * sums[0] / R, weight


def _best_threshold(delta: float, gains: Array, weight: Array, pi: float) -> float:
    """min over k of (1−π)Φ(−k) + π E Φ(k − δΛ)."""

    def error(k: float) -> float:
        return float((1 - pi) * ndtr(-k) + pi * (weight @ ndtr(k - delta * gains)))

    ks = np.linspace(-9, 9 + delta, 73)
    start = ks[np.argmin([error(k) for k in ks])]
    return float(minimize_scalar(error, bounds=(start - 0.5, start + 0.5), method="bounded").fun)


def long_bag_error(model: SparseTokens, *, temperature: float, cos: float) -> float:
    """Least error of a linear readout of attention features, by the law for long bags.

    min over k of (1−π)Φ(−k) + π E Φ(k − δ_eff Λ): pooled bags are the case T = 0.

    Examples
    --------
    >>> model = SparseTokens(L=10**5, R=30, theta=6.0, pi=0.5)
    >>> round(long_bag_error(model, temperature=0.5, cos=0.3), 4)
    0.2709
    """
    m, T = check_model(model), check_real("temperature", temperature, 0)
    s = check_real("cos", cos, -1, 1)
    delta = m.theta * m.R / math.sqrt(m.L)
    tilt = T * m.theta * s - T * T / 2 + math.log1p(-s * s * T * T / (1 + T * T)) / 2
    return _best_threshold(delta * math.exp(min(tilt, 300.0)), *_gains(m.R, T), m.pi)


def crossing_law(model: SparseTokens, *, temperature: float) -> float:
    """The cosine s* at which attention and pooling err equally often, by the law for long bags.

    For a weak δ it solves θs* = T/2 − log(1 − s*²T²/(1+T²))/(2T): s* ≈ T/(2θ). Infinite if even a
    perfect query loses.

    Examples
    --------
    >>> for L, R, theta, T in [(10**4, 10, 6, 1.0), (10**3, 10, 4, 0.5), (10**4, 1, 60, 0.5)]:
    ...     model = SparseTokens(L=L, R=R, theta=theta, pi=0.5)
    ...     print(f"{crossing_law(model, temperature=T):.4f} {T / (2 * theta):.4f}")
    0.0869 0.0833
    0.0686 0.0625
    0.0053 0.0042
    """
    m = check_model(model)
    check_real("theta", m.theta, 0, open_low=True)
    T = check_real("temperature", temperature, 0, open_low=True)
    plain = long_bag_error(m, temperature=0.0, cos=0.0)
    return _crossing(lambda s: long_bag_error(m, temperature=T, cos=s) - plain)


def predict_crossing(
    model: SparseTokens,
    *,
    temperature: float,
    alpha: float = math.inf,
    lam: float = 0.0,
    loss: str = "square",
) -> float:
    """The cosine s* at which trained attention and pooled readouts err equally often.

    By `predict_readout`, at the same alpha and lam for both; above s* attention wins. Infinite if a
    perfect query loses too.

    Examples
    --------
    >>> model = SparseTokens(L=1000, R=10, theta=4.0, pi=0.5)
    >>> round(predict_crossing(model, temperature=0.5), 3)
    0.069
    """
    m = check_model(model)
    check_real("theta", m.theta, 0, open_low=True)
    T = check_real("temperature", temperature, 0, open_low=True)
    plain = predict_readout(pooled(m), alpha, lam, loss=loss).test_error

    def excess(s: float) -> float:
        law = attention(m, temperature=T, cos=s, resolution=None if loss == "square" else 240)
        try:
            return predict_readout(law, alpha, lam, loss=loss).test_error - plain
        except ConvergenceError as stopped:
            if stopped.estimate.train_loss < 1e-3:  # separable: as good as a query can be
                return -plain
            raise

    return _crossing(excess)


def _crossing(excess: Callable[[float], float]) -> float:
    """Where `excess` changes from above 0 to below on [0, 1], or infinity."""
    if excess(1.0) > 0:
        return math.inf
    if excess(0.0) <= 0:
        raise ConvergenceError("attention wins even with a query that knows nothing", 0.0)
    return float(brentq(excess, 0.0, 1.0, xtol=1e-5))


class SharpnessLaw(NamedTuple):
    """With a perfect query: the best sharpness, and the one beyond which attention loses."""

    best: float
    losing: float


def sharpness_law(model: SparseTokens) -> SharpnessLaw:
    """How sharp a softmax with a perfect query may be, for a share ρ = R/L of needles in long bags.

    The share p(T) = ρe^{Tθ}/(1 − ρ + ρe^{Tθ}) of attention on the needles gains over ρ what the
    noise loses, e^{T²/2}√(1+T²):

        best:    θ(1 − p) = T + T/(1+T²)      (T ≈ θ(1−ρ)/2 for weak needles),
        losing:  p/ρ = e^{T²/2}√(1+T²).

    Where bags are short and needles strong the softmax finds them, and errors are far smaller.

    Examples
    --------
    >>> law = sharpness_law(SparseTokens(L=1000, R=30, theta=1.0, pi=0.5))
    >>> round(law.best, 3), round(law.losing, 2)
    (0.534, 1.16)
    """
    m = check_model(model)
    check_real("theta", m.theta, 0, open_low=True)
    rho = m.R / m.L
    if rho == 1:
        return SharpnessLaw(0.0, 0.0)

    def log_gain(T: float) -> float:
        return T * m.theta - float(np.logaddexp(math.log1p(-rho), math.log(rho) + T * m.theta))

    def slope(T: float) -> float:
        share = rho * math.exp(log_gain(T))
        return m.theta * (1 - share) - T - T / (1 + T * T)

    best = float(brentq(slope, 0.0, m.theta + 1))
    net = lambda T: log_gain(T) - T * T / 2 - math.log1p(T * T) / 2  # noqa: E731
    return SharpnessLaw(best, float(brentq(net, best, 2 * best + m.theta + 3)))
