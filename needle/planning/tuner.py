"""The best recipe for two gradient steps: share of the data for the query, sharpness and ridge.

The error of `predict_readout` along the query of `predict_alignment` is minimised over all three
at once, on a lattice (share in steps of 0.3 of its logit, sharpness of 2^¼, ridge of 10^¼) by
descent with shrinking strides. In the search a law has few nodes (half a per cent of the error),
at its end many. All points met are kept, so that no law is computed twice.

One thing the limit d → ∞ does not know: among n bags one label is in surplus by chance, and the
intercept b carries that surplus, with a standard deviation of about 1/√(nπ(1−π)). Against the small
scores of a large ridge it can decide everything. So recipes are compared by their error averaged
over b ± that deviation; what is reported is the error at b. Chapter 12; thm-c-saddle, thm-b-query.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import expit, ndtr

from ..data.classifiers import attention, pooled
from ..data.law import FeatureLaw, Scores
from ..data.tokens import SparseTokens
from ..kit.records import ConvergenceError
from ..readout.limit import OrderParameters, order_parameters
from ..readout.reuse import reuse_path
from ..readout.saddle import TOLERANCE
from ..readout.scores import Judged, judge, predicted_scores
from ..steps.alignment import predict_alignment
from ..steps.rates import RATE_W, calibrated_rate

Place = tuple[int, ...]
COARSE, FINE = {"resolution": 72, "bits": 11}, {"resolution": 384, "bits": 13}
LARGEST_REUSE = 10_000  # tokens in a bag
GAIN, NOTHING = 2e-3, math.log(1e-7)  # a smaller gain, relative, or a smaller error is not pursued


@dataclass(frozen=True)
class Recipe:
    """How to train, and what it gives.

    Attributes
    ----------
    error, auc, recall : of new bags
    share : of the data for the query (1 where all data serve twice)
    temperature, ridge : sharpness T = β|q| and λ of the readout
    cosine : s_q of the query
    """

    error: float
    auc: float
    recall: float
    share: float
    temperature: float
    ridge: float
    cosine: float
    place: Place = (0, 0, 0)


def descend(
    value: Callable[[Place], float], start: Place, low: Place, high: Place, strides: Sequence[int]
) -> Place:
    """A place that no step of the last stride improves: along an axis, or along the last two.

    The last two axes move together as well, since sharpness and ridge make up for each other.

    >>> bowl = lambda p: (p[0] - 3) ** 2 + 9 * (p[1] - p[0] + 1) ** 2
    >>> descend(bowl, (-5, 0), (-9, -9), (9, 9), (4, 1))
    (3, 2)
    """
    best = tuple(min(max(x, a), b) for x, a, b in zip(start, low, high, strict=True))
    ways = np.eye(len(best), dtype=int)[::-1]
    if len(best) > 1:
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


def _sharpness(k: int) -> float:
    return 2.0 ** (k / 4)


def _ridge(k: int) -> float:
    return 10.0 ** (k / 4)


class Tuner:
    """Everything about bags of L tokens with R needles, n of them in d dimensions, but θ."""

    def __init__(
        self, L: int, R: int, d: int, n: int, pi: float, *, loss: str = "logistic",
        false_alarms: float = 0.05, share: float | None = None,
    ) -> None:  # fmt: skip
        self.L, self.R, self.n, self.pi, self.alpha, self.loss = L, R, n, pi, n / d, loss
        self.rate, self.false_alarms = calibrated_rate(pi, loss), false_alarms
        self.shares = [float(expit(0.3 * k)) for k in range(-13, 14)]
        if share is not None:
            self.shares = [share]
        sharpest = round(4 * math.log2(2 * math.sqrt(2 * math.log(L)) + 2))
        self.low, self.high = (0, -8, -12), (len(self.shares) - 1, sharpest, 4)
        self.last: OrderParameters | None = None  # where the next search for a saddle starts
        self._laws = lru_cache(maxsize=4096)(self._law)
        self._errors = lru_cache(maxsize=None)(self._error)

    def model(self, theta: float) -> SparseTokens:
        return SparseTokens(self.L, self.R, theta, self.pi)

    def cosine(self, theta: float, alpha0: float) -> float:
        """s_q at the calibrated rate; a query that points away is of no use and counts as 0."""
        limit = predict_alignment(
            self.model(theta), alpha0, loss=self.loss, lr_w=RATE_W, lr_b=self.rate
        )
        return max(limit.query_cos, 0)

    def _law(self, theta: float, temperature: float, cos: float) -> FeatureLaw:
        return attention(self.model(theta), temperature=temperature, cos=cos, **COARSE)

    def _error(self, theta: float, place: Place, reused: bool) -> float:
        """log of the error on few nodes; with `reused` as if all data were fresh for both."""
        share = 1.0 if reused else self.shares[place[0]]
        law = self._laws(theta, _sharpness(place[1]), self.cosine(theta, share * self.alpha))
        alpha = self.alpha if reused else (1 - share) * self.alpha
        for start in (self.last, None) if self.last else (None,):
            o = order_parameters(law, alpha, _ridge(place[2]), loss=self.loss, start=start)
            if o.residual < TOLERANCE and o.rest > 0 and o.zeta > 0:
                self.last = o
                error = self.shaken(predicted_scores(law, o), 1.0 if reused else 1 - share)
                return max(math.log(max(error, 1e-300)), NOTHING)
        return math.inf

    def shaken(self, scores: Scores, part: float) -> float:
        """The error, averaged over the chance of b when a part of the n bags fits it."""
        chance = math.sqrt(self.pi * (1 - self.pi) / (part * self.n))
        chance *= 2 if self.loss == "square" else 1 / (self.pi * (1 - self.pi))
        y, mean, sd, weight = scores
        return sum(float(weight @ ndtr(-y * (mean + b) / sd)) for b in (chance, -chance)) / 2

    def start(self) -> Place:
        wanted = 0.65 if self.L > 50 else 0.4
        nearest = min(range(len(self.shares)), key=lambda k: abs(self.shares[k] - wanted))
        return nearest, 5, -6

    def quick_error(self, theta: float) -> float:
        """The error at a recipe that is never far off."""
        return math.exp(self._errors(theta, self.start(), False))

    def split(self, theta: float, near: Recipe | None = None) -> Recipe:
        """The best share, sharpness and ridge, from those at a θ nearby."""
        start, strides = (near.place, (2, 1)) if near else (self.start(), (4, 2, 1))
        place = descend(
            lambda p: self._errors(theta, p, False), start, self.low, self.high, strides
        )
        share, T, ridge = self.shares[place[0]], _sharpness(place[1]), _ridge(place[2])
        cos = self.cosine(theta, share * self.alpha)
        law = attention(self.model(theta), temperature=T, cos=cos, **FINE)
        o = order_parameters(law, (1 - share) * self.alpha, ridge, loss=self.loss)
        return Recipe(*self.judged(law, o), share, T, ridge, cos, place)

    def judged(self, law: FeatureLaw, o: OrderParameters) -> Judged:
        return judge(predicted_scores(law, o), self.false_alarms)

    def twice(self, theta: float, near: Recipe) -> Recipe | None:
        """All data for the query and again for the readout; None where theory or data are missing.

        Sharpness and ridge are first chosen as if the readout saw fresh data, then the ridge again
        among three.
        """
        if self.L > LARGEST_REUSE:
            return None
        low, high = (0, *self.low[1:]), (0, *self.high[1:])
        start = (0, *near.place[1:])
        place = descend(lambda p: self._errors(theta, p, True), start, low, high, (2, 1))
        T = _sharpness(place[1])
        ridges = [_ridge(place[2] + k) for k in (-2, 0, 2)]
        try:
            path = reuse_path(
                self.model(theta), self.alpha, ridges, temperature=T, loss=self.loss,
                lr_w=RATE_W, lr_b=self.rate, resolution=192, bits=12,
            )  # fmt: skip
        except ConvergenceError:
            return None
        good = [
            (self.shaken(scores, 1.0), ridge, readout.test_error, judge(scores, self.false_alarms))
            for ridge, (readout, scores) in zip(ridges, path, strict=True)
            if readout.converged
        ]
        if not good:
            return None
        _, ridge, error, judged = min(good)
        cos = self.cosine(theta, self.alpha)
        return Recipe(error, judged.auc, judged.recall, 1.0, T, ridge, cos, place)

    def average(self, theta: float) -> Recipe:
        """Mean pooling with all data for its readout, at the best ridge."""
        law = pooled(self.model(theta))

        def value(place: Place) -> float:
            ridge = _ridge(place[0]) / self.L
            o = order_parameters(law, self.alpha, ridge, loss=self.loss)
            return math.log(max(self.shaken(predicted_scores(law, o), 1.0), 1e-300))

        cached = lru_cache(maxsize=None)(value)
        (place,) = descend(cached, (0,), (-12,), (12,), (4, 2, 1))
        ridge = _ridge(place) / self.L
        o = order_parameters(law, self.alpha, ridge, loss=self.loss)
        return Recipe(*self.judged(law, o), 0.0, 0.0, ridge, 0.0)
