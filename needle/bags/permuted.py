"""Cross-fitted heights for many labelings of the same bags at once, and what chance makes of them.

Tokens are whitened by all tokens, so by no label; labels are permuted within two halves (or within
groups), and each half's query, at the calibrated rate with η_w → 0, looks at the other half:

    W = Mᵀ Γ,   T = Z W,   Q = Zᵀ(Γ/L ⊙ (T − M W)),   H = Z′ Q,

with the means M, the tokens Z of one half, Z′ of the other, and in the columns of Γ the pulls
y₊ − π̂ of each labeling. If bags are exchangeable, so are the columns of H with all that is made
from them, and the share of columns that look at least as good as the first is a p-value.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..kit.checks import check_integer, check_rng
from .arrays import Array, Bags
from .folds import blocks
from .units import Whitening, moments

_WIDTH = 2**22  # numbers of one array of heights


def labelings(
    y: Array, half: Array, count: int, rng: np.random.Generator, groups: Array | None = None
) -> Array:
    """The labels (n,), and `count` permutations of them within each half, as columns.

    With groups: where all bags of each group have one label whole groups are permuted within their
    half; else labels are permuted within each group.

    >>> y = np.array([1, -1, 1, -1])
    >>> found = labelings(y, np.array([0, 0, 1, 1]), 9, np.random.default_rng(0))
    >>> found.shape, bool((found[:2].sum(axis=0) == 0).all())
    ((4, 10), True)
    """
    count, rng = check_integer("count", count, 0), check_rng(rng)
    found = np.tile(y[:, None], (1, count + 1))
    if groups is None:
        for k in np.unique(half):
            found[half == k, 1:] = rng.permuted(found[half == k, 1:], axis=0)
        return found
    names, first, of = np.unique(groups, return_index=True, return_inverse=True)
    if (y[first][of] == y).all():
        label = labelings(y[first], half[first], count, rng)
        return label[of]
    for k in range(len(names)):
        found[of == k, 1:] = rng.permuted(found[of == k, 1:], axis=0)
    return found


def halves(y: Array, rng: np.random.Generator, groups: Array | None = None) -> Array:
    """Two halves with the same share of positives, no group in both."""
    return blocks(y, 2, rng, groups)


def neutral(bags: Bags, units: str = "common", rho: float | None = None) -> Whitening:
    """The whitening by all tokens, which no label has touched."""
    return moments(bags, np.full(len(bags), -1), units).whitening(rho)


def crossed(
    bags: Bags, labels: Array, half: Array, white: Whitening
) -> Iterator[tuple[slice, Array]]:
    """Heights (N, p) of all tokens for some columns of the labels at a time.

    Every token is seen by the query of the half that does not hold it. Heights along each query
    have the length that unit queries give them.

    >>> from needle.bags.datasets import digit_bags
    >>> bags, y, hidden = digit_bags(200, 10, 1, np.random.default_rng(0))
    >>> half = np.arange(200) % 2
    >>> [(_, H)] = crossed(bags, y[:, None], half, neutral(bags))
    >>> bool(H[hidden, 0].mean() > H[~hidden, 0].mean() + 2)
    True
    """
    means = white.rows(bags.means())
    rows = [np.flatnonzero(half == k) for k in (0, 1)]
    parts = [bags.take(row) for row in rows]
    step = max(1, _WIDTH // bags.tokens.shape[0])
    for start in range(0, labels.shape[1], step):
        chosen = slice(start, min(start + step, labels.shape[1]))
        found = np.empty((bags.tokens.shape[0], chosen.stop - start))
        for k in (0, 1):
            q = _queries(parts[k], means[rows[k]], labels[rows[k], chosen] > 0, white)
            found[half[bags.owner] != k] = white.heights(parts[1 - k], q)
        yield chosen, found


def _queries(bags: Bags, means: Array, yes: Array, white: Whitening) -> Array:
    """Unit queries (d, p) in whitened coordinates, one for each column of labels."""
    pulls = yes - yes.mean(axis=0)
    w = means.T @ pulls
    heights, owner = white.heights(bags, w), bags.owner
    heights -= (means @ w)[owner]
    heights *= (pulls / bags.sizes[:, None])[owner]
    q = white.turned(bags.gathered(heights).T).T
    length = np.linalg.norm(q, axis=0)
    return q / np.where(length > 0, length, 1.0)
