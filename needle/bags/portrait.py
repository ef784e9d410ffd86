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
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..kit.checks import check_integer
from ..kit.threads import in_one_thread
from ..planning.answer import Plan
from ..planning.planner import plan
from .arrays import Array, Bags, as_bags
from .assumptions import Assumption, independence, isotropy, tails
from .distance import distance, folded, placement_auc, pooled_auc, training_error
from .labels import as_signs
from .mixing import mixture, mixture_gain
from .permuted import crossed, labelings, neutral
from .turn import query
from .units import moments

Z, CLEAR = 1.96, 13.8  # CLEAR: twice the log likelihood ratio, false once in 1000
LARGEST = 1e50  # whose fourth powers are still numbers
SHUFFLES, CONTRADICTION = 39, 0.08  # labelings by chance; AUC promised less AUC measured


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

    def strengths(self, R: int | None = None) -> tuple[int, list[float]]:
        """Needles as a whole number, and θ with the ends of its interval for that many.

        What is known well is θR: where R is rounded, θ makes up for it.
        """
        L = max(2, round(self.L))
        if R is not None:
            needles = check_integer("R", R, 1, L)
            ends = [self.delta_interval[0], self.delta, self.delta_interval[1]]
            return needles, [end * math.sqrt(L) / needles for end in ends]
        if self.R is None or self.theta is None or self.theta_interval is None:
            raise ValueError(
                "R = None is not allowed: these bags do not tell θ and R apart, R must be a guess "
                "of the number of needles"
            )
        needles = min(L, max(1, round(self.R)))
        ends = [self.theta_interval[0], self.theta, self.theta_interval[1]]
        return needles, [end * self.R / needles for end in ends]

    @property
    def doubts(self) -> tuple[str, ...]:
        """Why a plan for these bags may be wrong: failed assumptions, and rough measurements."""
        failed = [f"{a.name}: {a.words}" for a in self.assumptions if not a.holds]
        return (*failed, *(text for text in self.notes if "rough" in text))

    def plan(self, *, R: int | None = None, **options: Any) -> Plan:
        """The plan for such bags. Where θ and R were not separated, say how many needles: `R`.

        Rows: the estimated θ and the ends of its interval. The plan's warnings hold the portrait's
        doubts, and say where what was measured on these bags contradicts what is promised.
        """
        needles, ends = self.strengths(R)
        kept = sorted({round(theta, 2) for theta in ends if theta >= 0.01})
        options = {"theta": kept or None, "balanced": False, **options}
        made = plan(L=max(2, round(self.L)), R=needles, d=self.d, n=self.n, pi=self.pi, **options)
        measured = {"pooled": self.auc, "attention": self.needle_auc}
        near = min(made.rows, key=lambda row: abs(row.theta - ends[1]))
        doubts = list(self.doubts)
        for name, found in measured.items():
            promise = near.recipes[name].auc
            if abs(promise - found) > CONTRADICTION:
                doubts.append(
                    f"measured on these bags, half of them for the query: AUC {found:.2f} of {name}"
                    f", promised {promise:.2f}: do not trust the promise, validate instead"
                )
        return replace(made, warnings=(*doubts, *made.warnings), measured=measured)

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
def estimate(bags: object, labels: object) -> Portrait:
    """What labelled bags say about δ, θ, R and the assumptions of the model.

    Whatever looks at a bag, a whitening, a direction or a query, was learned from other bags. The
    intervals are made for bags that keep the assumptions. They are too short where needles are
    lower than about two standard deviations of the noise along the query, and where the negatives
    hold few tokens for their dimension (a note says so).

    Parameters
    ----------
    bags : whatever `as_bags` takes, sparse bags too
    labels : n labels of two kinds, at least six of each; the later one in order is the positive

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
    raw = as_bags(bags, "bags")
    y, _ = as_signs(labels, len(raw), "labels", least=6)
    largest = abs(raw.tokens).max()
    if largest > LARGEST:
        raise ValueError(
            f"bags with an entry of size {largest:g} is not allowed: entries must lie within "
            f"±{LARGEST:g}"
        )
    means, d = raw.means(), raw.tokens.shape[1]
    whole = moments(raw, y)
    if not whole.level > 0:
        raise ValueError("bags are not allowed: the tokens of negative bags must vary")
    L, n, pi, N = (
        float(raw.sizes.mean()),
        len(raw),
        float(np.mean(y > 0)),
        int(raw.sizes[y < 0].sum()),
    )
    auc, error, nu = pooled_auc(raw, y, means)
    wide = math.hypot(error, training_error(auc, d, nu))
    ends = [distance(auc + k * wide, d * nu) for k in (-Z, 0.0, Z)]

    half = folded(y, 2)
    along, square = _heights(raw, y, half, means)
    silent, loud = along[(y < 0)[raw.owner]], along[(y > 0)[raw.owner]]
    fit = mixture(loud)
    separated = bool(fit.gain > CLEAR and square > 3 / math.sqrt(d) and fit.share * len(loud) >= 5)
    separated = separated and _stands_out(raw, y, half, fit.gain)
    top = raw.largest(fit.height * along)
    scores = top + np.log(raw.sums(np.exp(fit.height * along - top[raw.owner])) / raw.sizes)
    assumptions = (
        isotropy(whole.value, N, d),
        independence(raw, y, whole.whitening(), whole.value),
        tails(silent),
    )
    notes = _notes(raw, separated, ends, N, d)
    theta, interval, cosine, R = None, None, None, None
    if separated:
        cosine, R = math.sqrt(square), fit.share * L
        theta = fit.height / cosine
        level = 1 / math.sqrt(2 * len(silent))  # of the noise, the unit of every height
        relative = math.hypot(
            fit.height_error / fit.height, level, (1 - square) / math.sqrt(d) / (2 * square)
        )
        interval = theta * math.exp(-Z * relative), theta * math.exp(Z * relative)
    return Portrait(
        L, d, n, pi, auc, error, ends[1], (ends[0], ends[2]), separated, theta, interval, R, cosine,
        placement_auc(scores, y)[0], assumptions, notes,
    )  # fmt: skip


def _heights(bags: Bags, y: Array, half: Array, means: Array) -> tuple[Array, float]:
    """Heights of all tokens along the query of the other half, in units of the negatives' noise
    there, and the product of the two queries."""
    along, queries = np.empty(bags.tokens.shape[0]), []
    for k in (0, 1):
        weight = (half == k) * 1.0
        white = moments(bags, y, weight=weight).whitening()
        queries.append(query(bags, y, white, weight=weight, means=means))
        if not np.any(queries[-1]):
            raise ValueError(
                "bags are not allowed: bags must hold tokens that differ within a bag (attention "
                "has no direction among lone tokens)"
            )
        h = white.heights(bags, queries[-1])
        silent = h[((half != k) & (y < 0))[bags.owner]]
        other = (half != k)[bags.owner]
        along[other] = (h[other] - silent.mean()) / max(float(silent.std()), 1e-300)
    return along, float(queries[0] @ queries[1])


def _stands_out(bags: Bags, y: Array, half: Array, gain: float) -> bool:
    """Whether no permutation of the labels makes a group of needles stand out as much."""
    shuffled = labelings(y, half, SHUFFLES, np.random.default_rng(0))[:, 1:]
    for chosen, heights in crossed(bags, shuffled, half, neutral(bags)):
        for column, h in zip(shuffled[:, chosen].T, heights.T, strict=True):
            for k in (0, 1):
                part = (half == k)[bags.owner]
                silent = h[part & (column < 0)[bags.owner]]
                h[part] = (h[part] - silent.mean()) / max(float(silent.std()), 1e-300)
            if mixture_gain(h[(column > 0)[bags.owner]])[0] >= gain:
                return False
    return True


def _notes(raw: Bags, separated: bool, ends: Sequence[float], N: int, d: int) -> tuple[str, ...]:
    sizes, notes = raw.sizes, []
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
