"""∫ e^{K(z)} dz/z along a vertical line, panel by panel, for `needle.oracle.contour`."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

Array = np.ndarray
BLUR = 0.2  # of the tilted law, in its own spreads
PHASE = 6.0  # change over a panel of 16 points
TOLD = 1e-13  # share of an integral's size below which rounding hides it: a bound is told
_X, _W = np.polynomial.legendre.leggauss(16)


def log_integral(
    log_f: Callable[[Array], Array], s: float, apart: float, precision: float
) -> float:
    """log of |(1/2πi) ∫ f(z) dz/z| over s + iR, f(z) = E e^{zY} of some bags, real on the axis.

    That is P(Y > 0) for s > 0 and P(Y ≤ 0) for s < 0. The law of Y, tilted by e^{sY}, is blurred by
    a kernel of fourth order (a Gaussian's e^{−b}, times 1 + b) that is narrow beside it and beside
    `apart`: so the integral ends, and what it is changes by less than 1e-4.

    >>> normal = lambda z: -2 * z + z * z / 2  # Y ~ N(−2, 1)
    >>> round(math.exp(log_integral(normal, 2.0, math.inf, 1e-6)), 3)
    0.023
    """
    r, h = abs(s), 1e-2 * s
    below, origin, above = log_f(np.array([s - h, s, s + h]) + 0j).real
    if not -math.inf < origin < math.inf:
        return -math.inf
    spread = math.sqrt(max((below + above - 2 * origin) / (h * h), 0.01 / (r * r)))
    blur, width = min(BLUR * spread, apart, 0.5 / r), min(1 / spread, 2 * r)
    left, total, size = 0.0, 0.0, 0.0
    for _ in range(200):
        x = left + width * (_X + 1) / 2
        b = (blur * x) ** 2 / 2
        e = np.exp(log_f(s + 1j * x) - origin - b) * (1 + b) / (s + 1j * x)
        tallest = float(np.abs(e).max()) + 1e-300
        change = float(np.abs(np.diff(e)).sum()) / tallest + 1e-9
        if change > 2 * PHASE and width > 1e-3 * left:
            width *= max(PHASE / change, 0.2)
            continue
        total += width / 2 * float(_W @ e.real)
        size += width / 2 * float(_W @ np.abs(e))
        left += width
        rest = tallest * min(left, 2 * width / change)
        if rest < precision * max(abs(total), TOLD * size):
            break
        width *= min(max(PHASE / change, 0.5), 2.0)
    return float(origin) + math.log(
        max((total if s > 0 else -total), TOLD * size, 1e-300) / math.pi
    )
