"""From labelled bags to the numbers of the model: δ, and θ and R where they can be told apart.

* **δ = θR/√L** from mean pooling. On whitened tokens, w is the difference of the classes' mean
  tokens on four fifths of the bags; it scores the others. Their AUC gives the distance
  D = √2 Φ⁻¹(AUC) along w, and since w itself is noisy, D = δ²/√(δ² + dν), ν = 1/n₊ + 1/n₋.
* **θ and R** from attention. The calibrated two steps on either half of the bags give q_A and q_B.
  Along q_A the tokens of the other half's positive bags are a mixture (1−ρ)N(0, 1) + ρN(μ, 1) with
  ρ = R/L and μ = θ·cos, fitted by maximum likelihood; cos² is estimated by ⟨q_A, q_B⟩. Where the
  mixture fits no better than one shifted Gaussian, only the product θR is known.

Chapter 12, def-12-calibrated and prop-12-cosine; δ is that of Chapter 1, eq-1-snr.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logsumexp, ndtri
from scipy.stats import rankdata

from ..kit.threads import in_one_thread
from ..planning.planner import Plan, plan
from .assumptions import Assumption, check_bags, independence, isotropy, tails, whiten

Array = np.ndarray
FOLDS, Z, CLEAR = 5, 1.96, 13.8  # CLEAR: twice the log likelihood ratio, false once in 1000


@dataclass(frozen=True)
class Portrait:
    """What labelled bags say about themselves, in the letters of the model.

    Attributes
    ----------
    L, d, n, pi : mean number of tokens, token dimension, bags, share of positives
    auc, auc_error : of cross-fitted pooled scores, and its standard error
    delta, delta_interval : δ = θR/√L and its 95 % interval
    separated : whether θ and R could be told apart
    theta, theta_interval, R : strength with its 95 % interval, needles (None if not separated)
    cosine : of the query that half of the bags give (None if not separated)
    needle_auc : AUC of the fitted likelihood ratio along the query of the other half
    assumptions : isotropy, independence and tails
    notes : what to keep in mind
    """

    L: float
    d: int
    n: int
    pi: float
    auc: float
    auc_error: float
    delta: float
    delta_interval: tuple[float, float]
    separated: bool
    theta: float | None
    theta_interval: tuple[float, float] | None
    R: float | None
    cosine: float | None
    needle_auc: float
    assumptions: tuple[Assumption, ...] = field(repr=False)
    notes: tuple[str, ...] = field(repr=False)

    def plan(self, *, R: int | None = None, **options: Any) -> Plan:
        """The plan for such bags. Where θ and R were not separated, say how many needles: `R`.

        Rows: the estimated θ and the ends of its interval.
        """
        L = max(2, round(self.L))
        if R is None and self.R is None:
            raise ValueError(
                "R = None is not allowed: these bags do not tell θ and R apart, R must be a guess "
                "of the number of needles"
            )
        needles = min(L, max(1, round(self.R if R is None else R)))  # type: ignore[arg-type]
        low, high = (end * math.sqrt(L) / needles for end in self.delta_interval)
        strengths = [low, self.delta * math.sqrt(L) / needles, high]
        if self.theta is not None and self.theta_interval is not None and R is None:
            strengths = [self.theta_interval[0], self.theta, self.theta_interval[1]]
        kept = sorted({round(theta, 2) for theta in strengths if theta >= 0.01})
        options = {"theta": kept or None, **options}
        return plan(L=L, R=needles, d=self.d, n=self.n, pi=self.pi, **options)

    def __str__(self) -> str:
        low, high = self.delta_interval
        lines = [
            f"{self.n} bags, {self.L:.4g} tokens each, d = {self.d}, {self.pi:.0%} positive",
            f"δ = {self.delta:.2f} ({low:.2f} to {high:.2f}), from a pooled AUC of {self.auc:.3f} "
            f"± {self.auc_error:.3f}",
        ]
        if self.separated and self.theta_interval:
            low, high = self.theta_interval
            lines += [
                f"θ = {self.theta:.2f} ({low:.2f} to {high:.2f}), R = {self.R:.2f}; the query of "
                f"half the bags has cosine {self.cosine:.2f}"
            ]
        lines += [f"AUC of attention along it: {self.needle_auc:.3f}"]
        lines += [f"{'ok ' if a.holds else '!! '}{a.name}: {a.words}" for a in self.assumptions]
        return "\n".join([*lines, *(f"note: {text}" for text in self.notes)])


@in_one_thread
def estimate(bags: Sequence[Array] | Array, labels: Sequence[int] | Array) -> Portrait:
    """What labelled bags say about δ, θ, R and the assumptions of the model.

    The intervals are made for bags that keep the assumptions. They are too short where needles are
    lower than about two standard deviations of the noise along the query, and where the negatives
    hold few tokens for their dimension (a note says so).

    Parameters
    ----------
    bags : an array (n, L, d), or a list of n arrays (L_i, d)
    labels : n labels −1 or +1, at least six of each

    Examples
    --------
    >>> from needle.data.tokens import SparseTokens
    >>> X, y, _ = SparseTokens(L=40, R=2, theta=5.0, pi=0.4).sample(
    ...     300, 30, np.random.default_rng(0)
    ... )
    >>> found = estimate(X, y)
    >>> found.separated, round(found.theta), round(found.R)
    (True, 5, 2)
    """
    raw, y = check_bags(bags, labels)
    tokens, value, N = whiten(raw, y)
    means = np.array([bag.mean(axis=0) * math.sqrt(len(bag)) for bag in tokens])
    L, (n, d), pi = float(np.mean([len(bag) for bag in tokens])), means.shape, float(np.mean(y > 0))
    auc, error, nu = _pooled_auc(means, y)
    wide = math.hypot(error, _training_error(auc, d, nu))
    ends = [_distance(auc + k * wide, d * nu) for k in (-Z, 0.0, Z)]

    half = _folds(y, 2)
    queries = [_query(tokens, y, half == k) for k in (0, 1)]
    along = [bag @ queries[1 - k] for bag, k in zip(tokens, half, strict=True)]
    silent = np.concatenate([h for h, label in zip(along, y, strict=True) if label < 0])
    center, spread = silent.mean(), silent.std()
    along = [(h - center) / spread for h in along]
    loud = np.concatenate([h for h, label in zip(along, y, strict=True) if label > 0])
    (rho, mu), errors, gain = _mixture(loud)
    square = float(queries[0] @ queries[1])
    separated = bool(gain > CLEAR and square > 3 / math.sqrt(d) and rho * len(loud) >= 5)
    scores = [logsumexp(mu * h) - math.log(len(h)) for h in along]
    assumptions = (
        isotropy(value, int(N)), independence(tokens, y), tails((silent - center) / spread),
    )  # fmt: skip
    notes = _notes(raw, separated, ends, int(N), d)
    theta, interval, cosine, R = None, None, None, None
    if separated:
        cosine, R = math.sqrt(square), rho * L
        theta = mu / cosine
        level = 1 / math.sqrt(2 * len(silent))  # of the noise, the unit of every height
        relative = math.hypot(errors[1] / mu, level, (1 - square) / math.sqrt(d) / (2 * square))
        interval = theta * math.exp(-Z * relative), theta * math.exp(Z * relative)
    return Portrait(
        L, d, n, pi, auc, error, ends[1], (ends[0], ends[2]), separated, theta, interval, R, cosine,
        _auc(np.array(scores), y)[0], assumptions, notes,
    )  # fmt: skip


def _notes(
    raw: Sequence[Array], separated: bool, ends: Sequence[float], N: int, d: int
) -> tuple[str, ...]:
    sizes = np.array([len(bag) for bag in raw])
    notes = []
    if not separated:
        notes.append(
            "θ and R could not be told apart: along the query no group of needles stands out"
        )
    if ends[0] == 0:
        notes.append("averaging sees nothing for sure: the interval of δ holds 0")
    if sizes.std() > 0.3 * sizes.mean():
        notes.append(
            f"bags hold {sizes.min()} to {sizes.max()} tokens: L is their mean, R the needles in a "
            "bag of that size"
        )
    if 10 * d > N:
        notes.append(f"only {N} tokens of negatives in {d} dimensions: the whitening is rough")
    return tuple(notes)


def _folds(y: Array, count: int) -> Array:
    """Folds 0 … count − 1 in turn, within each label."""
    fold = np.empty(len(y), dtype=int)
    for label in (1, -1):
        place = np.flatnonzero(y == label)
        fold[place] = np.arange(len(place)) % count
    return fold


def _pooled_auc(means: Array, y: Array) -> tuple[float, float, float]:
    """AUC of scores by the difference of the means of the other folds, its error, and ν."""
    fold, scores, nu = _folds(y, FOLDS), np.empty(len(y)), 0.0
    for k in range(FOLDS):
        rest = fold != k
        yes, no = means[rest & (y > 0)], means[rest & (y < 0)]
        w = yes.mean(axis=0) - no.mean(axis=0)
        here = fold == k
        middle = w @ (yes.mean(axis=0) + no.mean(axis=0)) / 2
        scores[here] = (means[here] @ w - middle) / np.linalg.norm(w)
        nu += (1 / len(yes) + 1 / len(no)) / FOLDS
    return *_auc(scores, y), nu


def _auc(scores: Array, y: Array) -> tuple[float, float]:
    """AUC and its standard error by placement values (DeLong)."""
    yes, no = scores[y > 0], scores[y < 0]
    m, k = len(yes), len(no)
    rank = rankdata(np.concatenate([yes, no]))
    above = (rank[:m] - rankdata(yes)) / k
    below = 1 - (rank[m:] - rankdata(no)) / m
    return float(above.mean()), math.sqrt(above.var(ddof=1) / m + below.var(ddof=1) / k)


def _distance(auc: float, noise: float) -> float:
    """δ with δ²/√(δ² + noise) = √2 Φ⁻¹(AUC); 0 where the AUC is ½ or less."""
    if auc <= 0.5:
        return 0.0
    D = math.sqrt(2) * float(ndtri(min(auc, 1 - 1e-9)))
    return math.sqrt((D**2 + math.sqrt(D**4 + 4 * D**2 * noise)) / 2)


def _training_error(auc: float, d: int, nu: float) -> float:
    """What the chance of w adds to the error of the AUC: ⟨w, ξ⟩ = δ ± √ν, common to all folds."""
    delta, D = _distance(auc, d * nu), math.sqrt(2) * float(ndtri(min(max(auc, 0.5), 1 - 1e-9)))
    slope = math.exp(-(D**2) / 4) / math.sqrt(4 * math.pi)
    return slope * delta * math.sqrt(nu / (delta**2 + d * nu))


def _query(tokens: Sequence[Array], y: Array, chosen: Array) -> Array:
    """The direction of the calibrated two steps with small rates, on the chosen bags."""
    picked = [(bag, label) for bag, label, use in zip(tokens, y, chosen, strict=True) if use]
    share = float(np.mean([label > 0 for _, label in picked]))
    w = np.sum([((label > 0) - share) * bag.mean(axis=0) for bag, label in picked], axis=0)
    q = np.zeros(len(w))
    for bag, label in picked:
        t = bag @ w
        q += ((label > 0) - share) * (t - t.mean()) @ bag / len(bag)
    if not np.any(q):
        raise ValueError(
            "bags are not allowed: bags must hold tokens that differ within a bag (attention has "
            "no direction among lone tokens)"
        )
    return q / np.linalg.norm(q)


def _mixture(heights: Array) -> tuple[tuple[float, float], tuple[float, float], float]:
    """ρ and μ of (1−ρ)N(0,1) + ρN(μ,1), standard errors, and 2 log of the ratio to N(m,1)."""
    low = min(heights.min(), -5.0) - 0.05
    cell, count = np.unique(np.floor((heights - low) / 0.05), return_counts=True)  # where any are
    x = low + 0.05 * (cell + 0.5)
    mean, total = float(count @ x / count.sum()), float(count.sum())

    def loss(v: Array) -> float:
        rho, mu = float(expit(v[0])), math.exp(v[1])
        return -float(count @ np.log1p(rho * np.expm1(np.clip(mu * x - mu**2 / 2, -700, 700))))

    excess = max(float(count @ (x - mean) ** 2) / total - 1, 1e-3)
    starts = []
    for mu in {max(excess / max(mean, 1e-6), 0.5), 2.0, 4.0, 8.0}:
        rho = min(max(mean / mu, 2 / total), 0.9)
        starts.append(np.array([math.log(rho / (1 - rho)), math.log(min(mu, 50.0))]))
    best = min(
        (minimize(loss, v, method="Nelder-Mead", options={"xatol": 1e-4}) for v in starts),
        key=lambda found: found.fun,
    )
    rho, mu = float(expit(best.x[0])), math.exp(best.x[1])
    step = 1e-3 * np.eye(2)
    at = lambda a, b: loss(best.x + a * step[0] + b * step[1])  # noqa: E731
    H = np.array([
        [at(1, 0) - 2 * best.fun + at(-1, 0), (at(1, 1) - at(1, -1) - at(-1, 1) + at(-1, -1)) / 4],
        [0.0, at(0, 1) - 2 * best.fun + at(0, -1)],
    ]) * 1e6  # fmt: skip
    H[1, 0] = H[0, 1]
    cov = np.linalg.pinv(H)
    errors = np.sqrt(np.maximum(np.diag(cov), 0)) * [rho * (1 - rho), mu]
    gain = 2 * (-best.fun - total * (mean**2) / 2)
    return (rho, mu), (float(errors[0]), float(errors[1])), gain
