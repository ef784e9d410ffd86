"""Checks of the chapter beyond the model."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import gamma, logit

from needle import SparseTokens, attention, predict_transfer
from needle.oracle import second_moment_cos

from .desk import Sheet
from .judging import Array, function, numbers, value
from .reply import Reply

SHEET = Sheet("beyond")


@SHEET.exercise(
    "imbalance",
    "a function f(pi): the factor ς of the logistic loss at the calibrated rate, π ≠ ½.",
    hints=(
        "At the calibrated rate b = logit π and the difference of the mean pulls is 1.",
        "The second term is ℓ''(b) η_b with ℓ''(b) = π(1 − π).",
        "1 − π(1 − π) logit(π)/(π − ½).",
    ),
    proof=(
        "Γ₁ depends on the share directly, and through b",
        "multiply by √(π(1−π)/n₀), divide by the length of the noise",
        "ς vanishes at π = ½ only",
    ),
)
def imbalance(answer: Any) -> Reply:
    def factor(pi: float) -> float:
        return float(1 - pi * (1 - pi) * logit(pi) / (pi - 0.5))

    return function(
        answer,
        factor,
        [{"pi": 0.1}, {"pi": 0.32}, {"pi": 0.9}],
        rel=5e-3,
        mistakes=[
            (
                lambda pi: 1.0,
                "That is without the bias, which follows the share and takes most of it back.",
            ),
            (lambda pi: 0.0, "Calibration silences the mean; does it silence chance?"),
            (lambda pi: 1 - factor(pi), "That is the part that the bias takes back."),
        ],
    )


@SHEET.exercise(
    "directions",
    "a function f(theta, K): the strength of one direction that gives the same cosine as K"
    " directions"
    " of strength θ.",
    hints=(
        "The mean token of positives points along ξ̄ = K^(−½) Σ ξ_k.",
        "Its length is θ/(L√K).",
        "θ/√K, in the first step and in the second.",
    ),
    proof=(
        "the mean token is θ/(L√K) ξ̄",
        "θ²R̄/K Σ ξ_kξ_kᵀ maps ξ̄ to θ²R̄/K ξ̄",
        "each needle has height θs/√K along the query; K heads need √(2 log KL)",
    ),
)
def directions(answer: Any) -> Reply:
    return function(
        answer,
        lambda theta, K: theta / np.sqrt(K),
        [{"theta": 7.0, "K": 1}, {"theta": 5.0, "K": 3}],
        mistakes=[
            (lambda theta, K: theta / K, "The mean of K orthonormal vectors is longer than 1/K."),
            (lambda theta, K: theta, "One query cannot look along K directions at full length."),
        ],
    )


@SHEET.exercise(
    "whitening",
    "a function f(eigenvalues): by which factor whitening changes the strength along a generic"
    " direction (an array of eigenvalues of the covariance).",
    hints=(
        "After whitening the signal is θ Σ^(−½) ξ.",
        "Its squared length is θ² ξᵀΣ⁻¹ξ; for a generic ξ that is a trace.",
        "√(tr Σ⁻¹/d).",
    ),
    proof=(
        "d² ≤ d Σ λ² by Cauchy–Schwarz",
        "d² ≤ Σ λ · Σ 1/λ by Cauchy–Schwarz",
        "the strength falls where ξ lies along directions of large variance",
    ),
)
def whitening(answer: Any) -> Reply:
    points = [{"eigenvalues": np.array([1.0, 4.0])}, {"eigenvalues": np.array([0.2, 0.5, 2.3])}]
    return function(
        answer,
        lambda eigenvalues: float(np.sqrt(np.mean(1 / eigenvalues))),
        points,
        mistakes=[
            (
                lambda eigenvalues: np.mean(eigenvalues**-0.5),
                "Average the squared length, then take the root.",
            ),
            (lambda eigenvalues: np.mean(1 / eigenvalues), "That is the factor of θ²."),
            (
                lambda eigenvalues: np.mean(eigenvalues) ** -0.5,
                "The mean of the inverses is not the inverse of the mean.",
            ),
        ],
    )


@SHEET.exercise(
    "random-start",
    "a number: the squared cosine with ξ that many applications of Q reach, L = 20, R = 1, θ = 5,"
    " π = ½, α = 3.",
    hints=(
        "Every application multiplies the part along an eigenvector by its eigenvalue.",
        "In the long run the leading eigenvector remains.",
        "second_moment_cos(task, 3.0) squared.",
    ),
)
def random_start(answer: Any) -> Reply:
    def cos() -> float:
        return second_moment_cos(SparseTokens(20, 1, 5.0, 0.5), 3.0)

    return value(
        answer,
        lambda: cos() ** 2,
        rel=0.02,
        mistakes=[
            (cos, "That is the cosine; its square is asked."),
            (1.0, "The matrix is that of finitely many bags: its leading eigenvector is not ξ."),
        ],
    )


@SHEET.exercise(
    "normalized",
    "a function f(k): the factor E[1/σ] E[1/σ²] by which normalizing tokens of sizes"
    " σ² = (k − 2)/χ²_k multiplies θ³.",
    hints=(
        "1/σ² is χ²_k/(k − 2), whose mean is easy.",
        "E√χ²_k = √2 Γ((k+1)/2)/Γ(k/2).",
        "√(2/(k−2)) Γ((k+1)/2)/Γ(k/2) · k/(k−2).",
    ),
)
def normalized(answer: Any) -> Reply:
    def first(k: float) -> float:
        return float(np.sqrt(2 / (k - 2)) * gamma((k + 1) / 2) / gamma(k / 2))

    def drawn(k: float) -> Array:
        square = np.random.default_rng(905).chisquare(k, (40, 5000)) / (k - 2)
        product: Array = np.sqrt(square).mean(axis=1) * square.mean(axis=1)
        return product

    return function(
        answer,
        lambda k: first(k) * k / (k - 2),
        [{"k": 4}, {"k": 12}, {"k": 6}],
        rel=3e-3,
        mistakes=[
            (
                lambda k: (k / (k - 2)) ** 1.5,
                "The mean of a root is less than the root of the mean.",
            ),
            (first, "That is the first step alone; the second sees E[1/σ²]."),
            (lambda k: k / (k - 2), "That is the second step alone; the first sees E[1/σ]."),
        ],
        draws=drawn,
    )


@lru_cache
def _shares() -> tuple[float, float]:
    law, test = (
        attention(SparseTokens(L, 1, 6.0, 0.5), temperature=2.0, cos=0.9, resolution=240)
        for L in (2000, 20)
    )
    found = predict_transfer(law, test, 4.0, 0.01)
    return found.misses, found.false_alarms


@SHEET.exercise(
    "below-freezing",
    "an array of two shares: misses and false alarms of the untouched head, trained at 2000 tokens"
    " with θ = 6, T = 2, s_q = 0.9, α = 4, λ = 0.01, tested at 20.",
    hints=(
        "`predict_transfer` takes the law of training and that of the test.",
        "The fields are `misses` and `false_alarms`.",
        "Both laws are attention(model, temperature=2.0, cos=0.9), with L = 2000 and L = 20.",
    ),
)
def below_freezing(answer: Any) -> Reply:
    given, exact = numbers(answer, (2,)), np.array(_shares())
    return value(
        given,
        exact,
        rel=0.12,
        mistakes=[
            (
                exact[::-1],
                "In the wrong order: does a shorter bag raise or lower the scores of negatives?",
            ),
            (exact / 2, "Shares of each class are asked, not of all bags."),
        ],
    )
