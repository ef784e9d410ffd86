"""What a cross-validated number is worth: intervals that know that folds share their samples.

In r repetitions of k folds all r·k scores come from the same n samples; their scatter divided by
√(rk) shrinks to nothing as r grows, the uncertainty about other samples does not. Nadeau and
Bengio (2003) replace 1/(rk) by 1/(rk) + (share tested)/(share trained) = 1/(rk) + 1/(k − 1), and
Bouckaert and Frank (2004) found the t-test made from it to keep its level for 10 × 10 folds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from scipy import stats

from ..kit.checks import check_array, check_integer
from ..kit.records import Estimate

LEVEL = 0.95  # coverage of the intervals


class Corrected(NamedTuple):
    """A cross-validated mean, its corrected standard error, and its interval."""

    mean: float
    standard_error: float
    low: float
    high: float


def corrected(mean: Estimate, variance: Estimate) -> Corrected:
    """The 95 % interval for a score from its mean in each repetition, and its folds' variance.

    Parameters
    ----------
    mean : over the repetitions, with the standard error that independent repetitions would have
    variance : over the 10 folds of one repetition, averaged over repetitions

    Examples
    --------
    >>> made = corrected(Estimate(0.8, 0.01, 10), Estimate(0.0144, 0.0, 10))
    >>> round(made.standard_error, 3), round(made.low, 2), round(made.high, 2)
    (0.041, 0.72, 0.88)
    """
    folds, r = 10, check_integer("trials", mean.trials, 2)
    between = r * mean.standard_error**2
    total = (r * (folds - 1) * variance.estimate + folds * (r - 1) * between) / (r * folds - 1)
    error = math.sqrt((1 / (r * folds) + 1 / (folds - 1)) * total)
    reach = float(stats.t.ppf((1 + LEVEL) / 2, r * folds - 1)) * error
    return Corrected(mean.estimate, error, mean.estimate - reach, mean.estimate + reach)


def over_folds(scores: Iterable[float], *, folds: int) -> Corrected:
    """The same from the scores of all folds of all repetitions, in any order.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> made = over_folds(rng.normal(0.8, 0.12, size=100), folds=10)
    >>> round(made.standard_error, 2), round(made.high - made.low, 2)
    (0.04, 0.16)
    """
    values = check_array("scores", list(scores), "rk")
    folds = check_integer("folds", folds, 2)
    J = check_integer("number of scores", len(values), 2)
    error = math.sqrt((1 / J + 1 / (folds - 1)) * float(values.var(ddof=1)))
    reach = float(stats.t.ppf((1 + LEVEL) / 2, J - 1)) * error
    mean = float(values.mean())
    return Corrected(mean, error, mean - reach, mean + reach)
