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
WIDE, NEAR, APART = 2.5, 0.3, 1.0  # spread of points that look for more; a step; two places
FAINTEST = -1e6  # logarithm of what is never met


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


def _climbed(log_f: Callable[[Array], Array], m: Array, z: Array) -> tuple[Array, bool]:
    """From m to where φf has its mean nearby: as far each time as its weight is shared."""
    sure = False
    for _ in range(_RUNGS):
        weight = log_f(z + m) - z @ m - m @ m / 2
        power = _highest(np.zeros(len(z)), weight, 0.0)
        old, m = m, np.exp(power * weight - logsumexp(power * weight)) @ (z + m)
        if power == 1.0 and (sure or np.linalg.norm(m - old) < NEAR):
            return m, True
        sure = power == 1.0
    return m, False


def _ladder(log_f: Callable[[Array], Array], z: Array) -> tuple[Array, bool]:
    """The mean of φf, by powers of f."""
    m, power = np.zeros(z.shape[1]), 0.0
    for _ in range(_RUNGS):
        log_value, base = log_f(z + m), -z @ m - m @ m / 2
        before, power = power, _highest(base, log_value, power)
        weight = base + power * log_value
        m = np.exp(weight - logsumexp(weight)) @ (z + m)
        if power == before == 1.0:
            break
    return m, power == 1.0


def _beside(log_f: Callable[[Array], Array], means: list[Array], z: Array) -> Array:
    """log φf/q at points of q, which is N(m, I) for each m alike."""
    parts = np.array_split(z, len(means))
    x = np.concatenate([part + m for part, m in zip(parts, means, strict=True)])
    q = logsumexp([x @ m - m @ m / 2 for m in means], axis=0) - math.log(len(means))
    return np.asarray(log_f(x) - q)


def rare_mean(log_f: Callable[[Array], Array], width: int) -> tuple[float, float]:
    """E f(x) over x ~ N(0, I) of so many coordinates, and the points that share it; f ≤ 1.

    The relative error is about 1/√points, or less; a mean below 1e-16 is 0. Where no rung leads to
    f itself the points are 0 and the mean is a guess. Where f is flat and next to nothing for all
    points but a few that are never met, the ladder leads nowhere: so one climbs too from the best
    of points spread more widely, and both ends share the last points if they differ.

    Examples
    --------
    >>> from scipy.special import log_ndtr, ndtr
    >>> found, points = rare_mean(lambda x: log_ndtr(x.sum(axis=1) - 9), 3)  # Φ(−9/2) = 3.4e-6
    >>> f"{found / ndtr(-4.5):.2f}", points > 500
    ('1.00', True)
    """

    def log_value(x: Array) -> Array:
        return np.maximum(log_f(x), FAINTEST)

    z = ndtri(sobol(width, _CLIMB, 1))
    m, arrived = _ladder(log_value, z)
    far = WIDE * z
    best = far[np.argmax(log_value(far) - np.einsum("ij,ij->i", far, far) / 2)]
    other, there = _climbed(log_value, best, z)
    means = [m]
    if there and np.linalg.norm(other - m) > APART:
        means, arrived = ([m, other] if arrived else [other]), True
    weight = _beside(log_value, means, ndtri(sobol(width, _LAST, 2)))
    found = float(np.exp(logsumexp(weight)) / len(weight))
    if found < 1e-16 and arrived:
        return 0.0, float(len(weight))
    return found, _shared(weight) if arrived else 0.0
