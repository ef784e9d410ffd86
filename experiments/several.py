"""Several needles: attention at its best sharpness against Bayes on typical bags."""

from __future__ import annotations

import numpy as np

from needle.data.tokens import SparseTokens
from needle.oracle.bayes import bayes_risk
from needle.oracle.separation import oracle_error


def several(
    L: int, R: int, theta: float, pi: float, bags: int, rng: np.random.Generator
) -> dict[str, float]:
    """Errors of Bayes and of attention at the best sharpness."""
    m = SparseTokens(L, R, theta, pi)
    return {
        "bayes": bayes_risk(m.L, m.R, m.theta, m.pi, rng, bags).error,
        "attention": oracle_error("attention", m, rng=rng).error,
    }
