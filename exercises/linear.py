"""Checks of Chapter 2: linear baselines."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import ndtr, ndtri

from needle import SparseTokens, pooled, predict_readout

from .desk import Sheet
from .judging import Array, function, numbers, value
from .reply import Reply

SHEET = Sheet("linear")


@SHEET.exercise(
    "only-equal",
    "an array of 12 weights of the places, better than equal ones at L = 12, R = 1, δ = 2, π = 0.02"
    " and the best threshold.",
    hints=(
        "At small π the threshold lies so high that equal weights hardly ever reach it.",
        "Give up some places, so that a needle in one of the others counts for more.",
        "Try equal weights on k of the 12 places and none on the rest, for each k.",
    ),
    proof=(
        "step 1 is an equality only for t = m/2 with m ≥ 0",
        "step 2 only if |m| is the same for all subsets, by strict concavity of Φ(|m|/2)",
        "step 3 only if all rows lie along ξ and have the same length; then their signs agree",
        "for π ≠ ½ step 1 fails: the difference is no longer the mass of an interval",
    ),
)
def only_equal(answer: Any) -> Reply:
    w = numbers(answer, (12,))
    if not np.linalg.norm(w) > 0:
        return Reply(False, "Weights that are all zero see nothing.")
    u = 2 * np.sqrt(12) * w / np.linalg.norm(w)

    def risk(t: float) -> float:
        return float(0.02 * ndtr(t - u).mean() + 0.98 * ndtr(-t))

    error = min(
        float(minimize_scalar(risk, bounds=(k, k + 1), method="bounded").fun) for k in range(6)
    )
    equal = 0.0181
    if error < 0.01672:
        return Reply(True, f"Right: your error is {error:.4f}, equal weights err on {equal}.")
    if error > equal - 1e-4:
        return Reply(False, f"Your error is {error:.4f}, no better than that of equal weights.")
    return Reply(False, f"Your error is {error:.4f}, better than {equal}, but not the least.")


def _mean_cos(delta: float, alpha: float) -> float:
    return float((1 + 4 / (alpha * delta**2)) ** -0.5)


@SHEET.exercise(
    "infinite-ridge",
    "a function f(delta, alpha): the limiting test error at infinite ridge, π = ½.",
    hints=(
        "Under an infinite ridge the weights are the difference of the class means.",
        "That difference is δξ plus noise of squared length 4/α: what is its cosine with ξ?",
        "Φ(−δ cos/2) with cos = (1 + 4/(αδ²))^(−1/2).",
    ),
    proof=(
        "all scores tend to the intercept, so each class pulls with one constant",
        "stationarity in b balances the classes, so w is along the difference of class means",
        "the noise of that difference has 1/n₊ + 1/n₋ = 4/n per coordinate",
    ),
)
def infinite_ridge(answer: Any) -> Reply:
    def drawn(delta: float, alpha: float) -> Array:
        rng, d = np.random.default_rng(202), 2000
        w = delta * np.eye(1, d)[0] + np.sqrt(4 / (alpha * d)) * rng.standard_normal((60, d))
        return ndtr(-delta / 2 * w[:, 0] / np.linalg.norm(w, axis=1))

    return function(
        answer,
        lambda delta, alpha: float(ndtr(-delta / 2 * _mean_cos(delta, alpha))),
        [{"delta": 1.0, "alpha": 3.0}, {"delta": 2.0, "alpha": 0.4}, {"delta": 3.0, "alpha": 1.5}],
        rel=2e-3,
        mistakes=[
            (
                lambda delta, alpha: ndtr(-delta / 2),
                "That is the error with ξ known; learning it costs a cosine.",
            ),
            (
                lambda delta, alpha: ndtr(-delta / 2 * (1 + 1 / (alpha * delta**2)) ** -0.5),
                "Each class mean has half of the samples: count its noise again.",
            ),
            (
                lambda delta, alpha: ndtr(-delta / 2 / (1 + 4 / (alpha * delta**2))),
                "The cosine has a root.",
            ),
        ],
        draws=drawn,
    )


@SHEET.exercise(
    "ridgeless",
    "a function f(delta, alpha), α > 1: the limiting cosine of the ridgeless least-squares readout"
    " with ξ, for unit Gaussians at ±δξ/2 and no intercept.",
    hints=(
        "Write the label as the best linear function of the features plus a rest.",
        "Across ξ the solution is noise of squared length Var ε/(α − 1).",
        "With u = δ²/4: cos² = u(1 − 1/α)/(u + 1/α).",
    ),
    proof=(
        "w* = (δ/2)/(1 + δ²/4) ξ and Var ε = 1/(1 + δ²/4)",
        "along ξ the solution is consistent",
        "across ξ: Var ε · (1/α) · α/(α − 1)",
    ),
)
def ridgeless(answer: Any) -> Reply:
    def truth(delta: float, alpha: float) -> float:
        u = delta**2 / 4
        return float(np.sqrt(u * (1 - 1 / alpha) / (u + 1 / alpha)))

    def drawn(delta: float, alpha: float) -> Array:
        rng, d, found = np.random.default_rng(203), 60, []
        for _ in range(20):
            y = rng.choice([-1.0, 1.0], round(alpha * d))
            F = rng.standard_normal((len(y), d))
            F[:, 0] += y * delta / 2
            w = np.linalg.solve(F.T @ F, F.T @ y)
            found.append(w[0] / np.linalg.norm(w))
        return np.array(found)

    return function(
        answer,
        truth,
        [{"delta": 2.0, "alpha": 2.0}, {"delta": 3.0, "alpha": 1.2}, {"delta": 1.0, "alpha": 4.0}],
        rel=2e-3,
        mistakes=[
            (lambda delta, alpha: truth(delta, alpha) ** 2, "That is the squared cosine."),
            (_mean_cos, "That is the cosine at infinite ridge."),
        ],
        draws=drawn,
    )


@SHEET.exercise(
    "equal-places",
    "a number: the power of d with which the relative spread over the places falls.",
    hints=(
        "Measure the spread at d = 40, 80, 160 and look at ratios.",
        "Four times the dimension, how much less spread?",
        "The places of a twin differ by noise of a unit vector in d dimensions along one"
        " direction.",
    ),
)
def equal_places(answer: Any) -> Reply:
    return value(
        answer,
        -0.5,
        rel=0.1,
        mistakes=[
            (0.5, "The size is right; does the spread grow?"),
            (-1.0, "That would be the variance; the spread is its root."),
        ],
    )


@SHEET.exercise(
    "label-noise",
    "a function f(rho): how many times as many samples make up for labels flipped with"
    " probability ρ?",
    hints=(
        "Among the samples labeled +1 a share ρ are negatives.",
        "The class means are (1 − 2ρ)δ apart, and their noise is as before.",
        "The cosine depends on αδ², so α must grow by (1 − 2ρ)⁻².",
    ),
)
def label_noise(answer: Any) -> Reply:
    return function(
        answer,
        lambda rho: (1 - 2 * rho) ** -2,
        [{"rho": 0.0}, {"rho": 0.1}, {"rho": 0.33}],
        mistakes=[
            (
                lambda rho: 1 / (1 - 2 * rho),
                "The signal shrinks by that; samples count by its square.",
            ),
            (lambda rho: 1 / (1 - rho), "A flipped label is worse than a missing one."),
            (
                lambda rho: (1 - 2 * rho) ** 2,
                "That is how much the samples are worth, not how many more are needed.",
            ),
        ],
    )


@SHEET.exercise(
    "unknown-strength",
    "a function f(A, alpha): δ from the area A under the ROC curve of a readout trained at infinite"
    " ridge on α samples per dimension, π = ½.",
    hints=(
        "Along w the classes are x apart: A = Φ(x/√2).",
        "x is δ times the cosine of the exercise on infinite ridge: an equation for δ².",
        "δ² = ½(x² + √(x⁴ + 16x²/α)) with x = √2 Φ⁻¹(A).",
    ),
)
def unknown_strength(answer: Any) -> Reply:
    def truth(A: float, alpha: float) -> float:
        x = np.sqrt(2) * float(ndtri(A))
        return float(np.sqrt((x**2 + np.sqrt(x**4 + 16 * x**2 / alpha)) / 2))

    return function(
        answer,
        truth,
        [{"A": 0.7, "alpha": 1.0}, {"A": 0.9, "alpha": 5.0}, {"A": 0.6, "alpha": 0.5}],
        rel=2e-3,
        mistakes=[
            (
                lambda A, alpha: np.sqrt(2) * ndtri(A),
                "That is the distance along w: too small by the cosine of w with ξ.",
            ),
            (
                lambda A, alpha: truth(A, 4 * alpha),
                "Check the noise of the difference of two class means: 4/α.",
            ),
        ],
    )


@SHEET.exercise(
    "power",
    "a number: by how much does the wrong identity promise too little, E_pool(α/L, λ/L) −"
    " E_pool(α/(L−1), λ/L), for"
    " the logistic loss, L = 4, R = 1, θ = 5, α = 8, λ = 0.1?",
    hints=(
        "`predict_readout` computes both errors.",
        "Only the number of samples differs: α/3 against α/4 per weight.",
        "predict_readout(pooled(task), 8/4, 0.1/4) minus the same at 8/3.",
    ),
)
def power(answer: Any) -> Reply:
    def gap(k: float, ridge: float = 4) -> float:
        task = pooled(SparseTokens(L=4, R=1, theta=5.0, pi=0.5))
        wrong = predict_readout(task, 8 / k, 0.1 / ridge).test_error
        return predict_readout(task, 2.0, 0.1 / 4).test_error - wrong

    return value(
        answer,
        lambda: gap(3),
        rel=5e-3,
        mistakes=[
            (lambda: -gap(3), "The size is right; which of the two errors is larger?"),
            (lambda: gap(3, 3), "The wrong claim keeps the ridge at λ/L."),
        ],
    )
