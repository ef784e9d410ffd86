"""Attention in long bags: the law of its features as L → ∞, and what follows from it.

Where e^{4T²} ≪ L the sums of the softmax obey central limit theorems. Divided by r, the features
are then pooled ones with δ = θR/√L replaced by

    δ_eff Λ,   δ_eff = δ e^{Tθs − T²/2} √(1 − s²T²/(1+T²)),   Λ = R⁻¹ Σ_j e^{T g_j − T²/2}:

a `FeatureLaw` of its own, with a = Λ, r = 1 and no special direction. Whatever does not change when
features are divided by r and stretched along q̂ can be read from it: everything without ridge, so
the least error, the capacity, and the constant of 1/α. Appendix C, prp-c-long.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import ndtr

from ..data.law import FeatureLaw, Nodes
from ..data.tokens import SparseTokens, check_model
from ..kit.checks import check_real
from ..kit.nodes import falling_normals, softmax_sums
from .capacity import predict_capacity
from .limit import predict_readout

Array = np.ndarray
_BLOCK = 2**22  # random numbers drawn at a time
_FAR = 1e5  # α at which the 1/α law is read off, together with 2α


def gains(R: int, T: float) -> tuple[Array, Array]:
    """Λ at quadrature points, and their weights."""
    if R == 1:
        g = np.linspace(-9, 9 + 2 * T, 1201)
        weight = np.exp(-(g**2) / 2)
        return np.exp(T * g - T * T / 2), weight / weight.sum()
    groups, weight = falling_normals(R, 0, 12)
    peak, sums = softmax_sums(*groups[0], R, T)
    return np.exp(peak - T * T / 2) * sums[0] / R, weight


@dataclass(frozen=True, eq=False, kw_only=True)
class _LongBags(FeatureLaw):
    """Positives at distance θΛ, negatives at 0, both with unit noise."""

    R: int
    temperature: float = field(repr=False)

    def coefficients(self, y: Array, rng: np.random.Generator | None) -> tuple[Array, Array, Array]:
        T, a = self.temperature, np.zeros(len(y))
        up = np.flatnonzero(np.asarray(y) > 0)
        assert rng is not None or not len(up)
        step = max(1, _BLOCK // self.R)
        for k in range(0, len(up), step):
            part = up[k : k + step]
            g = rng.standard_normal((len(part), self.R))  # type: ignore[union-attr]
            a[part] = np.exp(T * g - T * T / 2).mean(axis=1)
        return a, np.zeros(len(y)), np.ones(len(y))

    @cached_property
    def nodes(self) -> Nodes:
        gain, weight = gains(self.R, self.temperature)
        y, a = np.append(np.ones(len(gain)), -1), np.append(gain, 0.0)
        share = np.append(self.pi * weight, 1 - self.pi)
        return Nodes(y, a, np.zeros(len(a)), np.ones(len(a)), share)


def long_bag_law(model: SparseTokens, *, temperature: float, cos: float) -> FeatureLaw:
    """The features of attention in long bags, divided by r: pooled ones at a random distance.

    Its `theta` is δ_eff. For questions without ridge only (see above).

    Examples
    --------
    >>> law = long_bag_law(SparseTokens(10**5, 30, 6.0, 0.5), temperature=0.5, cos=0.3)
    >>> round(law.theta, 4), round(predict_capacity(law), 3)
    (1.2244, 2.526)
    """
    m, T = check_model(model), check_real("temperature", temperature, 0)
    s = check_real("cos", cos, -1, 1)
    tilt = T * m.theta * s - T * T / 2 + math.log1p(-s * s * T * T / (1 + T * T)) / 2
    delta = m.snr * math.exp(min(tilt, 300.0))
    return _LongBags(name="long bags", theta=delta, pi=m.pi, R=m.R, temperature=T)


def long_bag_error(model: SparseTokens, *, temperature: float, cos: float) -> float:
    """Least error of a linear readout of attention features, by the law for long bags.

    min over k of (1−π)Φ(−k) + π E Φ(k − δ_eff Λ): pooled bags are the case T = 0.

    Examples
    --------
    >>> model = SparseTokens(L=10**5, R=30, theta=6.0, pi=0.5)
    >>> round(long_bag_error(model, temperature=0.5, cos=0.3), 4)
    0.2709
    """
    law = long_bag_law(model, temperature=temperature, cos=cos)
    y, gain, _, _, weight = law.nodes

    def error(k: float) -> float:
        return float(weight @ ndtr(y * (k - law.theta * gain)))

    ks = np.linspace(-9, 9 + law.theta, 73)
    start = ks[np.argmin([error(k) for k in ks])]
    return float(minimize_scalar(error, bounds=(start - 0.5, start + 0.5), method="bounded").fun)


class LongBags(NamedTuple):
    """What L → ∞ leaves of a readout of attention features.

    Attributes
    ----------
    error : the least error of any linear readout
    capacity : the largest α that can be separated
    rate : c₁ of the test error ε_∞ + c₁/α + …, square loss without ridge
    """

    error: float
    capacity: float
    rate: float


def predict_long_bags(model: SparseTokens, *, temperature: float, cos: float) -> LongBags:
    """The limits of error, capacity and the constant of 1/α as L → ∞ at fixed δ = θR/√L.

    With one value of Λ (T = 0: pooling) and π = ½ they are Φ(−δ/2), the capacity of two Gaussians
    at distance δ, and c₁ = Φ'(δ/2)(δ/4 + 1/δ). Appendix C, prp-c-long.

    Examples
    --------
    >>> model = SparseTokens(L=10**5, R=30, theta=6.0, pi=0.5)
    >>> [round(x, 4) for x in predict_long_bags(model, temperature=0.5, cos=0.3)]
    [0.2709, 2.5257, 0.3725]
    """
    law = long_bag_law(model, temperature=temperature, cos=cos)
    check_real("theta", law.theta, 0, open_low=True)

    def excess(alpha: float) -> float:
        near, last = (predict_readout(law, a, 0.0, loss="square") for a in (alpha, math.inf))
        return alpha * (near.test_error - last.test_error)

    rate = 2 * excess(2 * _FAR) - excess(_FAR)
    error = long_bag_error(model, temperature=temperature, cos=cos)
    return LongBags(error, predict_capacity(law), rate)
