"""The best recipe for two gradient steps: share of the data for the query, sharpness and ridge.

The error of `predict_readout` along the query of `predict_alignment` is minimised over all three
at once, in (logit of the share, log₂ T, log₁₀ λ), along the slopes that the saddle point gives away
(`needle.planning.slopes`). In the search a law has few nodes (half a per cent of the error), at its
end many. Each θ starts from the same formula, so that a recipe depends on nothing else that was
asked.

One thing the limit d → ∞ does not know: among n bags one label is in surplus by chance, and the
intercept b carries that surplus, with a standard deviation of about 1/√(nπ(1−π)). Against the small
scores of a large ridge it can decide everything. So recipes are compared by their error averaged
over b ± that deviation; what is reported is the error at b. Chapter 12; thm-c-saddle, thm-b-query.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import expit, logit, ndtr

from ..data.classifiers import attention, pooled
from ..data.law import FeatureLaw, Scores
from ..data.tokens import SparseTokens
from ..kit.records import ConvergenceError
from ..readout.limit import OrderParameters, order_parameters
from ..readout.retuned import retune
from ..readout.scores import Judged, judge, predicted_scores
from ..steps.alignment import predict_alignment
from ..steps.rates import RATE_W, calibrated_rate
from .search import lowest
from .slopes import Sloped, sloped

Array = np.ndarray
COARSE, FINE = {"resolution": 72, "bits": 11}, {"resolution": 384, "bits": 13}
LARGEST_REUSE = 10_000  # tokens in a bag
LEAST = 1e-7  # a smaller error is not pursued
SHARES, RIDGES, DULLEST = (-3.9, 3.9), (-3.0, 1.0), -2.0  # logits, log₁₀ λ, log₂ T
NEARBY, FAR = 2e-3, 0.7  # how far a law is moved for its slope, and before cells are renewed
PLAIN, HALF = math.log(0.97), math.log(0.6)  # of always-no's error: from there on a second start
HELPS = 1.02  # balanced steps are taken where they raise the cosine by this factor


@dataclass(frozen=True)
class Recipe:
    """How to train, and what it gives.

    Attributes
    ----------
    error, auc, recall : of new bags
    share : of the data for the query (1 where all data serve twice)
    temperature, ridge : sharpness T = β|q| and λ of the readout
    cosine : s_q of the query
    balanced : whether both labels weigh the same in the steps of the query
    """

    error: float
    auc: float
    recall: float
    share: float
    temperature: float
    ridge: float
    cosine: float
    balanced: bool = False


class Tuner:
    """Everything about bags of L tokens with R needles, n of them in d dimensions, but θ.

    `balanced` says whether both labels weigh the same in the two steps; None: where it helps.
    """

    def __init__(
        self, L: int, R: int, d: int, n: int, pi: float, *, loss: str = "logistic",
        false_alarms: float = 0.05, share: float | None = None, balanced: bool | None = None,
    ) -> None:  # fmt: skip
        self.L, self.R, self.n, self.pi, self.alpha, self.loss = L, R, n, pi, n / d, loss
        self.rate, self.false_alarms = calibrated_rate(pi, loss), false_alarms
        self.balanced, self.silent = balanced, math.log(min(pi, 1 - pi))
        self.shares = SHARES if share is None else (float(logit(share)),) * 2
        self.sharpest = math.log2(2 * math.sqrt(2 * math.log(L)) + 2)
        self.cosine = lru_cache(maxsize=4096)(self._cosine)

    def model(self, theta: float) -> SparseTokens:
        return SparseTokens(self.L, self.R, theta, self.pi)

    def _cosine(self, theta: float, alpha0: float, balanced: bool = False) -> float:
        """s_q at the calibrated rate; a query that points away is of no use and counts as 0."""
        limit = predict_alignment(
            self.model(theta), alpha0, loss=self.loss, lr_w=RATE_W, lr_b=self.rate,
            balanced=balanced,
        )  # fmt: skip
        return max(limit.query_cos, 0)

    def helped(self, theta: float) -> bool:
        """Whether the steps are balanced: where that raises the cosine, all data for the query."""
        if self.balanced is not None:
            return self.balanced
        plain, equal = (self.cosine(theta, self.alpha, balanced) for balanced in (False, True))
        return equal > HELPS * plain

    def start(self, theta: float) -> Array:
        """Recipes of a thousand random settings, by least squares; off by about 0.7 each."""
        length, needles = math.log(self.L), math.log(self.R)
        height = math.log(theta / math.sqrt(2 * length))
        share = -0.9 + 0.55 * length - 0.9 * needles - 0.5 * height
        sharp = -0.5 + 0.3 * length - 0.55 * needles + 1.1 * height
        return np.clip(
            [share, sharp, -2.2 - 0.3 * needles],
            [self.shares[0], DULLEST, RIDGES[0]],
            [self.shares[1], self.sharpest, RIDGES[1]],
        )

    def chance(self, part: float) -> float:
        """The standard deviation of b when a part of the n bags fits it."""
        spread = math.sqrt(self.pi * (1 - self.pi) / (part * self.n))
        return spread * (2 if self.loss == "square" else 1 / (self.pi * (1 - self.pi)))

    def shaken(self, scores: Scores, part: float) -> float:
        """The error, averaged over the chance of b."""
        y, mean, sd, weight = scores
        chance = self.chance(part)
        return sum(float(weight @ ndtr(-y * (mean + b) / sd)) for b in (chance, -chance)) / 2

    def quick_error(self, theta: float) -> float:
        """The error at an untuned recipe: sharpness 2.4, ridge 0.03, share 0.65 (or 0.4)."""
        share = np.clip(logit(0.65 if self.L > 50 else 0.4), *self.shares)
        return math.exp(_Search(self, theta, False)(np.array([share, 1.25, -1.5]))[0])

    def split(self, theta: float) -> Recipe:
        """The best share, sharpness and ridge."""
        search, start = _Search(self, theta, False), self.start(theta)
        sharp = (start[0] + 0.5, (start[1] + self.sharpest) / 2, -0.2)
        low, high = (self.shares[0], DULLEST, RIDGES[0]), (self.shares[1], self.sharpest, RIDGES[1])
        place = search.lowest((start, sharp), low, high)
        share, T, ridge = float(expit(place[0])), float(2.0 ** place[1]), float(10.0 ** place[2])
        cos = self.cosine(theta, share * self.alpha, search.balanced)
        law = attention(self.model(theta), temperature=T, cos=cos, **FINE)
        o = order_parameters(
            law, (1 - share) * self.alpha, ridge, loss=self.loss, start=search.near()
        )
        return Recipe(*self.judged(law, o), share, T, ridge, cos, search.balanced)

    def judged(self, law: FeatureLaw, o: OrderParameters) -> Judged:
        return judge(predicted_scores(law, o), self.false_alarms)

    def twice(self, theta: float, near: Recipe) -> Recipe | None:
        """All data for the query and again for the readout; None where theory or data are missing.

        Sharpness and ridge are first chosen as if the readout saw fresh data, then the ridge again.
        """
        if self.L > LARGEST_REUSE:
            return None
        search = _Search(self, theta, True)
        start = (0.0, math.log2(near.temperature), math.log10(near.ridge))
        starts = (start, (0.0, (start[1] + self.sharpest) / 2, -0.2))
        low, high = (0.0, DULLEST, RIDGES[0]), (0.0, self.sharpest, RIDGES[1])
        place = search.lowest(starts, low, high)
        T = float(2.0 ** place[1])
        try:
            found = retune(
                self.model(theta), self.alpha, 10.0 ** place[2], temperature=T, loss=self.loss,
                lr_w=RATE_W, lr_b=self.rate, balanced=search.balanced, chance=self.chance(1.0),
                resolution=192, bits=12, start=search.near(),
            )  # fmt: skip
        except ConvergenceError:
            return None
        judged = judge(found.scores, self.false_alarms)._replace(error=found.readout.test_error)
        cos = self.cosine(theta, self.alpha, search.balanced)
        return Recipe(*judged, 1.0, T, found.ridge, cos, search.balanced)

    def average(self, theta: float) -> Recipe:
        """Mean pooling with all data for its readout, at the best ridge."""
        law, chance = pooled(self.model(theta)), self.chance(1.0)
        last: list[Any] = [None]

        def value(place: Array) -> tuple[float, Array]:
            ridge = 10.0 ** place[0] / self.L
            found = sloped(law, self.alpha, ridge, chance=chance, loss=self.loss, start=last[0])
            return _logarithm(found, last, lambda at: [at.ridge])

        place = lowest(value, ((-0.5,), (1.0,), (-2.0,)), (-3.0,), (3.0,), self.silent + PLAIN)
        ridge = float(10.0 ** place[0]) / self.L
        o = order_parameters(law, self.alpha, ridge, loss=self.loss)
        return Recipe(*self.judged(law, o), 0.0, 0.0, ridge, 0.0)


def _logarithm(
    found: Sloped | None, last: list[Any], slopes: Callable[[Sloped], list[float]]
) -> tuple[float, Array]:
    """Value and slopes of the log of an error from `LEAST` on; `last` keeps the saddle point."""
    if found is None:
        return math.inf, np.zeros(1)
    last[0] = found.x
    if found.error <= LEAST:
        return math.log(LEAST), np.zeros(len(slopes(found)))
    return math.log(found.error), np.array(slopes(found)) / found.error


class _Search:
    """log of the error on few nodes, and its slopes; `reused` as if all data were fresh for both.

    The saddle point of one look starts the next. Points of the law stay in the cells of the first
    look, so that the error is smooth; `settled` says whether these cells still fit, or renews them.
    """

    def __init__(self, tuner: Tuner, theta: float, reused: bool) -> None:
        self.tuner, self.theta, self.reused = tuner, theta, reused
        self.balanced = tuner.helped(theta)
        self.last: list[Any] = [None]
        self.law: Any = None
        self.at = np.zeros(3)

    def settled(self, place: Array) -> bool:
        """Whether the place is near that of the cells; otherwise the next look makes new ones."""
        near = bool(np.abs(place - self.at)[:2].max() < FAR)
        self.law = self.law if near else None
        return near

    def near(self) -> OrderParameters | None:
        """The last saddle point met."""
        return None if self.last[0] is None else OrderParameters(*self.last[0].tolist())

    def lowest(self, starts: Any, low: Any, high: Any) -> Array:
        """The best place; once more from there if it is far from where the cells were made."""
        place = lowest(self, starts, low, high, self.tuner.silent + HALF)
        for _ in range(2):
            if self.settled(place):
                break
            place = lowest(self, (place,), low, high, math.inf)
        return place

    def __call__(self, place: Array) -> tuple[float, Array]:
        tuner, T, ridge = self.tuner, 2.0 ** place[1], 10.0 ** place[2]
        share = 1.0 if self.reused else float(expit(place[0]))
        part = 1.0 if self.reused else 1 - share
        cos = self.cosine(place[0])
        if self.law is None:
            self.at = place
            self.law = attention(tuner.model(self.theta), temperature=T, cos=cos, **COARSE)
        law = self.law.beside(T, cos)
        beside = [law.beside(T * 2**NEARBY, cos)]
        if not self.reused:
            beside.append(law.beside(T, self.cosine(place[0] + NEARBY)))
        chance = tuner.chance(part)
        found = sloped(
            law, part * tuner.alpha, ridge, chance=chance, loss=tuner.loss, beside=beside,
            start=self.last[0],
        )  # fmt: skip

        def slopes(at: Sloped) -> list[float]:
            across = 0.0
            if not self.reused:
                across = at.laws[1] / NEARBY + share * (chance * at.chance / 2 - at.alpha)
            return [across, at.laws[0] / NEARBY, at.ridge]

        return _logarithm(found, self.last, slopes)

    def cosine(self, logit_share: float) -> float:
        share = 1.0 if self.reused else float(expit(logit_share))
        return self.tuner.cosine(self.theta, share * self.tuner.alpha, self.balanced)
