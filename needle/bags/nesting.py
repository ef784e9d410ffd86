"""Nested cross-validation of pooling and attention for the price of ten fits a repetition.

The bags are cut into K = 5 blocks. For each pair of blocks (a, c) whitening, query and readouts are
learned on the other three; they score c as the inner validation of outer fold a, and a as that of
c. So K(K−1)/2 fits serve all K(K−1) inner folds, and nothing is chosen by what it judges. Then each
outer fold is learned once more, at its choice, from all its other blocks.

Three lines are judged on the same folds: "pooled" (sharpness 0), "needle" (whatever validation
chooses, pooling included: what one would deploy) and "attend" (a sharpness above 0).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import NamedTuple

import numpy as np

from ..kit.threads import in_one_thread
from .arrays import Array, Bags
from .logistic import Line, readouts
from .turn import query
from .units import Whitening, moments

SCALES: tuple[tuple[str, float | None], ...] = (("common", None), ("own", None), ("own", 1.0))
TAUS = (0.0, 0.5, 1.0, 2.0, 4.0)
RIDGES = (1e-3, 1e-2, 1e-1, 1.0)
LINES = {"pooled": slice(0, 1), "needle": slice(0, None), "attend": slice(1, None)}
FOLDS = 5
MOST = 1500  # bags among which choices are made

Choice = tuple[int, int, int]


class Model(NamedTuple):
    """One fitted line: heights ⟨q′, x⟩, the sharpness in them, and values ⟨c, x⟩ + b."""

    query: Array
    coef: Array
    offset: float
    choice: Choice

    def scores(self, bags: Bags) -> Array:
        """One score a bag."""
        weights = bags.weights(bags.along(self.query))
        return bags.sums(weights * bags.along(self.coef)) + self.offset


class Repetition(NamedTuple):
    """One cut into blocks: scores of all bags where they were held out, and the outer models.

    `losses` are the validation losses of every choice, summed over all inner folds.
    """

    block: Array
    scores: dict[str, Array]
    models: dict[str, list[Model]]
    losses: Array


@in_one_thread
def nested(
    bags: Bags,
    y: Array,
    block: Array,
    *,
    tick: Callable[[], None] = lambda: None,
) -> Repetition:
    """Judge the three lines on one cut; `tick` is called after each of the K(K−1)/2 + K fits.

    >>> from needle.bags.datasets import digit_bags
    >>> bags, y, _ = digit_bags(100, 10, 1, np.random.default_rng(0))
    >>> found = nested(bags, y, np.arange(100) % 5)
    >>> errors = {name: np.mean((s > 0) != (y > 0)) for name, s in found.scores.items()}
    >>> bool(errors["needle"] < errors["pooled"])
    True
    """
    count = int(block.max()) + 1
    losses = _inner(bags, y, block, count, tick)
    scores = {name: np.empty(len(y)) for name in LINES}
    models: dict[str, list[Model]] = {name: [] for name in LINES}
    means = bags.means()
    for a in range(count):
        weight, here = (block != a) * 1.0, block == a
        unseen, known = bags.take(here), {}
        for name, taus in LINES.items():
            part = losses[a][:, taus]
            r, i, j = np.unravel_index(int(np.argmin(part)), part.shape)
            choice = int(r), int(i) + (taus.start or 0), int(j)
            if choice not in known:
                known[choice] = fitted(bags, y, weight, means, choice)
            models[name].append(known[choice])
            scores[name][here] = known[choice].scores(unseen)
        tick()
    return Repetition(block, scores, models, losses.sum(axis=0))


def fitted(bags: Bags, y: Array, weight: Array, means: Array, choice: Choice) -> Model:
    """The line at one choice, from the bags that have weight, in the tokens' own entries."""
    (units, rho), tau, lam = SCALES[choice[0]], TAUS[choice[1]], RIDGES[choice[2]]
    white = moments(bags, y, units, weight=weight).whitening(rho)
    q = query(bags, y, white, weight=weight, means=means)
    rows = np.flatnonzero(weight > 0)
    raw = means[rows] if tau == 0 else bags.attended(tau * white.heights(bags, q))[rows]
    [line] = readouts(white.rows(raw), y[rows], [lam], weight=weight[rows], exact=False)
    return _plain(white, q, tau, line, choice)


def _plain(white: Whitening, q: Array, tau: float, line: Line, choice: Choice) -> Model:
    coef = white.pulled(line.w)
    return Model(tau * white.pulled(q), coef, line.b - float(white.mean @ coef), choice)


def _inner(
    bags: Bags, y: Array, block: Array, count: int,
    tick: Callable[[], None],
) -> Array:  # fmt: skip
    """Validation losses (outer fold, scale, τ, λ), among at most `MOST` bags."""
    if len(y) > MOST:
        rng = np.random.default_rng(len(y))
        order = rng.permutation(len(y))
        loud = order[y[order] > 0]
        kept = np.concatenate([loud[: MOST // 2], order[y[order] < 0]])[:MOST]
        bags, y, block = bags.take(kept), y[kept], block[kept]
    means = bags.means()
    losses = np.zeros((count, len(SCALES), len(TAUS), len(RIDGES)))
    for a, c in combinations(range(count), 2):
        train = (block != a) & (block != c)
        weight, rows = train * 1.0, np.flatnonzero(train)
        tests = [(a, block == c), (c, block == a)]
        known = {units: moments(bags, y, units, weight=weight) for units, _ in SCALES}
        for r, (units, rho) in enumerate(SCALES):
            white = known[units].whitening(rho)
            q = query(bags, y, white, weight=weight, means=means)
            heights = white.heights(bags, q)
            for i, tau in enumerate(TAUS):
                F = white.rows(bags.attended(tau * heights) if tau else means)
                for j, line in enumerate(readouts(F[rows], y[rows], RIDGES, exact=False)):
                    for outer, test in tests:
                        losses[outer, r, i, j] += np.logaddexp(0, -y[test] * line(F[test])).sum()
        tick()
    return losses
