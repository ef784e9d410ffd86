"""Checks of Chapter 6: capacity."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

from needle import SparseTokens, gaussian_mixture, pooled, predict_capacity, vectorized

from .desk import Sheet
from .judging import Array, function, value
from .reply import Reply

SHEET = Sheet("capacity")


@SHEET.exercise(
    "cover",
    "a function f(n, p): the probability that n points of ℝᵖ with coin labels are separable by a"
    " hyperplane through the origin.",
    hints=(
        "Divide Cover's count by the number of all labelings.",
        "2 Σ C(n−1, k)/2ⁿ over k < p is a probability of heads in n − 1 tosses.",
        "At most p − 1 heads in n − 1 tosses of a fair coin.",
    ),
    proof=(
        "at n = 2p it is a half, since 2p − 1 tosses are odd in number",
        "the last separable n is the toss that brings the p-th head",
        "p waiting times of mean 2 and variance 2; σ² = 2 per dimension",
    ),
)
def cover(answer: Any) -> Reply:
    def drawn(n: float, p: float) -> Array:
        heads = np.random.default_rng(601).binomial(int(n) - 1, 0.5, 20_000)
        return (heads < p).astype(float)

    return function(
        answer,
        lambda n, p: float(stats.binom(n - 1, 0.5).cdf(p - 1)),
        [{"n": 12, "p": 6}, {"n": 9, "p": 5}, {"n": 40, "p": 17}],
        rel=1e-4,
        mistakes=[
            (
                lambda n, p: stats.binom(n, 0.5).cdf(p),
                "Close: the sum runs to p − 1, over n − 1 tosses.",
            ),
            (
                lambda n, p: stats.binom(n, 0.5).cdf(p - 1),
                "How many tosses? Cover's binomials have n − 1.",
            ),
            (
                lambda n, p: stats.binom(n - 1, 0.5).cdf(p),
                "That is with an intercept: p + 1 dimensions.",
            ),
        ],
        draws=drawn,
    )


def _gordon(n: float, d: float) -> float:
    k = np.arange(1, int(n) + 1)
    pmf = stats.binom(n, 0.5).pmf(k)
    return float(2 * (pmf @ stats.f(k, d).cdf(d / k) + 0.5**n))


@SHEET.exercise(
    "gordon",
    "a function f(n, d): Gordon's bound 2 P(|g'₊| ≤ |h|) on the probability of separability.",
    hints=(
        "How many of the n entries of g' are positive? That number is random.",
        "Given k of them, |g'₊|² is χ² with k degrees of freedom, |h|² one with d.",
        "2 Σ_k Binomial(n, ½)(k) P(χ²_k ≤ χ²_d), by Fisher's F; k = 0 counts in full.",
    ),
    proof=(
        "separable if and only if min over v of max over γ of γᵀHv is negative",
        "the auxiliary problem falls into two parts: |g'₊| − |h|",
        "|g'₊|²/n → ½ and |h|²/d → 1, so the bound vanishes beyond 2d",
    ),
)
def gordon(answer: Any) -> Reply:
    def drawn(n: float, d: float) -> Array:
        rng = np.random.default_rng(602)
        left = rng.chisquare(np.maximum(rng.binomial(int(n), 0.5, 20_000), 1e-9))
        return 2.0 * (left <= rng.chisquare(d, 20_000))

    return function(
        answer,
        _gordon,
        [{"n": 40, "d": 10}, {"n": 250, "d": 100}, {"n": 90, "d": 40}],
        rel=5e-3,
        mistakes=[
            (lambda n, d: _gordon(n, d) / 2, "The comparison costs a factor of two."),
            (
                lambda n, d: stats.binom(n - 1, 0.5).cdf(d - 1),
                "That is the exact probability; Gordon's bound is wider.",
            ),
            (
                lambda n, d: 2 * stats.f(n / 2, d).cdf(d / (n / 2)),
                "The number of positive entries is not n/2, it scatters.",
            ),
        ],
        draws=drawn,
    )


@SHEET.exercise(
    "support",
    "a function f(d): how many samples carry weight in a proof that pooled data (with intercept)"
    " cannot be separated.",
    hints=(
        "The multipliers solve d + 1 linear equations.",
        "Their total is fixed too.",
        "A vertex has as many non-zero entries as there are equations: d + 2.",
    ),
)
def support(answer: Any) -> Reply:
    return function(
        answer,
        lambda d: d + 2,
        [{"d": 40}, {"d": 7}],
        rel=1e-6,
        mistakes=[
            (lambda d: d + 1, "One equation is missing: the total weight is fixed."),
            (lambda d: d, "The intercept gives an equation as well, and so does the total weight."),
        ],
    )


@SHEET.exercise(
    "intercept",
    "a number: the capacity of pooled features without intercept, L = 10, R = 1, θ = 5, π = ½.",
    hints=(
        "`predict_capacity` has an option for that.",
        "Pooled negatives sit at the origin, so a hyperplane through it wastes distance.",
        "predict_capacity(pooled(model), intercept=False).",
    ),
)
def intercept(answer: Any) -> Reply:
    law = pooled(SparseTokens(L=10, R=1, theta=5.0, pi=0.5))
    return value(
        answer,
        lambda: predict_capacity(law, intercept=False),
        rel=2e-3,
        mistakes=[
            (lambda: predict_capacity(law), "That is with intercept."),
            (2.0, "That would be coin labels; there is some signal left."),
        ],
    )


def _pair(distance: float) -> float:
    return predict_capacity(gaussian_mixture(mean=distance / 2, var_pos=1.0, var_neg=1.0))


@SHEET.exercise(
    "fixed",
    "a function f(L, theta): the capacity of the vectorized model when the needle always sits in"
    " the first token, π = ½.",
    hints=(
        "The weight goes to the first token alone.",
        "There the classes are θ apart, in Ld dimensions.",
        "L times the capacity of two unit Gaussians at distance θ.",
    ),
)
def fixed(answer: Any) -> Reply:
    def moving(L: float, theta: float) -> float:
        return predict_capacity(vectorized(SparseTokens(L=int(L), R=1, theta=theta, pi=0.5)))

    return function(
        answer,
        lambda L, theta: L * _pair(theta),
        [{"L": 4, "theta": 1.5}, {"L": 10, "theta": 2.5}],
        rel=2e-3,
        mistakes=[
            (moving, "That is a needle that moves: distance θ/√L."),
            (
                lambda L, theta: _pair(theta),
                "Samples are counted per token dimension; the model has L times as many.",
            ),
        ],
    )


@SHEET.exercise(
    "length",
    "a function f(L, theta): the capacity of pooling in a long bag with one needle, to first order,"
    " π = ½.",
    hints=(
        "Without a signal it is Cover's 2.",
        "The gain is proportional to δ², with δ = θ/√L.",
        "2 + θ²/(πL), with π = 3.14159….",
    ),
)
def length(answer: Any) -> Reply:
    def gain(L: float, theta: float, factor: float = 1.0) -> float:
        return 2 + factor * theta**2 / (np.pi * L)

    return function(
        answer,
        gain,
        [{"L": 100, "theta": 5.0}, {"L": 4000, "theta": 9.0}],
        rel=5e-4,
        mistakes=[
            (lambda L, theta: 2.0, "That is the limit; what is the first correction?"),
            (lambda L, theta: gain(L, theta, 0.5), "Half of the gain is missing."),
            (lambda L, theta: gain(L, theta, 2.0), "Twice too much of a gain."),
        ],
    )


@SHEET.exercise(
    "missed",
    "a function f(limit, batches): a deviation of how many standard errors, of the quotient in"
    " Student's law, is refused half of the time?",
    hints=(
        "The limit holds for z; the quotient has a heavier tail.",
        "Find the quotient with the same tail probability, batches − 1 degrees of freedom.",
        "t.isf(norm.sf(limit), batches − 1).",
    ),
)
def missed(answer: Any) -> Reply:
    return function(
        answer,
        lambda limit, batches: float(stats.t.isf(stats.norm.sf(limit), batches - 1)),
        [{"limit": 4.15, "batches": 20}, {"limit": 3.0, "batches": 6}],
        rel=3e-3,
        mistakes=[
            (
                lambda limit, batches: limit,
                "That would be many batches; few leave the standard error uncertain.",
            ),
            (
                lambda limit, batches: stats.t.isf(stats.norm.sf(limit), batches),
                "One degree of freedom is spent on the mean.",
            ),
        ],
    )
