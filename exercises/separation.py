"""Checks of Chapter 3: separation."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr, ndtri, softmax

from needle import critical_theta, required_theta

from .desk import Sheet
from .judging import Array, call, function, numbers, value
from .reply import Reply

SHEET = Sheet("separation")


@SHEET.exercise(
    "truncated",
    "a function f(L, theta) that returns two numbers, mean and variance of the likelihood ratio of"
    " a negative sample when only tokens below a = √(2 log L) are kept.",
    hints=(
        "The ratio is a mean of L independent terms; cut each of them.",
        "Tilting by θ moves the Gaussian to θ, tilting by 2θ to 2θ.",
        "Mean Φ(a − θ); variance (e^(θ²) Φ(a − 2θ) − Φ(a − θ)²)/L.",
    ),
    proof=(
        "ε = (1 − TV)/2 and TV ≤ √Var Λ/2, with Var Λ = (e^(θ²) − 1)/L: impossible up to √(log L)",
        "the second moment is carried by tokens near 2θ, higher than any that occurs",
        "E|Λ − 1| ≤ 2(1 − p) + √V, and V → 0 in both cases, 2θ ≤ a and 2θ > a",
    ),
)
def truncated(answer: Any) -> Reply:
    def moments(L: float, theta: float) -> Array:
        a = np.sqrt(2 * np.log(L))
        p, second = ndtr(a - theta), np.exp(theta**2) * ndtr(a - 2 * theta)
        return np.array([p, (second - p**2) / L])

    def plain(L: float, theta: float) -> Array:
        return np.array([1.0, (np.exp(theta**2) - 1) / L])

    def uncentered(L: float, theta: float) -> Array:
        p, variance = moments(L, theta)
        return np.array([p, variance + p**2 / L])

    return function(
        answer,
        moments,
        [{"L": 1000, "theta": 0.8}, {"L": 1e4, "theta": 3.0}, {"L": 200, "theta": 2.0}],
        rel=2e-3,
        mistakes=[
            (
                plain,
                "Those are the moments without the cut; you were asked to keep tokens below a.",
            ),
            (
                uncentered,
                "The mean is right; the second number is a second moment, not a variance.",
            ),
        ],
    )


@SHEET.exercise(
    "crowd-sharpness",
    "a function f(theta): the sharpness that puts the classes farthest apart.",
    hints=(
        "Take the logarithm of the distance; only τ matters.",
        "Its derivative is θ − τ − τ/(1 + τ²).",
        "Solve τ + τ/(1 + τ²) = θ; the left side increases.",
    ),
    proof=(
        "E(h − τ)e^(τh) = θ e^(τθ + τ²/2) by tilting",
        "the left side increases, so there is one solution",
        "τ ≈ θ/2 for weak and θ − 1/θ for strong needles; gain e^(θ²/4)",
    ),
)
def crowd_sharpness(answer: Any) -> Reply:
    def best(theta: float) -> float:
        return float(brentq(lambda t: t + t / (1 + t**2) - theta, 0, theta))

    return function(
        answer,
        best,
        [{"theta": 0.3}, {"theta": 1.1}, {"theta": 4.0}],
        rel=3e-3,
        mistakes=[
            (
                lambda theta: theta,
                "That is where the boundary is reached, not where the distance is largest.",
            ),
            (lambda theta: theta / 2, "Right for weak needles only."),
            (lambda theta: theta - 1 / theta, "Right for strong needles only."),
        ],
    )


@SHEET.exercise(
    "coarse-threshold",
    "a function f(L, tau) that returns two strengths: the boundary that the best threshold sees,"
    " and the one that the coarse threshold sees (τ below its freezing points).",
    hints=(
        "A coarse threshold is passed only if the needle holds about half of the weight.",
        "The best one needs the needle to beat the fluctuations of the straws, not their sum.",
        "log L/(2τ) + τ for the best, log L/τ + τ/2 for the coarse one.",
    ),
)
def coarse_threshold(answer: Any) -> Reply:
    def both(L: float, tau: float) -> Array:
        return np.array([np.log(L) / (2 * tau) + tau, np.log(L) / tau + tau / 2])

    return function(
        answer,
        both,
        [{"L": 1e5, "tau": 1.2}, {"L": 300, "tau": 0.7}],
        mistakes=[
            (lambda L, tau: both(L, tau)[::-1], "Both boundaries are right, in the wrong order."),
            (
                lambda L, tau: np.full(2, np.sqrt(2 * np.log(L))),
                "That is the boundary at the best sharpness; here τ is fixed.",
            ),
        ],
    )


@SHEET.exercise(
    "frozen-straws",
    "a function f(tau): the limit of L·Y at fixed sharpness, L → ∞.",
    hints=(
        "At fixed τ both sums are near their means.",
        "E e^(τg) = e^(τ²/2), and E e^(2τg) = e^(2τ²).",
        "L e^(2τ²)/(L e^(τ²/2))², times L.",
    ),
)
def frozen_straws(answer: Any) -> Reply:
    def drawn(tau: float) -> Array:
        g = np.random.default_rng(304).standard_normal((60, 40_000))
        return 40_000 * (softmax(tau * g, axis=1) ** 2).sum(axis=1)

    return function(
        answer,
        lambda tau: float(np.exp(tau**2)),
        [{"tau": 0.3}, {"tau": 1.2}, {"tau": 0.8}],
        mistakes=[
            (
                lambda tau: np.exp(2 * tau**2),
                "That is the mean of the squares; what about the square of the mean?",
            ),
            (lambda tau: np.exp(tau**2 / 2), "The softmax is squared: so is its normalizer."),
            (lambda tau: 1.0, "That would be equal weights."),
        ],
        draws=drawn,
    )


@SHEET.exercise(
    "catching-up",
    "a function f(L): the limit law of R*/√L at an error of 5 %.",
    hints=(
        "Averaging needs θ = 3.29 √L/R.",
        "Among R ≈ √L needles the longest gains √(2 log R) from its own noise.",
        "What is left for the needle is (1 − 1/√2) √(2 log L); set the two strengths equal.",
    ),
)
def catching_up(answer: Any) -> Reply:
    two = -2 * float(ndtri(0.05))
    return function(
        answer,
        lambda L: two / ((1 - np.sqrt(0.5)) * np.sqrt(2 * np.log(L))),
        [{"L": 1e6}, {"L": 1e30}],
        mistakes=[
            (
                lambda L: two / np.sqrt(2 * np.log(L)),
                "That is for one needle; the longest of many gains from its noise.",
            ),
            (
                lambda L: two / 2 / ((1 - np.sqrt(0.5)) * np.sqrt(2 * np.log(L))),
                "An error of 5 % needs classes 2 · 1.645 apart.",
            ),
        ],
    )


@SHEET.exercise(
    "offsets",
    "a function score(h) of the projections h, shape (n, 1000), of n samples that each carry an"
    " unknown offset N(0, 1): n scores that find a needle of θ = 8.",
    hints=(
        "What do scores do when all tokens of a sample move by c?",
        "Softmax weights do not change; the numerator alone is multiplied by about e^(τc).",
        "The softmax mean at τ = 2; better still, minus the plain mean.",
    ),
)
def offsets(answer: Any) -> Reply:
    rng = np.random.default_rng(306)
    y = np.arange(600) % 2 == 0
    h = rng.standard_normal((600, 1000))
    h[:, 0] += 8.0 * y
    h = rng.permuted(h, axis=1) + rng.standard_normal((600, 1))
    scores = numbers(call(answer, {"h": h}), (600,), "600 samples")
    order = np.argsort(scores)
    yes = np.append(0, np.cumsum(y[order]))
    wrong = float(np.min(yes + (300 - (np.arange(601) - yes))) / 600)
    words = f"At the best threshold your score errs on {wrong:.1%} of 600 samples"
    if wrong < 0.035:
        return Reply(True, f"Right. {words}.")
    if wrong > 0.4:
        return Reply(False, f"{words}: it hardly sees the needle.")
    return Reply(False, f"{words}. What does your score do when a whole sample is shifted?")


@lru_cache
def _exponent(top: int) -> float:
    a, b = (
        required_theta("elementwise", 10**k, phi=lambda u: 30 * np.tanh(u / 30))[0]
        for k in (top - 1, top)
    )
    return float(np.log10(b / a))


@SHEET.exercise(
    "disguise",
    "a number: the local exponent of the needed strength, d log θ/d log L, of this φ between 10¹¹"
    " and 10¹².",
    hints=(
        "`required_theta` without `rng` uses the theory and costs nothing.",
        "At large L only large u count, and there this φ is bounded.",
        "log₁₀ of the quotient of the strengths at 10¹² and 10¹¹.",
    ),
)
def disguise(answer: Any) -> Reply:
    return value(
        answer,
        lambda: _exponent(12),
        rel=0.05,
        mistakes=[
            (0.25, "That is the linear rung, where it stands while the needle is shorter than 30."),
            (lambda: _exponent(3), "That is the exponent at short lengths; go to the last decade."),
        ],
    )


@SHEET.exercise(
    "less-error",
    "a function f(L, error): the strength for a small error at R = 1, π = ½, with the correction.",
    hints=(
        "At π = ½ the limit is ε = Φ(−x)/2 with x = θ − √(2 log L).",
        "x₀ = Φ⁻¹(1 − 2ε); the correction moves it by c(x₀)/a, a = √(2 log L).",
        "a + x₀ + (1 + x₀²/2 + log Φ(x₀))/a.",
    ),
)
def less_error(answer: Any) -> Reply:
    def parts(L: float, error: float) -> tuple[float, float, float]:
        a, x = critical_theta(L), float(ndtri(1 - 2 * error))
        return a, x, 1 + x**2 / 2 + float(log_ndtr(x))

    def corrected(L: float, error: float) -> float:
        a, x, c = parts(L, error)
        return a + x + c / a

    return function(
        answer,
        corrected,
        [{"L": 1e5, "error": 0.25}, {"L": 1e8, "error": 0.1}, {"L": 1e6, "error": 0.02}],
        rel=2e-3,
        mistakes=[
            (
                lambda L, error: sum(parts(L, error)[:2]),
                "That is the limit; the correction is of order 1/√(2 log L).",
            ),
            (
                lambda L, error: parts(L, error)[0] + float(ndtri(1 - error)),
                "False alarms vanish in the limit: all errors are misses of the positives.",
            ),
        ],
    )
