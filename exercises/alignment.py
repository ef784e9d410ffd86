"""Checks of Chapter 4: two gradient steps."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from needle import SparseTokens, calibrated_rate, predict_alignment, simulate_alignment

from .desk import Sheet
from .judging import Array, function, numbers, value
from .reply import Reply

SHEET = Sheet("alignment")


@SHEET.exercise(
    "critical-share",
    "a function f(L, R, theta): the share of positives below which small rates turn the query"
    " away.",
    hints=(
        "The sign of the cosine is that of signal plus echo.",
        "πθ²R̄ > (1 − 2π)(L − 1), with R̄ = R(L − R)/L, is linear in π.",
        "π_c = (L − 1)/(θ²R̄ + 2(L − 1)).",
    ),
)
def critical_share(answer: Any) -> Reply:
    def share(L: float, theta: float, needles: float) -> float:
        return (L - 1) / (theta**2 * needles + 2 * (L - 1))

    return function(
        answer,
        lambda L, R, theta: share(L, theta, R * (L - R) / L),
        [
            {"L": 10, "R": 1, "theta": 0.0},
            {"L": 12, "R": 4, "theta": 2.0},
            {"L": 50, "R": 5, "theta": 6.0},
        ],
        mistakes=[
            (
                lambda L, R, theta: share(L, theta, R),
                "A needle also raises the mean of its bag: R̄ = R(L − R)/L, not R.",
            ),
            (
                lambda L, R, theta: (L - 1) / (theta**2 * R * (L - R) / L + (L - 1)),
                "The pulls of the classes are +½ and −½: the echo carries 2π − 1.",
            ),
        ],
    )


@SHEET.exercise(
    "stein",
    "a function f(w, A, C) at L = 10, R = 3, θ = 6: the mean of γX̄, a vector like w with ξ first,"
    " where A = E[γ 1(y = 1)] and C = E[ℓ''(t; y)].",
    hints=(
        "Split the mean token into its mean, given the label, and noise of variance 1/L.",
        "Stein's lemma for the noise: one factor 1/√L in front, one from the chain rule.",
        "θR/L · A along ξ, minus C/L times w.",
    ),
    proof=(
        "in one dimension by parts, from zφ(z) = −φ'(z)",
        "in several dimensions coordinate by coordinate, the others held fixed",
        "the gradient of −ℓ'(t) is −ℓ'' w/√L",
    ),
)
def stein(answer: Any) -> Reply:
    def pull(w: Array, A: float, C: float) -> Array:
        return 1.8 * A * np.eye(1, len(w))[0] - C / 10 * w

    return function(
        answer,
        pull,
        [
            {"w": np.array([1.0, -2.0, 0.5]), "A": 0.2, "C": 0.1},
            {"w": np.array([-0.3, 0.7, 4.0]), "A": 0.05, "C": 0.24},
        ],
        mistakes=[
            (
                lambda w, A, C: pull(w, A, -C),
                "The second term has the wrong sign: a step shrinks what is there.",
            ),
            (
                lambda w, A, C: pull(w, A, 10 * C),
                "Noise of the mean token has variance 1/L, not 1.",
            ),
            (lambda w, A, C: pull(w, A, 0), "A readout that is already there is pulled on, too."),
        ],
    )


@SHEET.exercise(
    "second-step",
    "a function f(L, R, theta): the quotient C/C_w of the laws of query and readout, π = ½, small"
    " rates.",
    hints=(
        "At small rates and π = ½ all pulls are ±γ₊, and the echo is silent.",
        "C = ((L−1) + θ²R̄/2)/(θ⁴R̄²/2), C_w = 2L/(θ²R²).",
        "((L−1) + θ²R̄/2)/(θ²L(1 − R/L)²), since R̄ = R(1 − R/L).",
    ),
    proof=(
        "Γ₁ = 0, Γ₂ = γ₊², Γ₊ = γ₊/2, hence B = 0",
        "for R ≪ L the quotient is 1/θ² + R/(2L)",
        "L cancels: both steps suffer from it alike",
    ),
)
def second_step(answer: Any) -> Reply:
    def quotient(L: float, R: float, theta: float) -> float:
        signal = theta**2 * R * (L - R) / L / 2
        return (L - 1 + signal) / (theta**2 * L * (1 - R / L) ** 2)

    return function(
        answer,
        quotient,
        [
            {"L": 1000, "R": 1, "theta": 1.5},
            {"L": 20, "R": 6, "theta": 3.0},
            {"L": 8, "R": 2, "theta": 0.7},
        ],
        rel=3e-3,
        mistakes=[
            (lambda L, R, theta: 1 / theta**2, "Right for one needle in a long bag; keep R/L."),
            (
                lambda L, R, theta: quotient(L, R, theta) * (1 - R / L) ** 2,
                "R̄ is R(1 − R/L), squared.",
            ),
            (lambda L, R, theta: 1 / quotient(L, R, theta), "That is C_w/C, upside down."),
        ],
    )


def _aligned(rate: float, alpha0: float) -> float:
    task = SparseTokens(10, 1, 3.0, 0.2)
    return predict_alignment(task, alpha0, lr_b=rate).query_cos


@SHEET.exercise(
    "best-bias",
    "a number: the rate η_b of the largest limiting cosine at L = 10, R = 1, θ = 3, π = 0.2 and"
    " α₀ = 1.",
    hints=(
        "Calibration silences the echo. An echo along w⁽¹⁾ may also help.",
        "Beyond calibration the echo points towards ξ, and brings the noise of w⁽¹⁾.",
        "Maximize predict_alignment(task, 1.0, lr_b=…).query_cos over η_b between 4 and 12.",
    ),
)
def best_bias(answer: Any) -> Reply:
    rate = float(numbers(answer, ()))
    if not 0 <= rate <= 100:
        return Reply(False, "A rate between 0 and 100 is asked.")
    found = minimize_scalar(lambda x: -_aligned(x, 1.0), bounds=(0, 40), method="bounded")
    yours = _aligned(rate, 1.0)
    if yours > -found.fun - 2e-4:
        return Reply(True, f"Right: the cosine is {yours:.3f}.")
    if abs(rate - calibrated_rate(0.2)) < 0.05:
        return Reply(False, "That is the calibrated rate: the echo is silent. Is silence best?")
    return Reply(False, f"There the cosine is {yours:.3f}; another rate reaches {-found.fun:.3f}.")


@SHEET.exercise(
    "fresh",
    "a function f(lr_w, pull, alpha0, L): the term of the score t that disappears when the second"
    " step sees new samples (pull is γ_y).",
    hints=(
        "A training sample has moved w itself: by how much does its own score rise?",
        "It adds η_w γ_y X̄/n₀ to w, and ⟨X̄, X̄⟩ ≈ d/L.",
        "η_w γ_y/(α₀L).",
    ),
)
def fresh(answer: Any) -> Reply:
    return function(
        answer,
        lambda lr_w, pull, alpha0, L: lr_w * pull / (alpha0 * L),
        [
            {"lr_w": 5.0, "pull": 0.5, "alpha0": 1.0, "L": 10},
            {"lr_w": 0.5, "pull": -0.5, "alpha0": 3.0, "L": 40},
        ],
        mistakes=[
            (
                lambda lr_w, pull, alpha0, L: lr_w * pull / alpha0,
                "The mean of L tokens is shorter than a token.",
            ),
            (
                lambda lr_w, pull, alpha0, L: lr_w * pull / L,
                "One sample among n₀: how large is d/n₀?",
            ),
        ],
    )


@SHEET.exercise(
    "many-needles",
    "an array of three exponents of R in the strength: for a cosine of 1/√2 of the query, for a"
    " linear model, and for detection.",
    hints=(
        "A linear model sees only θR/√L.",
        "The query's law depends on x = L/(α₀√(π³(1−π)) θ³R²) while θ is large.",
        "θ³R² fixed gives −2/3; θR fixed gives −1; detection keeps θ⁴R² fixed.",
    ),
)
def many_needles(answer: Any) -> Reply:
    return value(
        answer,
        np.array([-2 / 3, -1, -1 / 2]),
        rel=0.04,
        mistakes=[
            (np.array([2 / 3, 1, 1 / 2]), "More needles, longer needles? Mind the sign."),
            (
                np.array([-1.0, -1, -1]),
                "If all were −1, attention would see only θR, like averaging.",
            ),
        ],
    )


@SHEET.exercise(
    "small",
    "a number: the probability that the query of L = 10, R = 1, θ = 3, π = 0.2, η_b = 3, α₀ = 4 is"
    " anti-aligned at d = 64.",
    hints=(
        "The limit is positive, but a single draw scatters around it.",
        "`predict_spread` gives d times the variance of the cosine.",
        "Φ(−limit/√(spread/64)), or count draws.",
    ),
)
def small(answer: Any) -> Reply:
    share = float(numbers(answer, ()))
    rng, task = np.random.default_rng(407), SparseTokens(10, 1, 3.0, 0.2)
    drawn = [simulate_alignment(task, 64, 4.0, rng, lr_b=3.0).query_cos < 0 for _ in range(1500)]
    seen, error = float(np.mean(drawn)), float(np.std(drawn) / np.sqrt(1500))
    words = f"In 1500 draws {seen:.1%} point away (± {error:.1%})"
    if abs(share - seen) < 0.03 + 3 * error:
        return Reply(True, f"Right. {words}; the normal law is within three hundredths of that.")
    if share == 0:
        return Reply(False, f"{words}: a positive limit is no promise for one draw.")
    return Reply(False, "Not yet: count how often a draw in 64 dimensions points away.")


@SHEET.exercise(
    "patience",
    "a function f(L, theta): samples per dimension for a cosine of 1/√2 of the query, R = 1, π = ½,"
    " by the formula for long bags.",
    hints=(
        "The cosine is 1/√(1 + x² + x/θ) at π = ½.",
        "x² + x/θ = 1 has the root x = √(1 + 1/(4θ²)) − 1/(2θ).",
        "α₀ = L/(xπ²θ³).",
    ),
)
def patience(answer: Any) -> Reply:
    def needed(L: float, theta: float) -> float:
        x = np.sqrt(1 + 1 / (4 * theta**2)) - 1 / (2 * theta)
        return float(4 * L / (x * theta**3))

    def limit(L: float, theta: float) -> float:
        task = SparseTokens(int(L), 1, theta, 0.5)

        def gap(alpha0: float) -> float:
            return predict_alignment(task, alpha0, lr_b=4.0).query_cos - 0.5**0.5

        return float(brentq(gap, needed(L, theta) / 5, needed(L, theta) * 5))

    reply = function(
        answer,
        needed,
        [{"L": 1e4, "theta": 8.0}, {"L": 300, "theta": 3.0}, {"L": 1e6, "theta": 5.0}],
        mistakes=[
            (
                lambda L, theta: 4 * L / theta**3,
                "That neglects x/θ, which is not small at these strengths.",
            ),
            (lambda L, theta: 4 * L / theta**2, "That is what the readout needs."),
        ],
    )
    if not reply:
        return reply
    return Reply(
        True,
        f"{reply.words} The full limit at L = 300, θ = 3 asks for {limit(300, 3.0):.1f}, the"
        f" formula {needed(300, 3.0):.1f}.",
    )
