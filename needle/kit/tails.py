"""Means of what is tiny nearly everywhere: an error rate of 1e-9 over Gaussian coordinates.

E f(x), x ~ N(0, I), lives where φ(x)f(x) is largest. With x = z + m, z ~ N(0, I), it is the mean of
f(x) exp(−⟨z, m⟩ − |m|²/2), for any m; the best is near the mean of the law φf. A ladder of
powers γ ↑ 1 leads there: m becomes the mean of φf^γ, estimated from the points of the rung before,
and γ rises as far as one point in 25 shares the weight.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.special import logsumexp, ndtri

from .nodes import sobol

Array = np.ndarray
_RUNGS, _CLIMB, _LAST = 60, 11, 13  # rungs at most; log₂ of the points of a rung, and of the end
_NOTHING = math.log(1e-16)  # what is smaller is 0


def _shared(log_weight: Array) -> float:
    """The effective number of points, (Σw)²/Σw²."""
    return float(np.exp(2 * logsumexp(log_weight) - logsumexp(2 * log_weight)))


def _highest(base: Array, log_value: Array, low: float) -> float:
    """The largest power of f, from `low` up, whose weight one point in 25 shares."""

    def shared(power: float) -> bool:
        return _shared(base + power * log_value) > 0.04 * len(base)

    if shared(1.0):
        return 1.0
    high = 1.0
    while high - low > 0.02 * high and high > 1e-40:
        middle = (low + high) / 2 if low > high / 8 else high / 4
        low, high = (middle, high) if shared(middle) else (low, middle)
    return low


def rare_mean(log_f: Callable[[Array], Array], width: int) -> tuple[float, float]:
    """E f(x) over x ~ N(0, I) of so many coordinates, and the points that share it; f ≤ 1.

    The relative error is about 1/√points, or less; a mean below 1e-16 is 0. Where no rung leads to
    f itself the points are 0 and the mean is a guess.

    Examples
    --------
    >>> from scipy.special import log_ndtr, ndtr
    >>> found, points = rare_mean(lambda x: log_ndtr(x.sum(axis=1) - 9), 3)  # Φ(−9/2) = 3.4e-6
    >>> f"{found / ndtr(-4.5):.2f}", points > 500
    ('1.00', True)
    """
    z, m, power = ndtri(sobol(width, _CLIMB, 1)), np.zeros(width), 0.0
    for _ in range(_RUNGS):
        log_value, base = log_f(z + m), -z @ m - m @ m / 2
        before, power = power, _highest(base, log_value, power)
        weight = base + power * log_value
        if logsumexp(weight) - math.log(len(z)) < _NOTHING:  # f ≤ f^γ
            return 0.0, float(len(z))
        m = np.exp(weight - logsumexp(weight)) @ (z + m)
        if power == before == 1.0:
            break
    z = ndtri(sobol(width, _LAST, 2))
    weight = log_f(z + m) - z @ m - m @ m / 2
    return float(np.exp(logsumexp(weight)) / len(z)), _shared(weight) if power == 1.0 else 0.0
