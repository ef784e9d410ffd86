"""Folds of bags: stratified by label, never through a group, and scores of held-out bags."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import rankdata

from ..kit.checks import check_integer
from .arrays import Array

Splits = list[tuple[Array, Array]]


def blocks(y: Array, count: int, rng: np.random.Generator, groups: Any = None) -> Array:
    """For each bag one of `count` blocks with nearly the same number of either label in each.

    Bags of a group stay together: groups, the largest first, go where they are missed most.

    >>> rng = np.random.default_rng(0)
    >>> block = blocks(np.repeat([1, -1], 6), 3, rng)
    >>> np.bincount(block[:6]).tolist(), np.bincount(block[6:]).tolist()
    ([2, 2, 2], [2, 2, 2])
    >>> of = np.repeat(np.arange(6), 2)
    >>> found = blocks(np.repeat([1, -1], 6), 3, rng, of)
    >>> bool((found[::2] == found[1::2]).all())
    True
    """
    n = len(y)
    if groups is None:
        block = np.empty(n, dtype=int)
        shift = 0
        for label in (1, -1):
            own = rng.permutation(np.flatnonzero(y == label))
            block[own] = (np.arange(len(own)) + shift) % count
            shift = (len(own) + shift) % count
        return rng.permutation(count)[block]
    names, of = np.unique(np.asarray(groups), return_inverse=True)
    size = np.stack([np.bincount(of, y == label, len(names)) for label in (1, -1)], axis=1)
    total, filled = size.sum(axis=0), np.zeros((count, 2))
    place = np.empty(len(names), dtype=int)
    order = rng.permutation(len(names))
    for group in order[np.argsort(-size[order].max(axis=1), kind="stable")]:
        after = ((filled[None] + np.eye(count)[:, :, None] * size[group]) / total) ** 2
        place[group] = int(np.argmin(after.sum(axis=(1, 2))))
        filled[place[group]] += size[group]
    return place[of]


def checked_groups(groups: Any, n: int) -> Array | None:
    """One group a bag, or None.

    >>> checked_groups([1, 2], 3)
    Traceback (most recent call last):
    ...
    ValueError: groups of shape (2,) is not allowed: groups must name one group for each of 3 bags
    """
    if groups is None:
        return None
    found = np.asarray(groups)
    if found.shape != (n,):
        raise ValueError(
            f"groups of shape {found.shape} is not allowed: groups must name one group for each "
            f"of {n} bags"
        )
    return np.unique(found, return_inverse=True)[1]


def splits(cv: Any, y: Array, seed: int, groups: Any = None) -> Splits:
    """Pairs (train, test) of numbers of bags, each with both labels to learn from.

    `cv` is a number of folds, at most as many as the rarer label has bags; a splitter with the
    method `split`; or pairs.
    """
    n, groups = len(y), checked_groups(groups, len(y))
    if hasattr(cv, "split"):
        pairs = list(cv.split(np.zeros((n, 1)), y, groups))
    elif np.iterable(cv):
        pairs = [(np.asarray(a), np.asarray(b)) for a, b in cv]
    else:
        most = int(min((y > 0).sum(), (y < 0).sum()))
        count = min(check_integer("cv", cv, 2), most if groups is None else int(groups.max()) + 1)
        if count < 2:
            return []
        block = blocks(y, count, np.random.default_rng(seed), groups)
        pairs = [(np.flatnonzero(block != k), np.flatnonzero(block == k)) for k in range(count)]
    return [(a, b) for a, b in pairs if len(b) and len(np.unique(y[a])) == 2]


def auc(scores: Array, y: Array) -> float:
    """P(a positive scores higher than a negative), ties half; ½ where a label is missing.

    >>> auc(np.array([1.0, 2.0, 2.0]), np.array([-1, -1, 1]))
    0.75
    """
    m, k = int((y > 0).sum()), int((y < 0).sum())
    if m == 0 or k == 0:
        return 0.5
    return float((rankdata(scores)[y > 0].sum() - m * (m + 1) / 2) / (m * k))
