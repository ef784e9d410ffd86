"""Bayes' rule where a needle raises its token by a known strength: its error, and all its rates.

ε = π E₊ min(1, k/Λ) with k = (1 − π)/π and Λ = e_R(w)/C(L, R) over the bags of
`needle.learning.posterior`, one needle integrated. Chapter 9.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.special import ndtr

from ..data.tokens import SparseTokens, check_model
from ..kit.checks import check_array, check_real
from ..kit.records import ConvergenceError
from ..oracle.bayes import FEW, bayes_risk, log_mean_verdict
from ..oracle.straws import log_mean
from .crowd import SIZE, Crowd
from .posterior import LARGEST_R, STRONGEST, Handful, log_subsets

Array = np.ndarray
RARE = 0.02  # errors, as shares of guessing, below which needles are drawn where they are missed
HELD = 10  # bags of the net that an error of many needles is held by, at the least
FAINT = 1e-3  # strengths below which a crowd of needles is seen by its sum alone


@lru_cache(maxsize=8)
def _bags(straws: int, needles: int, many: bool) -> Handful | Crowd:
    """For whole errors, which have no control variate, a crowd is twice as large."""
    return Crowd(straws, needles, SIZE + 1) if many else Handful(straws, needles)


def bayes_error(model: SparseTokens, strength: Array | float) -> Array:
    """Test error of Bayes' rule when a needle raises the projection of its token by `strength`.

    It is the error of `oracle_error("bayes", …)` at θ = strength, deterministic:
    ε = π E₊ min(1, k/Λ), k = (1 − π)/π, so rare positives and rare errors are as exact as others:
    one needle is integrated, all other tokens are a fixed quasi-random net of bags. Several needles
    that are rarely missed are left to `needle.oracle.bayes.bayes_risk`, which is good to 1 or 2 %.
    For R > 40 the net has 2048 bags: expect a few per cent of an error of 10 %, a quarter of one of
    0.1 %. `ConvergenceError`, with the best estimate, where R > 12 and a handful of the net's bags
    hold nearly all of the error: then it is rarer than one in them, and the estimate too small.

    >>> model = SparseTokens(L=10, R=1, theta=5.0, pi=0.5)
    >>> np.round(bayes_error(model, [0.0, 3.0, 5.0]), 4)
    array([0.5   , 0.1574, 0.0178])
    """
    model = check_model(model)
    heights = check_array("strength", np.ravel(strength), "n")
    for height in heights:
        check_real("strength", height, 0)
    errors = [_bayes_error(model, min(float(r), STRONGEST)) for r in heights]
    return np.array(errors).reshape(np.shape(strength))


def _bayes_error(model: SparseTokens, r: float) -> float:
    """ε = π E₊ min(1, k/Λ) at one strength."""
    L, R, pi = model.L, model.R, model.pi
    least, log_k = min(pi, 1 - pi), math.log1p(-pi) - math.log(pi)
    many = R > LARGEST_R
    if r == 0:
        return least
    if r > 2 * math.sqrt(2 * max(log_k + log_subsets(L, R), 0.0)) + 80:  # below 10⁻³⁰⁰
        return 0.0
    if R == L or (many and r < FAINT):
        missed, raised = bayes_rates(model, r, log_k)
        return min(pi * float(missed[0]) + (1 - pi) * float(raised[0]), least)
    low, high = _bags(L - R, R - 1, many).log_e(r, R)
    constant = log_subsets(L, R) + R * r * r / 2
    verdicts = log_mean_verdict(high - constant, low - constant + r * r / 2, log_k, r)
    error = min(pi * math.exp(log_mean(verdicts)), least)
    if 1 < R <= FEW and error < RARE * least:
        return bayes_risk(L, R, r, pi, np.random.default_rng(7)).error
    if R > FEW and _held_by(verdicts) < HELD:
        raise ConvergenceError(
            f"errors of {R} needles at strength {r:g} are rarer than one in the bags of the net",
            error,
        )
    return error


def _held_by(logs: Array) -> float:
    """How many equal terms would make up a sum as evenly as these e^logs do."""
    shares = np.exp(logs - np.max(logs))
    return float(shares.sum() ** 2 / (shares @ shares))


def bayes_rates(
    model: SparseTokens, strength: float, evidence: Array | float
) -> tuple[Array, Array]:
    """P(log likelihood ratio ≤ evidence) of positives, and P(it is above) of negatives.

    The two sides of the whole curve of Bayes' rules, one for each threshold; `strength` in
    (0, 10⁶].

    >>> missed, raised = bayes_rates(SparseTokens(L=10, R=1, theta=5.0, pi=0.5), 5.0, [-2.0, 0.0])
    >>> missed.round(3), raised.round(3)
    (array([0.007, 0.02 ]), array([0.052, 0.015]))
    """
    model, L, R = check_model(model), model.L, model.R
    r = check_real("strength", strength, 0, STRONGEST, open_low=True)
    levels = check_array("evidence", np.ravel(evidence), "k")
    many = R > LARGEST_R
    if R == L or (many and r < FAINT):
        distance = r * (R / math.sqrt(L) if R < L else math.sqrt(L))
        t = distance / 2 + levels / distance
        return ndtr(t - distance), ndtr(-t)
    constant = log_subsets(L, R) + R * r * r / 2

    def below(bags: tuple[Array, Array], shift: float) -> Array:
        """P(likelihood ratio ≤ level), the token taken out being shift + N(0, 1)."""
        low, high = bags
        found = []
        for level in levels + constant:
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                left = np.where(high < level, level + np.log(-np.expm1(high - level)), -np.inf)
                found.append(float(ndtr((left - low) / r - shift).mean()))
        return np.array(found)

    full = _bags(L - R, R - 1, many).log_e(r, R)
    empty = full if R == 1 else _bags(L - 1, 0, many).log_e(r, R)
    return below(full, r), 1 - below(empty, 0.0)
