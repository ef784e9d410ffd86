"""How many needles does a positive bag hold? The likelihood of bags, with both token laws free.

Let h be heights of tokens along a query that other bags taught, f₀ the law of straws (a smoothed
histogram of the negatives'), g that of needles, r = g/f₀. With R needles among L tokens

    P(bag)/P₀(bag) = e_R(r₁, …, r_L)/C(L, R),   P(ℓ is a needle | bag) = r_ℓ e_{R−1}(r_{−ℓ})/e_R(r)

with the elementary symmetric polynomials e_R; with each token a needle at chance ρ it is
Π(1 − ρ + ρ r_ℓ). EM learns g; R or ρ is chosen on the half of the positives that did not teach it.
It is the likelihood if straws are independent and needles share one law. In a histogram r takes as
many values as there are bins, so polynomials are products over bins, of positive terms only.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from .arrays import Array, Bags

BINS, ROUNDS = 40, 12
COUNTS, SHARES, CHANCE = (1, 2, 3, 4, 6, 8), (0.25, 0.5, 1.0), (1, 2, 4)


class Count(NamedTuple):
    """What the likelihood says about needles.

    Attributes
    ----------
    R : the most likely number, or None where a share of all tokens is more likely
    share : that share ρ, or None
    gain : log likelihood of the best of one, two and four over the better of "none" and "all"
    """

    R: int | None
    share: float | None
    gain: float

    def needles(self, L: Array) -> Array:
        """Needles in bags of L tokens."""
        if self.R is not None:
            return np.minimum(self.R, L)
        return np.maximum(1, np.round((self.share or 0.0) * L)).astype(int)


def count_needles(bags: Bags, y: Array, heights: Array, half: Array) -> Count:
    """The number of needles, by heights (N,) whose queries never saw the bag they look at.

    >>> from needle.bags.datasets import digit_bags
    >>> from needle.bags.permuted import crossed, neutral
    >>> bags, y, _ = digit_bags(300, 20, 2, np.random.default_rng(0))
    >>> half = np.arange(300) % 2
    >>> [(_, H)] = crossed(bags, y[:, None], half, neutral(bags))
    >>> count_needles(bags, y, H[:, 0], half).R
    2
    """
    rows = _Rows(bags, y[:, None], heights[:, None], half)
    counts = [float(rows.held_out(R)[0]) for R in COUNTS]
    shares = [float(rows.held_out(rho)[0]) for rho in SHARES]
    best: float = COUNTS[int(np.argmax(counts))]
    if max(shares) > max(counts):
        best = SHARES[int(np.argmax(shares))]
    number = int(best) if isinstance(best, int) else None
    gain = max(counts[COUNTS.index(R)] for R in CHANCE) - max(0.0, shares[-1])
    return Count(number, None if number else float(best), gain)


def needle_weights(bags: Bags, y: Array, heights: Array, part: Array, count: Count) -> Array:
    """For each token of a positive bag the chance that it is a needle, 0 for the others, (N,).

    Heights are in one unit within each `part` of the bags; even and odd parts teach each other.
    """
    rows = _Rows(bags, y[:, None], heights[:, None], part)
    odds = rows.posterior(count.R if count.R is not None else float(count.share or 1.0))
    weights, loud = np.zeros(len(heights)), (y > 0)[bags.owner]
    weights[loud] = odds[np.cumsum(y > 0)[bags.owner[loud]] - 1, rows.place[loud, 0]]
    return weights


def chance_gains(bags: Bags, labels: Array, heights: Array, half: Array) -> Array:
    """The gains (p,) alone, for columns of labels that were permuted, and their heights."""
    rows = _Rows(bags, labels, heights, half)
    counts = np.max([rows.held_out(R) for R in CHANCE], axis=0)
    return counts - np.maximum(0.0, rows.held_out(1.0))


class _Rows:
    """Positive bags of p labelings, one after the other, as counts of tokens in bins of height.

    `law` numbers the law of needles that a row teaches: two for each labeling, one a half.
    """

    def __init__(self, bags: Bags, labels: Array, heights: Array, half: Array) -> None:
        tallies, laws, rough = [], [], []
        self.place = np.empty(heights.shape, dtype=int)
        for p, (y, h) in enumerate(zip(labels.T, heights.T, strict=True)):
            self.place[:, p] = place = _places(bags, y, h, half)
            tally = np.bincount(bags.owner * BINS + place, minlength=len(bags) * BINS)
            tally = tally.reshape(len(bags), BINS).astype(float)
            tallies.append(tally[y > 0])
            laws.append(2 * p + half[y > 0] % 2)
            rough += [_smooth(tally[y < 0].sum(axis=0), 0.5)] * 2
        self.tally, self.law = np.concatenate(tallies), np.concatenate(laws)
        self.rough = np.array(rough)

    def taught(self, R: float) -> Array:
        """r = g/f₀ of each law by EM, from needles that tend to be high."""
        g = self.rough * np.exp(np.linspace(0, 6, BINS))
        g /= g.sum(axis=1, keepdims=True)
        for _ in range(ROUNDS):
            mass = _posterior(self.tally, (g / self.rough)[self.law], R) * self.tally
            sums = np.zeros_like(g)
            np.add.at(sums, self.law, mass)
            g = np.array([_smooth(one, 0.01 * max(one.sum(), 1.0) / BINS) for one in sums])
        return g / self.rough

    def held_out(self, R: float) -> Array:
        """Log likelihood (p,) of each half's positives by the law that the other half taught."""
        ratio = self.taught(R)[self.law ^ 1]
        return np.bincount(
            self.law // 2, _likelihood(self.tally, ratio, R), minlength=len(self.rough) // 2
        )

    def posterior(self, R: float) -> Array:
        """The chance that a token of each bin of each row is a needle, by the other half's law."""
        return _posterior(self.tally, self.taught(R)[self.law ^ 1], R)


