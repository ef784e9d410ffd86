"""Where the limit of descent cannot be trusted: what happens to a data set in R^d by accident.

The limit d → ∞ at a fixed number of steps knows neither of two accidents of size 1/√d that every
data set has: its random starts lean on ξ with a cosine of about 1/√d, and its share of positives is
off by about √(π(1−π)/n). Descent makes them grow: a lean that it amplifies in every step becomes
visible after O(log d) steps. So the limit is run again, on the same population, with both accidents
put in by hand, to either side. What changes sign with them is scatter from data set to data set;
where their mean is not the limit, the mean over data sets of this dimension is not either.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from ..data.tokens import SparseTokens
from ..kit.records import Descent

Array = np.ndarray
MOST = {"test_error": 0.05, "query_cos": 0.1}  # by which accidents may move a mean


def with_accidents(
    model: SparseTokens, alpha: float, d: int, lean: Array
) -> Iterator[tuple[SparseTokens, Array]]:
    """Shares of positives and leans (k, 1) of the starts, one standard deviation to either side.

    >>> model = SparseTokens(L=10, R=1, theta=4.0, pi=0.5)
    >>> [(law.pi, leans.ravel()) for law, leans in with_accidents(model, 1, 100, np.zeros((2, 1)))]
    [(0.45, array([-0.1, -0.1])), (0.55, array([0.1, 0.1]))]
    """
    off = math.sqrt(model.pi * (1 - model.pi) / (alpha * d))
    for sign in (-1, 1):
        pi = min(max(model.pi + sign * off, model.pi / 2), (1 + model.pi) / 2)
        yield replace(model, pi=pi), np.clip(lean + sign / math.sqrt(d), -1, 1)


def moved_by_accident(limit: Sequence[Descent], others: Sequence[Sequence[Descent]]) -> str:
    """What accidents change, in words; empty where they change little."""
    for name, most in MOST.items():
        moved = [
            abs(float(np.mean([getattr(run[k], name) for run in others])) - getattr(one, name))
            for k, one in enumerate(limit)
        ]
        worst = int(np.argmax(moved))
        if moved[worst] > most:
            return (
                "accidents of a data set (starts that lean by 1/√d, a share of positives that is "
                f"off) move the mean {name} by {moved[worst]:.2f} at step {limit[worst].step}: the "
                "limit is not what such data sets do; take the mean of simulate_descent, or a "
                "larger d"
            )
    return ""
