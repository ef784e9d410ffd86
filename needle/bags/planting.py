"""A promise without Gaussians: held-out needles planted in held-out bags, and longer bags.

Take a model and bags that it never saw. In each negative bag R tokens are replaced by tokens of
positive bags, drawn with their chance of being a needle; what the model says of these bags and of
the untouched ones is its error. Heights and values move together, straws and needles have their own
laws, and a bag keeps what its tokens share. For longer bags, straws of other negatives are appended
to real bags: that needs no R, and sees no straw taller than the tallest there is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .arrays import Array, Bags
from .counting import Count, needle_weights
from .nesting import Model

PLANTS = 20  # times that each negative bag is planted


def planted_error(
    bags: Bags, y: Array, block: Array, models: Sequence[Model], weights: Array, count: Count,
    rng: np.random.Generator,
) -> float:  # fmt: skip
    """The error that planting promises, over all blocks; models[a] never saw block a.

    `weights` (N,) are the tokens' chances of being needles, `needle_chances`.
    """
    missed, raised = [], []
    for a, model in enumerate(models):
        silent, loud = bags.take((block == a) & (y < 0)), bags.take((block == a) & (y > 0))
        if not len(silent) or not len(loud):
            continue
        weight = weights[((block == a) & (y > 0))[bags.owner]]
        h, v = silent.along(model.query), silent.along(model.coef) + model.offset
        raised.append(_scores(silent, h, v) > 0)
        if not weight.sum() > 0:
            continue
        needle = loud.along(model.query), loud.along(model.coef) + model.offset
        R = count.needles(silent.sizes)
        for _ in range(PLANTS):
            place = _places(silent, R, rng)
            drawn = rng.choice(len(weight), size=len(place), p=weight / weight.sum())
            planted_h, planted_v = h.copy(), v.copy()
            planted_h[place], planted_v[place] = needle[0][drawn], needle[1][drawn]
            missed.append(_scores(silent, planted_h, planted_v) <= 0)
    pi = float(np.mean(y > 0))
    return float(pi * np.concatenate(missed).mean() + (1 - pi) * np.concatenate(raised).mean())


def needle_chances(
    bags: Bags, y: Array, block: Array, models: Sequence[Model], count: Count
) -> Array:
    """By the heights that models with a sharpness see in the block they never saw."""
    heights = np.empty(bags.tokens.shape[0])
    for a, model in enumerate(models):
        heights[(block == a)[bags.owner]] = bags.take(block == a).along(model.query)
    return needle_weights(bags, y, heights, block, count)


def longer_error(
    bags: Bags, y: Array, block: Array, models: Sequence[Model], factor: int,
    rng: np.random.Generator,
) -> float | None:  # fmt: skip
    """The error on bags `factor` times as long; None where negatives hold too few tokens for it."""
    wrong = []
    for a, model in enumerate(models):
        here, silent = bags.take(block == a), bags.take((block == a) & (y < 0))
        straws = silent.tokens.shape[0]
        if (factor - 1) * int(here.sizes.max()) > 0.2 * straws:
            return None
        h, v = (here.along(part) for part in (model.query, model.coef))
        more = silent.along(model.query), silent.along(model.coef)
        extra = (factor - 1) * here.sizes
        drawn = rng.integers(straws, size=int(extra.sum()))
        owner = np.concatenate([here.owner, np.repeat(np.arange(len(here)), extra)])
        order = np.argsort(owner, kind="stable")
        grown = Bags(np.empty((len(owner), 0)), here.starts * factor)
        scores = _scores(
            grown,
            np.concatenate([h, more[0][drawn]])[order],
            np.concatenate([v, more[1][drawn]])[order] + model.offset,
        )
        wrong.append((scores > 0) != (y[block == a] > 0))
    return float(np.concatenate(wrong).mean())


def _scores(bags: Bags, heights: Array, values: Array) -> Array:
    return bags.sums(bags.weights(heights) * values)


def _places(bags: Bags, R: Array, rng: np.random.Generator) -> Array:
    """R random places in each bag."""
    order = np.lexsort((rng.random(bags.starts[-1]), bags.owner))
    rank = np.arange(bags.starts[-1]) - bags.starts[:-1][bags.owner]
    return order[rank < R[bags.owner]]