def _places(bags: Bags, y: Array, heights: Array, half: Array) -> Array:
    """The bin of each token, by its height in units of the negatives' noise in its half."""
    z = np.empty(len(heights))
    for k in np.unique(half):
        part = (half == k)[bags.owner]
        silent = heights[part & (y < 0)[bags.owner]]
        z[part] = (heights[part] - silent.mean()) / max(float(silent.std()), 1e-300)
    low, high = np.quantile(z, [0.0005, 0.9995])
    scale = (BINS - 2) / max(high - low, 1e-300)
    return np.clip(((z - low) * scale).astype(int) + 1, 0, BINS - 1)


def _smooth(count: Array, least: float) -> Array:
    """A law over bins: neighbors lend a quarter each, and nothing is impossible."""
    padded = np.concatenate([count[:1], count, count[-1:]])
    law = padded[:-2] / 4 + padded[1:-1] / 2 + padded[2:] / 4 + least
    return law / law.sum()


def _binomials(tally: Array, ratio: Array, R: int) -> Array:
    """Coefficients of (1 + r t)^c up to t^R for every bag and bin, (R + 1, n, bins)."""
    found = np.empty((R + 1, *tally.shape))
    found[0] = 1.0
    for k in range(1, R + 1):
        found[k] = found[k - 1] * np.maximum(tally - k + 1, 0) / k * ratio
    return found


def _times(a: Array, b: Array) -> Array:
    """Products of polynomials (R + 1, n), cut after t^R."""
    found = a[0] * b
    for k in range(1, len(a)):
        found[k:] += a[k] * b[: len(b) - k]
    return found


def _likelihood(tally: Array, ratio: Array, R: float) -> Array:
    """log P(bag)/P₀(bag), (n,), with a ratio a row; R a number (int), or a share (float)."""
    if not isinstance(R, int):
        return (tally * np.log1p(R * (ratio - 1) * (1 - 1e-12))).sum(axis=1)
    L, top = tally.sum(axis=1), ratio.max(axis=1)
    terms = _binomials(tally, ratio / top[:, None], R)
    product = terms[:, :, 0]
    for b in range(1, BINS):
        product = _times(product, terms[:, :, b])
    k = np.minimum(R, L).astype(int)
    e = product[k, np.arange(len(L))]
    ways = gammaln(L + 1) - gammaln(k + 1) - gammaln(L - k + 1)
    return np.log(np.maximum(e, 1e-300)) + k * np.log(top) - ways


def _posterior(tally: Array, ratio: Array, R: float) -> Array:
    """The chance that a token in each bin of each bag is a needle, (n, bins)."""
    if not isinstance(R, int):
        return R * ratio / (1 - R + R * ratio)
    r = ratio / ratio.max(axis=1, keepdims=True)
    terms = _binomials(tally, r, R)
    one = np.zeros((R + 1, len(tally)))
    one[0] = 1.0
    before, after = [one], [one]
    for b in range(BINS - 1):
        before.append(_times(before[-1], terms[:, :, b]))
        after.append(_times(after[-1], terms[:, :, BINS - 1 - b]))
    k = np.minimum(R, tally.sum(axis=1)).astype(int)
    rows = np.arange(len(tally))
    whole = np.maximum(_times(before[-1], terms[:, :, -1])[k, rows], 1e-300)
    fewer = _binomials(np.maximum(tally - 1, 0), r, R)
    found = np.empty(tally.shape)
    for b in range(BINS):
        rest = _times(_times(before[b], after[BINS - 1 - b]), fewer[:, :, b])
        found[:, b] = r[:, b] * rest[np.maximum(k - 1, 0), rows] / whole
    return np.minimum(found, 1.0)
