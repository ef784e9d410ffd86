"""Is there anything? Permutation tests, and how many needles the bags hold, from the same heights.

Statistics of a labeling, all cross-fitted between two halves: the AUC of the difference of the
classes' mean tokens ("mean"), of attention ("attention", the log of the mean of exp(2h) over a
bag's heights h in units of their spread), of the same difference for the largest and smallest
entries of a bag ("extremes"), and of a noisy-or ("noisy_or": twenty iterations for each half and
labeling, so only where all tokens hold at most 400,000 numbers). Familywise: the largest of them in
units of its own scatter over all labelings; p = (1 + labelings at least as good)/(1 +
permutations), exact for exchangeable bags.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.stats import rankdata

from ..kit.threads import in_one_thread
from .arrays import Array, Bags
from .counting import Count, chance_gains, count_needles
from .permuted import crossed, halves, labelings, neutral
from .units import Whitening
from .yardsticks import fit_noisy_or

DEAR, ROUNDS, RIDGE = 400_000, 20, 0.01  # of the noisy-or: numbers in all tokens; iterations; λ
MOST = 100_000  # tokens looked at; of more bags a random part, chosen without their labels


class Signal(NamedTuple):
    """Whether the labels have anything to do with the tokens.

    `pvalue` is familywise; `auc` and `each` hold the AUC and the p-value of each statistic.
    """

    pvalue: float
    auc: dict[str, float]
    each: dict[str, float]


class Needles(NamedTuple):
    """How many needles, and whether that beats what chance makes of shuffled labels."""

    found: Count
    chance: float
    told: bool


@in_one_thread
def evidence(
    bags: Bags, y: Array, rng: np.random.Generator, groups: Array | None = None, *,
    permutations: int = 199, shuffles: int = 15,
) -> tuple[Signal, Needles]:  # fmt: skip
    """Both, from one set of cross-fitted heights.

    >>> from needle.bags.datasets import digit_bags
    >>> bags, y, _ = digit_bags(200, 10, 1, np.random.default_rng(0))
    >>> signal, needles = evidence(bags, y, np.random.default_rng(1), permutations=39)
    >>> signal.pvalue, needles.found.R, needles.told
    (0.025, 1, True)
    """
    n = len(y)
    kept = np.arange(n)
    if bags.tokens.shape[0] > MOST:
        kept = np.sort(rng.permutation(n)[: max(200, int(n * MOST / bags.tokens.shape[0]))])
        bags, y, groups = bags.take(kept), y[kept], None if groups is None else groups[kept]
    half = halves(y, rng, groups)
    labels, white = labelings(y, half, permutations, rng, groups), neutral(bags, "own")
    found = {
        "mean": _linear(white.rows(bags.means()), labels, half),
        "attention": np.empty(labels.shape[1]),
        "extremes": _linear(_extremes(bags, white), labels, half),
    }
    if bags.tokens.shape[0] * bags.tokens.shape[1] <= DEAR and permutations:
        found["noisy_or"] = _noisy(bags, labels, half)
    gains: list[float] = []
    for chosen, heights in crossed(bags, labels, half, white):
        scores = _attended(bags, heights)
        found["attention"][chosen] = _aucs(scores, labels[:, chosen], half)
        if chosen.start == 0:
            count = count_needles(bags, y, heights[:, 0], half)
        some = slice(max(1, chosen.start), min(chosen.stop, shuffles + 1))
        if some.stop > some.start:
            near = heights[:, some.start - chosen.start : some.stop - chosen.start]
            gains += chance_gains(bags, labels[:, some], near, half).tolist()
    chance = max(gains, default=0.0)
    told = count.gain > max(chance, 0.0) and count.R is not None
    return _judged(found), Needles(count, chance, told)


def _judged(found: dict[str, Array]) -> Signal:
    table = np.array(list(found.values()))
    spread = np.maximum(table.std(axis=1, keepdims=True), 1e-12)
    best = ((table - table.mean(axis=1, keepdims=True)) / spread).max(axis=0)
    part = lambda x: float((x >= x[0] - 1e-12).mean())  # noqa: E731
    return Signal(
        part(best),
        {name: float(x[0]) for name, x in found.items()},
        {name: part(x) for name, x in found.items()},
    )


def _linear(rows: Array, labels: Array, half: Array) -> Array:
    """AUCs (p,) of the difference of class means of one half on the other, for each labeling."""
    scores = np.empty(labels.shape)
    for k in (0, 1):
        yes = labels[half == k] > 0
        pulls = yes / yes.sum(axis=0) - ~yes / (~yes).sum(axis=0)
        scores[half != k] = rows[half != k] @ (rows[half == k].T @ pulls)
    return _aucs(scores, labels, half)


def _noisy(bags: Bags, labels: Array, half: Array) -> Array:
    """AUCs (p,) of a noisy-or fitted to one half, on the other, for each labeling; standardized."""
    scores, tokens = np.empty(labels.shape), neutral(bags, "own", 1.0)(bags)
    parts = [tokens.take(half == k) for k in (0, 1)]
    for p, y in enumerate(labels.T):
        for k in (0, 1):
            fitted = fit_noisy_or(parts[k], y[half == k], RIDGE, rounds=ROUNDS)
            scores[half != k, p] = fitted(parts[1 - k])
    return _aucs(scores, labels, half)


def _extremes(bags: Bags, white: Whitening) -> Array:
    """Largest and smallest entries over each bag, each column in units of its spread."""
    tokens = bags.tokens.toarray() if hasattr(bags.tokens, "toarray") else bags.tokens
    ends = bags.starts[:-1]
    both = [np.maximum.reduceat(tokens, ends, axis=0), np.minimum.reduceat(tokens, ends, axis=0)]
    rows = np.concatenate(both, axis=1).astype(float)
    spread = rows.std(axis=0)
    return (rows - rows.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


def _attended(bags: Bags, heights: Array) -> Array:
    h = 2 * heights / np.maximum(heights.std(axis=0), 1e-300)
    top = bags.largest(h)
    return top + np.log(bags.sums(np.exp(h - top[bags.owner])) / bags.sizes[:, None])


def _aucs(scores: Array, labels: Array, half: Array) -> Array:
    """The mean over the halves of the AUC of every column."""
    found = np.zeros(scores.shape[1])
    for k in (0, 1):
        part, yes = scores[half == k], labels[half == k] > 0
        m = yes.sum(axis=0)
        ranks = (rankdata(part, axis=0) * yes).sum(axis=0)
        found += (ranks - m * (m + 1) / 2) / np.maximum(m * (len(part) - m), 1) / 2
    return found
