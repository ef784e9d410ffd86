"""Checks of the chapter on tuning and planning."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit, logit, ndtri

from needle import calibrated_rate

from .desk import Sheet
from .judging import Array, call, function, numbers
from .reply import Reply

SHEET = Sheet("planning")


@SHEET.exercise(
    "best-constant",
    "a function f(pi): the rate η_b of the logistic loss at which the mean pull vanishes, small"
    " η_w,"
    " π ≠ ½.",
    hints=(
        "With η_w → 0 every score is η_b times the mean pull at the start.",
        "The mean pull is minus the derivative of the function that the best constant minimizes.",
        "logit(π)/(π − ½).",
    ),
    proof=(
        "the mean pull at a constant score is minus a derivative, zero at its minimum",
        "4 artanh(u)/u with u = 2π − 1 is at least 4",
    ),
)
def best_constant(answer: Any) -> Reply:
    return function(
        answer,
        lambda pi: float(logit(pi) / (pi - 0.5)),
        [{"pi": 0.02}, {"pi": 0.3}, {"pi": 0.8}],
        rel=2e-3,
        mistakes=[
            (lambda pi: 4.0, "Right only in the limit π → ½."),
            (
                lambda pi: logit(pi),
                "That is the best constant itself; which rate gets there in one step?",
            ),
            (lambda pi: logit(pi) / (2 * pi - 1), "Pulls at the start are ±½."),
        ],
    )


@SHEET.exercise(
    "long",
    "a function f(L, R, theta, pi, alpha0): the cosine of a calibrated query in a long bag, large"
    " θ.",
    hints=(
        "The leading term of 1/s² − 1 is x².",
        "π² comes from the first step, π(1 − π) from the second: together √(π³(1 − π)), squared.",
        "1/√(1 + x²), x = L/(α₀ √(π³(1 − π)) θ³R²).",
    ),
    proof=(
        "the leading term of 1/s² − 1 is x², with R̄² replaced by R²",
        "the sizes of what is left out: α₀π²θ²R²/L, and the part of the first step's cosine",
        "where π² comes from the first step's pulls, and π(1 − π) from those of the second",
    ),
)
def long(answer: Any) -> Reply:
    def cosine(x: float) -> float:
        return float(1 / np.hypot(1, x))

    def x(L: float, R: float, theta: float, pi: float, alpha0: float) -> float:
        return float(L / (alpha0 * np.sqrt(pi**3 * (1 - pi)) * theta**3 * R**2))

    return function(
        answer,
        lambda *p, **k: cosine(x(*p, **k)),
        [
            {"L": 3000, "R": 4, "theta": 12.0, "pi": 0.05, "alpha0": 10.0},
            {"L": 1e5, "R": 1, "theta": 30.0, "pi": 0.3, "alpha0": 6.0},
        ],
        rel=5e-3,
        mistakes=[
            (
                lambda L, R, theta, pi, alpha0: cosine(L / (alpha0 * pi**2 * theta**3 * R**2)),
                "π² would hold if the pulls of the second step were not balanced.",
            ),
            (lambda *p, **k: cosine(np.sqrt(x(*p, **k))), "x enters by its square."),
            (
                lambda L, R, theta, pi, alpha0: cosine(x(L, 1, theta, pi, alpha0) / R),
                "R enters twice, once in each step.",
            ),
        ],
    )


@SHEET.exercise(
    "own-share",
    "a function f(pi, n0): the standard deviation of the mean pull that is left when one calibrates"
    " with the true share of positives.",
    hints=(
        "The share in the data is π + ε with variance π(1 − π)/n₀.",
        "The bias follows the share of the data: it takes back π(1 − π)η*ε.",
        "(1 − π(1 − π)η*) √(π(1 − π)/n₀), η* = logit(π)/(π − ½).",
    ),
)
def own_share(answer: Any) -> Reply:
    def left(pi: float, n0: float) -> float:
        return float((1 - pi * (1 - pi) * calibrated_rate(pi)) * np.sqrt(pi * (1 - pi) / n0))

    def drawn(pi: float, n0: float) -> Array:
        found = np.random.default_rng(1003).binomial(int(n0), pi, (40, 2000)) / n0
        pull: Array = (found - expit(calibrated_rate(pi) * (found - 0.5))).std(axis=1)
        return pull

    return function(
        answer,
        left,
        [{"pi": 0.2, "n0": 500}, {"pi": 0.05, "n0": 4000}],
        rel=0.01,
        mistakes=[
            (
                lambda pi, n0: np.sqrt(pi * (1 - pi) / n0),
                "That is the deviation of the share; the bias follows it part of the way.",
            ),
            (lambda pi, n0: 0.0, "Zero is what the share in the data gives, not the true one."),
            (lambda pi, n0: left(pi, n0) ** 2, "That is the variance."),
        ],
        draws=drawn,
    )


@SHEET.exercise(
    "your-own",
    "a function f(pi): how many times as many bags, with a share π of positives, turn the query as"
    " well as a balanced sample does?",
    hints=(
        "Two steps live on one product of α₀ and a function of π.",
        "That product is α₀ √(π³(1 − π)).",
        "¼/(π √(π(1 − π))).",
    ),
)
def your_own(answer: Any) -> Reply:
    return function(
        answer,
        lambda pi: 0.25 / np.sqrt(pi**3 * (1 - pi)),
        [{"pi": 0.5}, {"pi": 0.03}, {"pi": 0.2}],
        mistakes=[
            (
                lambda pi: 0.5 / pi,
                "That counts positives; two steps also hear the noise of the negatives.",
            ),
            (
                lambda pi: 0.25 / pi**2,
                "The pulls of the second step are balanced: π², twice, is too much.",
            ),
            (
                lambda pi: 0.25 / (pi * (1 - pi)),
                "At π = ½ yes, but rare positives cost more than that.",
            ),
        ],
    )


@SHEET.exercise(
    "auc",
    "a function f(A, d, m, k): δ from the area A under the ROC curve of the difference of the class"
    " means of m positive and k negative training bags in d dimensions.",
    hints=(
        "Along w the classes are D deviations apart: A = Φ(D/√2).",
        "|w|² ≈ δ² + dν with ν = 1/m + 1/k, so D = δ²/√(δ² + dν).",
        "δ² = ½(D² + √(D⁴ + 4D²dν)).",
    ),
    proof=(
        "w = δξ + √ν z",
        "a positive and a negative score differ by a Gaussian of mean D and variance 2",
        "δ⁴ − D²δ² − D²dν = 0, its positive root",
    ),
)
def auc(answer: Any) -> Reply:
    def strength(A: float, d: float, m: float, k: float) -> float:
        D2, nu = 2 * float(ndtri(A)) ** 2, 1 / m + 1 / k
        return float(np.sqrt((D2 + np.sqrt(D2**2 + 4 * D2 * d * nu)) / 2))

    return function(
        answer,
        strength,
        [
            {"A": 0.8, "d": 400, "m": 400, "k": 400},
            {"A": 0.65, "d": 60, "m": 20, "k": 300},
            {"A": 0.9, "d": 100, "m": 80, "k": 20},
        ],
        rel=2e-3,
        mistakes=[
            (lambda A, d, m, k: np.sqrt(2) * ndtri(A), "That is D: too small, since w is not ξ."),
            (
                lambda A, d, m, k: strength(A, d, (m + k) / 2, (m + k) / 2),
                "The classes differ in size: ν = 1/m + 1/k.",
            ),
        ],
    )


@SHEET.exercise(
    "break",
    "a function f(X): the tokens X, shape (n, L, d), repaired so that two steps find the needle in"
    " spite of a Student factor on the noise of each token.",
    hints=(
        "A few wild tokens drown the products that the query collects.",
        "The factor of a token can be read off the token itself, in many dimensions.",
        "Divide every token by its length, times √d.",
    ),
)
def broken(answer: Any) -> Reply:
    rng, (n, L, d) = np.random.default_rng(1006), (240, 60, 60)
    y = rng.random(n) < 0.4
    X = rng.standard_normal((n, L, d)) * np.sqrt(2 / rng.chisquare(4, (n, L, 1)))
    X[y, :2, 0] += 5.0

    def cosine(tokens: Array) -> float:
        pull = y - y.mean()
        w = np.einsum("n,nld->d", pull, tokens) / L
        heights = (tokens - tokens.mean(axis=1, keepdims=True)) @ w
        q = np.einsum("n,nl,nld->d", pull, heights, tokens)
        return float(q[0] / np.linalg.norm(q))

    repaired = numbers(call(answer, {"X": X}), X.shape, "240 bags")
    if not np.abs(repaired).max() > 0:
        return Reply(False, "Nothing is left of the tokens.")
    before, after = cosine(X), cosine(repaired)
    best = cosine(X / np.linalg.norm(X, axis=2, keepdims=True))
    words = f"The cosine of the query is {after:.2f}, untouched it is {before:.2f}"
    if after > best - 0.03:
        return Reply(True, f"Right. {words}.")
    return Reply(False, f"{words}; a repair token by token reaches {best:.2f}.")
