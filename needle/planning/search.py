"""Downhill in one to three dimensions, with slopes: few looks, in a box.

A step is Newton's with a curvature that is learned on the way (BFGS, damped as by Powell), no
longer along an axis than a reach, which is halved where a look goes up and doubled where it goes
down. The search ends where the next step promises less than `GAIN`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

Array = np.ndarray
GAIN, LONGEST, MOST = 3e-3, 1.2, 25
BEND = 0.35  # curvature to begin with, of the log of an error; more for small ones


def downhill(
    value: Callable[[Array], tuple[float, Array]],
    start: Sequence[float] | Array,
    low: Sequence[float],
    high: Sequence[float],
) -> tuple[Array, float]:
    """A place of low value, and the value; `value` gives the value, or inf, and its slopes.

    >>> bowl = lambda p: ((p[0] - 3) ** 2 + 9 * p[1] ** 2, np.array([2 * (p[0] - 3), 18 * p[1]]))
    >>> place, least = downhill(bowl, (-5, 1), (-9, -9), (9, 9))
    >>> place.round(1) + 0.0
    array([3., 0.])
    """
    a, b = np.asarray(low, float), np.asarray(high, float)
    best = np.clip(np.asarray(start, float), a, b)
    least, slope = value(best)
    if not math.isfinite(least):
        return best, least
    bend, reach = BEND * max(1.0, -least / 2) * np.eye(len(best)), LONGEST
    for _ in range(MOST):
        step = _step(best, slope, bend, a, b, reach)
        promise = -float(slope @ step + step @ bend @ step / 2)
        if not promise > GAIN:
            break
        found, there = value(best + step)
        if math.isfinite(found):
            bend = _learned(bend, step, there - slope)
        if found < least:
            best, slope, least, reach = best + step, there, found, min(2 * reach, LONGEST)
        else:
            reach = float(np.abs(step).max()) / 2
    return best, least


def lowest(
    value: Callable[[Array], tuple[float, Array]],
    starts: Sequence[Sequence[float] | Array],
    low: Sequence[float],
    high: Sequence[float],
    plain: float,
) -> Array:
    """`downhill` from the first start; from the others too where it ends above `plain`, a plain."""
    found = []
    for start in starts:
        found.append(downhill(value, start, low, high))
        if found[-1][1] < plain:
            break
    return min(found, key=lambda end: end[1])[0]


def _step(place: Array, slope: Array, bend: Array, low: Array, high: Array, reach: float) -> Array:
    """Newton's step among the axes that are free to move, cut at the box and at the reach."""
    free = ~(((place <= low) & (slope > 0)) | ((place >= high) & (slope < 0)) | (low == high))
    step = np.zeros(len(place))
    if free.any():
        step[free] = -np.linalg.solve(bend[np.ix_(free, free)], slope[free])
        step *= min(1.0, reach / max(float(np.abs(step).max()), 1e-300))
    return np.clip(place + step, low, high) - place


def _learned(bend: Array, step: Array, change: Array) -> Array:
    """The curvature with what one step showed; the damping keeps it positive."""
    pulled = bend @ step
    expected, seen = float(step @ pulled), float(step @ change)
    if seen < 0.2 * expected:
        part = 0.8 * expected / (expected - seen)
        change = part * change + (1 - part) * pulled
        seen = float(step @ change)
    return bend - np.outer(pulled, pulled) / expected + np.outer(change, change) / seen
