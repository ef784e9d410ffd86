"""The longest token: a rule that looks at norms alone and learns no direction.

The squared norm of a straw is χ²_d, that of a needle non-central χ²_d(θ²). In bags of L tokens the
largest norm tells the classes apart from θ⁴ ≈ 4d log L on, whatever ξ is. Chapter 11.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from scipy.stats import chi2, ncx2

from ..data.tokens import SparseTokens, check_model
from ..kit.checks import check_integer
from .rules import OracleError, minimum

Array = np.ndarray


def longest_token_error(model: SparseTokens, d: int) -> OracleError:
    """The least error of comparing max_ℓ |x_ℓ|² with a threshold, tokens d wide: exact at every L.

    With F, F_θ the distribution functions of straws and needles, P(miss) = F(t)^{L−R} F_θ(t)^R and
    P(false alarm) = 1 − F(t)^L. `threshold` is that of the squared norm.

    Examples
    --------
    >>> model = SparseTokens(L=1000, R=1, theta=11.0, pi=0.5)
    >>> round(float(longest_token_error(model, 100)), 3)
    0.017
    """
    m, d = check_model(model), check_integer("d", d, 1)

    def error(rarity: Array) -> Array:
        """At the threshold that one straw exceeds with probability e^{−rarity}."""
        t = chi2.isf(np.exp(-rarity), d)
        quiet = np.log1p(-np.exp(-rarity))
        with np.errstate(divide="ignore"):
            needle = np.log(ncx2.cdf(t, d, m.theta**2))
        miss = np.exp((m.L - m.R) * quiet + m.R * np.minimum(needle, 0))
        return m.pi * miss - (1 - m.pi) * np.expm1(m.L * quiet)

    ends = np.array([1e-3, 1.0, math.log(m.L) + 3, math.log(m.L) + 40, 600.0])
    best = min((minimum(error, *pair) for pair in pairwise(ends)), key=_value)
    if best[1] >= min(m.pi, 1 - m.pi):
        return OracleError(min(m.pi, 1 - m.pi), threshold=math.inf if m.pi <= 0.5 else 0.0)
    return OracleError(best[1], threshold=float(chi2.isf(math.exp(-best[0]), d)))


def _value(found: tuple[float, float]) -> float:
    return found[1]
