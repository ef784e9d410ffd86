"""δ from mean pooling, cross-fitted: how far apart bags' means lie, and how sure that is.

The difference of the classes' mean tokens on four fifths of the bags scores the others; their AUC
gives the distance along it, and from that δ. Prop-12-cosine; δ is that of Chapter 1, eq-1-snr.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata

from .arrays import Array, Bags
from .units import moments

FOLDS = 5


def folded(y: Array, count: int) -> Array:
    """Folds 0 … count − 1 in turn, within each label."""
    fold = np.empty(len(y), dtype=int)
    for label in (1, -1):
        place = np.flatnonzero(y == label)
        fold[place] = np.arange(len(place)) % count
    return fold


def pooled_auc(bags: Bags, y: Array, means: Array) -> tuple[float, float, float]:
    """AUC of scores by the difference of the means of the other folds, its error, and ν.

    The whitening, too, is that of the other folds.
    """
    fold, scores, nu = folded(y, FOLDS), np.empty(len(y)), 0.0
    for k in range(FOLDS):
        rest, here = fold != k, fold == k
        white = moments(bags, y, weight=rest * 1.0).whitening()
        tall = white.rows(means) * np.sqrt(bags.sizes)[:, None]
        yes, no = tall[rest & (y > 0)], tall[rest & (y < 0)]
        w = yes.mean(axis=0) - no.mean(axis=0)
        middle = w @ (yes.mean(axis=0) + no.mean(axis=0)) / 2
        scores[here] = (tall[here] @ w - middle) / max(float(np.linalg.norm(w)), 1e-300)
        nu += (1 / len(yes) + 1 / len(no)) / FOLDS
    return *placement_auc(scores, y), nu


def placement_auc(scores: Array, y: Array) -> tuple[float, float]:
    """AUC and its standard error by placement values (DeLong)."""
    yes, no = scores[y > 0], scores[y < 0]
    m, k = len(yes), len(no)
    rank = rankdata(np.concatenate([yes, no]))
    above = (rank[:m] - rankdata(yes)) / k
    below = 1 - (rank[m:] - rankdata(no)) / m
    return float(above.mean()), math.sqrt(above.var(ddof=1) / m + below.var(ddof=1) / k)


def distance(auc: float, noise: float) -> float:
    """δ with δ²/√(δ² + noise) = √2 Φ⁻¹(AUC); 0 where the AUC is ½ or less."""
    if auc <= 0.5:
        return 0.0
    D = math.sqrt(2) * float(ndtri(min(auc, 1 - 1e-9)))
    return math.sqrt((D**2 + math.sqrt(D**4 + 4 * D**2 * noise)) / 2)


def training_error(auc: float, d: int, nu: float) -> float:
    """What the chance of w adds to the error of the AUC: ⟨w, ξ⟩ = δ ± √ν, common to all folds."""
    delta, D = distance(auc, d * nu), math.sqrt(2) * float(ndtri(min(max(auc, 0.5), 1 - 1e-9)))
    slope = math.exp(-(D**2) / 4) / math.sqrt(4 * math.pi)
    return slope * delta * math.sqrt(nu / (delta**2 + d * nu))
