"""Means of e^{zY} over cells of heights, for `needle.oracle.contour`."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

Array = np.ndarray


@dataclass(frozen=True)
class Law:
    """Of each of `count` tokens: log shares of cells, mean y and half of y's change in each, and
    the log share of what is lower still, whose y is nothing."""

    count: float
    log_p: Array
    y: Array
    half: Array
    log_low: float
    split: float

    def log_mean_exp(self, z: Array) -> tuple[Array, Array]:
        v = self.log_p + z[:, None] * self.y
        top = max(float(v.real.max()), self.log_low)
        e, tall = mean_exp(v - top, z[:, None] * self.half), self.y > self.split
        low = e[:, ~tall].sum(axis=1) + math.exp(self.log_low - top) + 1e-290
        won = log1p(e[:, tall].sum(axis=1) / low)
        return self.count * (top + np.log(low)), self.count * won


def mean_exp(x: Array, half: Array) -> Array:
    """e^x times sinh(half)/half: the mean of an exponential over a cell; `half` (k, cells)."""
    found = np.exp(x)
    wide = np.flatnonzero(np.abs(half).max(axis=0) > 0.05)
    if len(wide):
        half = half[:, wide]
        half = np.clip(half.real, -60.0, 60.0) + 1j * half.imag  # beyond it e^x is 0
        half[half == 0] = 1e-9
        found[:, wide] *= np.sinh(half) / half
    return found


def log1p(z: Array) -> Array:
    """log(1 + z), to the last digit where |z| is 1e-9; NumPy's loses half of them."""
    x, y, large = z.real, z.imag, np.abs(z) > 1e3
    if large.any():
        x, y = np.where(large, 0.0, x), np.where(large, 0.0, y)
    found = np.log1p(2 * x + x * x + y * y) / 2 + 1j * np.arctan2(y, 1 + x)
    return np.where(large, np.log(1 + z), found) if large.any() else found
