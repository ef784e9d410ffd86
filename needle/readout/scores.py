"""Beyond the error: AUC, and recall at a chosen rate of false alarms, of a trained readout.

Answering "no" always has the error π, so with rare positives the error says little. The score of a
readout is a mixture of Gaussians in each class (`needle.data.law.Scores`); with weights p_i, q_j,

    AUC = Σ p_i q_j Φ((m_i − m_j)/√(s_i² + s_j²)),    recall(f) = Σ p_i Φ((m_i − t)/s_i),

where the threshold t lets through the share f of the negatives.
That scores are Gaussian given (a, c, r) is Chapter 1, prop-1-law.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr

from ..data.law import FeatureLaw, Scores
from ..kit.checks import check_is, check_real
from .limit import OrderParameters


class Judged(NamedTuple):
    """Test error at the readout's own threshold, AUC, and recall at a rate of false alarms."""

    error: float
    auc: float
    recall: float


def predicted_scores(law: FeatureLaw, o: OrderParameters) -> Scores:
    """The law of the test score behind order parameters.

    >>> from needle.readout.limit import order_parameters
    >>> from needle.data.classifiers import gaussian_mixture
    >>> law = gaussian_mixture(var_pos=1.0, var_neg=1.0)
    >>> scores = predicted_scores(law, order_parameters(law, 2.0, 0.1))
    >>> scores.mean.round(2), scores.sd.round(2)
    (array([ 1.05, -1.05]), array([1.39, 1.39]))
    """
    return law.limit_scores(*o.overlaps(law.cos), o.bias)


def judge(scores: Scores, false_alarms: float = 0.05) -> Judged:
    """Error, AUC and recall of a mixture of Gaussian scores.

    >>> scores = Scores(np.array([1, -1]), np.array([1.0, -1.0]), np.ones(2), np.array([0.5, 0.5]))
    >>> [round(value, 4) for value in judge(scores)]
    [0.1587, 0.9214, 0.6388]
    """
    false_alarms = check_real("false_alarms", false_alarms, 0, 1, open_low=True, open_high=True)
    y, mean, sd, weight = check_is("scores", scores, Scores)
    yes, no = y > 0, y < 0
    p, q = weight[yes] / weight[yes].sum(), weight[no] / weight[no].sum()
    tiny = 1e-12 * (1e-300 + np.abs(mean).max()) + 1e-300
    s, u = np.maximum(sd[yes], tiny), np.maximum(sd[no], tiny)
    gap = (mean[yes][:, None] - mean[no]) / np.hypot(s[:, None], u)

    def raised(t: float) -> float:
        return float(q @ ndtr((mean[no] - t) / u)) - false_alarms

    low, high = float((mean[no] - 12 * u).min()), float((mean[no] + 12 * u).max())
    t = float(brentq(raised, low, high, xtol=1e-13 * (high - low)))
    return Judged(
        error=float(weight @ ndtr(-y * mean / np.maximum(sd, tiny))),
        auc=min(float(p @ ndtr(gap) @ q), 1.0),
        recall=min(float(p @ ndtr((mean[yes] - t) / s)), 1.0),
    )
