"""One label against the others: choices by cross-validation, and what is learned at them.

The work behind `NeedleClassifier`, whose parameters these are. A fold is a vector of weights: bags
that are held out weigh 0, and nothing is copied.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from tqdm.auto import tqdm

from ..kit.checks import check_choice, check_flag, check_integer, check_real
from .arrays import Array, Bags
from .folds import Splits, splits
from .logistic import readouts
from .messages import message_passing
from .portrait import Portrait, estimate
from .threshold import best_threshold, platt
from .turn import query
from .units import Whitening, moments

THRESHOLDS = ("error", "balanced", "f1")
Scale = tuple[str, float | None]


class Task(NamedTuple):
    """One question of yes and no: bags, signs, weights, and the mean tokens, made once."""

    bags: Bags
    signs: Array
    weight: Array
    means: Array


class Learned(NamedTuple):
    """A whitening and a query, the heights of all tokens, and how much the readout weighs bags."""

    white: Whitening
    query: Array
    heights: Array
    weight: Array

    def features(self, bags: Bags, tau: float) -> Array:
        """What the readout learns from."""
        return self.white.rows(bags.attended(tau * self.heights))


class Fit:
    """One label against the others: choices made, and what was learned at them."""

    def __init__(self, settings: Any, task: Task, seed: int, groups: Any, label: Any) -> None:
        self.settings, self.task, self.seed, self.label = settings, task, seed, label
        check_choice("learner", settings.learner, ("steps", "messages"))
        scales, taus, lams = _grids(settings)
        self.scores_: Array | None = None
        self.portrait_: Portrait | None = None
        if check_choice("tuning", settings.tuning, ("validation", "plan")) == "plan":
            taus, lams = self._planned()
            scales = [scale for scale in scales if scale[0] == scales[0][0]]
        held: Array | None = None
        place = 0, 0, 0
        wanted = settings.threshold in THRESHOLDS or check_flag("calibrate", settings.calibrate)
        if len(scales) * len(taus) * len(lams) > 1 or wanted:
            folds = splits(settings.cv, task.signs, seed, groups)
            if folds:
                held, self.scores_ = self._validate(scales, taus, lams, folds)
                a, b, c = np.unravel_index(np.argmin(self.scores_), self.scores_.shape)
                place = int(a), int(b), int(c)
                held = held[place]
        self.sharpness_, self.ridge_ = taus[place[1]], lams[place[2]]
        [learned] = self._learn(task.weight, [scales[place[0]]])
        self.units_, self.shrinkage_ = scales[place[0]][0], learned.white.shrinkage
        self.whitening_, self.query_ = learned.white, learned.query
        F, seen = learned.features(task.bags, self.sharpness_), learned.weight > 0
        [line] = readouts(F[seen], task.signs[seen], [self.ridge_], weight=learned.weight[seen])
        self.coef_, self.intercept_ = line
        white = learned.white
        self.query = self.sharpness_ * white.pulled(learned.query)
        self.coef = white.pulled(line.w)
        self.offset = line.b - float(white.mean @ self.coef)
        self._decide(held)

    def _decide(self, held: Array | None) -> None:
        """Threshold and calibration, by the scores of bags that were held out."""
        settings, known = self.settings, np.zeros(0, dtype=int)
        self.slope, self.shift, self.threshold = 1.0, 0.0, 0.0
        if held is not None:
            known = np.flatnonzero(~np.isnan(held) & (self.task.weight > 0))
            held = held[known]
        y, weight = self.task.signs[known], self.task.weight[known]
        if settings.calibrate and held is not None:
            self.slope, self.shift = platt(held, y, weight)
        if isinstance(settings.threshold, str):
            check_choice("threshold", settings.threshold, THRESHOLDS)
            if held is not None:
                self.threshold = best_threshold(held, y, settings.threshold, weight)
            return
        chance = check_real("threshold", settings.threshold, 0, 1, open_low=True, open_high=True)
        if chance != 0.5 or self.shift != 0:
            self.threshold = (float(np.log(chance / (1 - chance))) - self.shift) / self.slope

    def _planned(self) -> tuple[list[float], list[float]]:
        """Sharpness and ridge as `plan` says from a portrait, whose warnings are passed on."""
        settings, bags = self.settings, self.task.bags
        self.portrait_ = found = estimate(bags, self.task.signs)
        R = check_integer("needles", settings.needles, 1)
        options = {} if settings.share is None else {"alpha_share": settings.share}
        known = None if found.separated else R
        middle = max(found.strengths(known)[1][1], 0.5)
        made = found.plan(R=known, theta=middle, **options)
        for text in made.warnings:
            warnings.warn(text, UserWarning, stacklevel=4)
        [row] = made.rows
        recipe = row.recipes["attention"]
        if settings.share is None and "twice" in row.recipes:
            recipe = row.recipes["twice"]
        attends = row.choice in ("attention", "twice")
        return [recipe.temperature if attends else 0.0], [recipe.ridge]

    def _learn(self, weight: Array, scales: Iterable[Scale]) -> list[Learned]:
        """Whitening and query for every way to scale, from the bags that have weight."""
        bags, signs, settings = self.task.bags, self.task.signs, self.settings
        first = second = weight
        if settings.share is not None:
            first, second = _split(settings.share, signs, weight, self.seed)
        known, found = {}, []
        for units, rho in scales:
            if units not in known:
                known[units] = moments(bags, signs, units, weight=first)
            white = known[units].whitening(rho)
            if settings.learner == "steps":
                q = query(bags, signs, white, weight=first, means=self.task.means)
            else:
                taught = np.flatnonzero(first > 0)
                q = message_passing(bags.take(taught), signs[taught], white).query
            found.append(Learned(white, q, white.heights(bags, q), second))
        return found

    def _validate(
        self, scales: list[Scale], taus: list[float], lams: list[float], folds: Splits
    ) -> tuple[Array, Array]:
        """Scores of every bag where it was held out, (scale, τ, λ, n), and mean losses."""
        task, settings = self.task, self.settings
        held = np.full((len(scales), len(taus), len(lams), len(task.signs)), np.nan)

        def one(train: Array, test: Array) -> None:
            weight = np.zeros(len(task.signs))
            weight[train] = task.weight[train]
            for r, learned in enumerate(self._learn(weight, scales)):
                seen = learned.weight > 0
                for i, tau in enumerate(taus):
                    F = learned.features(task.bags, tau)
                    lines = readouts(
                        F[seen], task.signs[seen], lams, weight=learned.weight[seen], exact=False
                    )
                    for j, line in enumerate(lines):
                        held[r, i, j, test] = line(F[test])
            bar.update()

        shown = {"desc": f"folds for {self.label}", "file": sys.stderr, "leave": False}
        with tqdm(total=len(folds), disable=not settings.verbose, **shown) as bar:
            Parallel(n_jobs=settings.n_jobs, prefer="threads")(
                delayed(one)(train, test) for train, test in folds
            )
        known = ~np.isnan(held[0, 0, 0])
        losses = np.logaddexp(0, -task.signs[known] * held[..., known])
        return held, losses @ task.weight[known] / task.weight[known].sum()


def _grids(settings: Any) -> tuple[list[Scale], list[float], list[float]]:
    def grid(value: Any) -> list:
        return list(value) if np.iterable(value) and not isinstance(value, str) else [value]

    scales = [
        (
            check_choice("units", units, ("common", "own")),
            rho if rho is None else check_real("shrinkage", rho, 0, 1),
        )
        for units in grid(settings.units)
        for rho in grid(settings.shrinkage)
    ]
    taus = [check_real("sharpness", tau, 0) for tau in grid(settings.sharpness)]
    return scales, taus, [check_real("ridge", lam, 1e-12) for lam in grid(settings.ridge)]


def _split(share: Any, signs: Array, weight: Array, seed: int) -> tuple[Array, Array]:
    """Weights of the bags that teach the query and of the others, each label split in one share.

    A label's only bag is in both.
    """
    share = check_real("share", share, 0, 1, open_low=True, open_high=True)
    rng, parts = np.random.default_rng(seed), np.zeros((2, len(signs)))
    for label in (-1, 1):
        own = rng.permutation(np.flatnonzero((signs == label) & (weight > 0)))
        cut = min(max(1, round(share * len(own))), max(1, len(own) - 1))
        parts[0, own[:cut]] = 1
        parts[1, own[cut:] if len(own) > 1 else own] = 1
    return parts[0] * weight, parts[1] * weight
