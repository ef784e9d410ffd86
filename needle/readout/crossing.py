"""When attention loses to averaging: how good a query must be, and how sharp it may be.

Two ways lead below pooling: a query that knows too little (`predict_crossing`, `crossing_law`), and
a softmax too sharp for bags with many needles, even with a perfect query (`sharpness_law`). The
laws hold for long bags with e^{4T²} ≪ L, as in `needle.readout.longbags`. Appendix C, prp-c-long
and prp-c-sharp.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from ..data.classifiers import attention, pooled
from ..data.tokens import SparseTokens, check_model
from ..kit.checks import check_real
from ..kit.records import ConvergenceError
from .limit import predict_readout
from .longbags import long_bag_error


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
    perfect, blind = excess(1.0), excess(0.0)
    if perfect == blind == 0:
        raise ConvergenceError("attention and pooling err equally often with every query", 0.0)
    if perfect > 0:
        return math.inf
    if blind <= 0:
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
