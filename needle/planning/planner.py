"""From five numbers to a decision: what each learner can do with your bags, and how to train.

`plan(L=1000, R=3, d=512, n=4000, pi=0.3)` lays out, for a range of signal strengths, the errors of
answering always no, of mean pooling, of attention trained by two gradient steps and of the best
learner there is, all with the same n labelled bags; how to split, how sharp, how much ridge; and
in a sentence what to do. Chapter 12.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable

import numpy as np
from scipy.optimize import brentq
from tqdm.auto import tqdm

from ..kit.checks import check_choice, check_flag, check_integer, check_real
from ..kit.records import ConvergenceError
from ..kit.threads import in_one_thread
from ..learning.limit import learning_thresholds, predict_learning
from ..learning.posterior import STRONGEST
from ..learning.verdicts import bayes_rates
from ..readout.scores import Judged
from ..steps.alignment import predict_alignment
from .answer import LEARNERS, Plan, PlanRow, advise
from .tuner import LARGEST_REUSE, Recipe, Tuner

EVIDENCE = np.concatenate([-np.geomspace(60, 0.5, 16), [0.0], np.geomspace(0.5, 60, 16)])


@in_one_thread
def plan(
    *,
    L: int,
    R: int,
    d: int,
    n: int,
    pi: float,
    theta: float | Iterable[float] | None = None,
    alpha_share: float | None = None,
    loss: str = "logistic",
    error: float | None = None,
    false_alarms: float = 0.05,
    balanced: bool | None = None,
    verbose: bool = False,
) -> Plan:
    """Plan the training of a classifier for bags of L tokens with R needles.

    Everything is computed in the limit of large d at n/d bags per dimension, with the calibrated
    rate of the bias and η_w = 0.05; Chapter 12 shows how far that is from real tokens.

    Parameters
    ----------
    L, R : tokens in a bag, and how many of them carry the signal in a positive bag
    d, n : token dimension ≥ 2, and the number of labelled bags ≥ 4
    pi : share of positive bags; n·pi and n·(1 − pi) must be at least 1
    theta : signal strengths; by default eight around the smallest at which attention succeeds
    alpha_share : the share of the data for the query; by default the best one for each θ
    loss : "logistic" or "square"
    error : the test error that `needed` asks for; by default 0.05, or a quarter of always-no's
        error where that is smaller
    false_alarms : the share of negatives that may be called positive, for the recall
    balanced : whether both labels weigh the same in the steps of the query; by default where that
        helps, which is with rare positives
    verbose : whether progress is shown

    The row of a strength does not depend on the other strengths that are asked for.

    Examples
    --------
    >>> made = plan(L=10, R=1, d=100, n=400, pi=0.5, theta=5.0)
    >>> row = made.rows[0]
    >>> [round(value, 2) for value in (row.pooled, row.attention, row.twice, row.best_possible)]
    [0.26, 0.03, 0.02, 0.02]
    >>> print(row.advice)
    Use attention, all data twice: sharpness 2.8, ridge 0.2, error 0.023 (best possible 0.019).
    """
    L, d = check_integer("L", L, 2), check_integer("d", d, 2)
    R, n = check_integer("R", R, 1, L), check_integer("n", n, 4)
    pi = check_real("pi", pi, 0, 1, open_low=True, open_high=True)
    if n * min(pi, 1 - pi) < 1:
        raise ValueError(
            f"pi = {pi!r} is not allowed: pi must leave a bag of each label among n = {n}"
        )
    check_choice("loss", loss, ("logistic", "square"))
    if alpha_share is not None:
        check_real("alpha_share", alpha_share, 0, 1, open_low=True, open_high=True)
    silent = min(pi, 1 - pi)
    if error is None:
        error = min(0.05, silent / 4)
    error = check_real("error", error, 0, silent, open_low=True, open_high=True)
    check_real("false_alarms", false_alarms, 0, 1, open_low=True, open_high=True)
    if balanced is not None:
        balanced = check_flag("balanced", balanced)
    tuner = Tuner(
        L, R, d, n, pi, loss=loss, false_alarms=false_alarms, share=alpha_share, balanced=balanced
    )
    desk = _Desk(tuner, d, error)
    strengths = sorted(set(desk.default_range() if theta is None else _strengths(theta)))
    shown = tqdm(strengths, disable=not verbose, file=sys.stderr, leave=False, unit="strength")
    rows = tuple(desk.row(strength) for strength in shown)
    return Plan(
        L, R, d, n, pi, loss, tuner.rate, error, false_alarms, rows, desk.warnings(), desk.needed
    )


def _strengths(theta: object) -> list[float]:
    values = list(theta) if isinstance(theta, Iterable) and not isinstance(theta, str) else [theta]
    if not values:
        raise ValueError(f"theta = {theta!r} is not allowed: theta must hold a number > 0")
    return [check_real("theta", value, 0, open_low=True) for value in values]


class _Desk:
    """Where a plan is made: nothing is computed twice, and no θ depends on another."""

    def __init__(self, tuner: Tuner, d: int, error: float) -> None:
        self.tuner, self.d, self.error = tuner, d, error
        self.silent = min(tuner.pi, 1 - tuner.pi)
        self.found: dict[str, dict[float, Recipe | None]] = {name: {} for name in LEARNERS}

    def recipe(self, name: str, theta: float) -> Recipe | None:
        """The best recipe of a learner."""
        known = self.found[name]
        if theta not in known:
            if name == "best_possible":
                known[theta] = self.best(theta)
            elif name == "pooled":
                known[theta] = self.tuner.average(theta)
            elif name == "attention":
                known[theta] = self.tuner.split(theta)
            else:
                split = self.recipe("attention", theta)
                known[theta] = self.tuner.twice(theta, split) if split else None
        return known[theta]

    def best(self, theta: float) -> Recipe:
        """The best learner as a recipe of which only the cosine and what it reaches are known."""
        model = self.tuner.model(theta)
        learned = predict_learning(model, self.tuner.alpha)
        judged = Judged(learned.test_error, 0.5, self.tuner.false_alarms)
        if learned.cos * theta > 0:
            missed, raised = bayes_rates(model, min(theta * learned.cos, STRONGEST), EVIDENCE)
            missed = np.concatenate([[0.0], missed, [1.0]])
            raised = np.concatenate([[1.0], raised, [0.0]])
            auc = float(-np.sum(np.diff(raised) * (1 - (missed[1:] + missed[:-1]) / 2)))
            recall = float(np.interp(self.tuner.false_alarms, raised[::-1], 1 - missed[::-1]))
            judged = Judged(learned.test_error, auc, recall)
        return Recipe(*judged, 0.0, theta * learned.cos, 0.0, learned.cos)

    def reached(self, name: str, theta: float) -> float:
        recipe = self.recipe(name, theta)
        return math.inf if recipe is None else recipe.error

    def needed(self, name: str) -> float:
        """The smallest θ with the error asked for, by regula falsi in the logarithms."""
        if name == "twice" and self.tuner.L > LARGEST_REUSE:
            return math.nan

        def gap(theta: float) -> float:
            return math.log(max(self.reached(name, theta), 1e-12) / self.error)

        low = high = math.sqrt(2 * math.log(self.tuner.L))
        while gap(high) > 0:
            low, high = high, 1.3 * high
            if high > 1e3 * math.sqrt(self.tuner.L):
                return math.inf
        while gap(low) <= 0:
            low, high = low / 1.3, low
        found = brentq(lambda t: gap(math.exp(t)), math.log(low), math.log(high), xtol=0.01)
        return float(math.exp(found))

    def default_range(self) -> list[float]:
        """Eight strengths from where the best learner starts to where attention has succeeded."""
        tuner, goal = self.tuner, self.error
        linear = self.needed("pooled")
        solved = lambda t: t >= linear or tuner.quick_error(t) <= goal  # noqa: E731
        low = high = min(max(1.0, math.sqrt(2 * math.log(tuner.L))), linear)
        while not solved(high):
            low, high = high, 1.3 * high
        while low > 0.01 * linear and solved(low):
            low, high = low / 1.3, low
        for _ in range(3):
            middle = math.sqrt(low * high)
            low, high = (low, middle) if solved(middle) else (middle, high)
        start = min(0.9 * self.needed("best_possible"), 0.75 * high)
        near, far = np.geomspace(0.75 * high, 1.5 * high, 6), math.sqrt(0.75 * high * start)
        spread = np.geomspace(start, 1.5 * high, 8)
        chosen = [start, far, *near] if start < 0.55 * high else spread
        return [float(f"{theta:.2g}") for theta in chosen]

    def row(self, theta: float) -> PlanRow:
        found = {name: self.recipe(name, theta) for name in LEARNERS}
        here = {name: recipe for name, recipe in found.items() if recipe}
        choice, advice = advise(
            self.silent, here["pooled"], here["attention"], found["twice"], here["best_possible"]
        )
        warnings = self.strained(theta, here["attention"])
        return PlanRow(theta, self.silent, here, choice, advice, warnings)

    def strained(self, theta: float, split: Recipe) -> tuple[str, ...]:
        """Warnings that depend on θ."""
        tuner, found = self.tuner, []
        model = tuner.model(theta)
        height, alpha0 = theta * split.cosine, split.share * tuner.alpha
        slow = predict_alignment(model, alpha0, loss=tuner.loss, balanced=split.balanced)
        if slow.query_cos < 0 and split.cosine > 0.05:
            found.append("with bias rates as slow as 0.5 the query turns away from the signal")
        if split.error < 0.9 * self.silent and height**2 < 2 * math.log(tuner.L):
            found.append(
                "the needle stands lower than the highest straws: small changes of the query matter"
            )
        try:
            edges = learning_thresholds(model)
        except (ConvergenceError, ValueError):
            return tuple(found)
        if edges.lower < tuner.alpha < edges.algorithm:
            found.append("hard phase: a learner with unlimited time could do better than 'best'")
        return tuple(found)

    def warnings(self) -> tuple[str, ...]:
        """Warnings that hold for every row."""
        tuner, found = self.tuner, []
        if 8 * self.d < tuner.L:
            found.append(
                f"L = {tuner.L} is large against d = {self.d}: the theory lets d grow first; "
                "expect a less reliable query than predicted"
            )
        if tuner.alpha * tuner.L < 10:
            found.append(
                f"αL = {tuner.alpha * tuner.L:.1f} is small: after a long first step the bags see "
                "themselves, keep η_w at 0.05 or below"
            )
        positives = tuner.alpha * self.d * tuner.pi
        if positives < 20:
            found.append(f"only about {positives:.0f} positive bags: expect large scatter")
        return tuple(found)
