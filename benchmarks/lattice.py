"""The search that a plan had before: a lattice of recipes, by descent with shrinking strides.

It needs no slopes, and is kept as the slow path beside `Tuner.split`: shares in steps of 0.3 of the
logit, sharpness of 2^¼, ridge of 10^¼.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
from scipy.special import expit

from needle.data.classifiers import attention
from needle.planning.tuner import COARSE, FINE, Recipe, Tuner
from needle.readout.limit import OrderParameters, order_parameters
from needle.readout.newton import TOLERANCE
from needle.readout.scores import predicted_scores

Place = tuple[int, ...]
GAIN = 2e-3  # a smaller gain, relative, is not pursued


def descend(
    value: Callable[[Place], float], start: Place, low: Place, high: Place, strides: Sequence[int]
) -> Place:
    """A place that no step of the last stride improves: along an axis, or along the last two.

    >>> bowl = lambda p: (p[0] - 3) ** 2 + 9 * (p[1] - p[0] + 1) ** 2
    >>> descend(bowl, (-5, 0), (-9, -9), (9, 9), (4, 1))
    (3, 2)
    """
    best = tuple(min(max(x, a), b) for x, a, b in zip(start, low, high, strict=True))
    ways = np.eye(len(best), dtype=int)[::-1]
    ways = np.vstack([ways, ways[:2].sum(axis=0)])
    for stride in strides:
        moved = True
        while moved:
            moved = False
            for way in (*(stride * ways), *(-stride * ways)):
                while True:
                    other = tuple(np.clip(np.add(best, way), low, high).tolist())
                    if other == best or not value(other) < value(best) - GAIN:
                        break
                    best, moved = other, True
    return best


def reached(tuner: Tuner, theta: float, recipe: Recipe) -> float:
    """The error that recipes are compared by, on many nodes: averaged over the chance of b."""
    cos = tuner.cosine(theta, recipe.share * tuner.alpha, recipe.balanced)
    law = attention(tuner.model(theta), temperature=recipe.temperature, cos=cos, **FINE)
    o = order_parameters(law, (1 - recipe.share) * tuner.alpha, recipe.ridge, loss=tuner.loss)
    return tuner.shaken(predicted_scores(law, o), 1 - recipe.share)


def lattice(tuner: Tuner, theta: float, strides: Sequence[int] = (4, 2, 1)) -> Recipe:
    """`Tuner.split` by the lattice, from the same start."""
    balanced, last = tuner.helped(theta), list[OrderParameters]()

    def settings(place: Place) -> tuple[float, float, float]:
        return float(expit(0.3 * place[0])), 2.0 ** (place[1] / 4), 10.0 ** (place[2] / 4)

    @cache
    def law(share: float, T: float):
        cos = tuner.cosine(theta, share * tuner.alpha, balanced)
        return attention(tuner.model(theta), temperature=T, cos=cos, **COARSE)

    @cache
    def value(place: Place) -> float:
        share, T, ridge = settings(place)
        for near in (last[-1], None) if last else (None,):
            o = order_parameters(
                law(share, T), (1 - share) * tuner.alpha, ridge, loss=tuner.loss, start=near
            )
            if o.residual < TOLERANCE and o.rest > 0 and o.zeta > 0:
                last.append(o)
                return math.log(tuner.shaken(predicted_scores(law(share, T), o), 1 - share))
        return math.inf

    logit_share, log_T, log_ridge = tuner.start(theta)
    start = round(logit_share / 0.3), round(4 * log_T), round(4 * log_ridge)
    place = descend(value, start, (-13, -8, -12), (13, round(4 * tuner.sharpest), 4), strides)
    share, T, ridge = settings(place)
    cos = tuner.cosine(theta, share * tuner.alpha, balanced)
    fine = attention(tuner.model(theta), temperature=T, cos=cos, **FINE)
    o = order_parameters(fine, (1 - share) * tuner.alpha, ridge, loss=tuner.loss)
    return Recipe(*tuner.judged(fine, o), share, T, ridge, cos, balanced)
