"""Checks of the chapter on long sequences."""

from __future__ import annotations

from typing import Any

import numpy as np

from .desk import Sheet
from .judging import Array, function
from .reply import Reply

SHEET = Sheet("length")


def _tall(L: float) -> float:
    return float(np.sqrt(2 * np.log(L)))


@SHEET.exercise(
    "height",
    "a function f(L, alpha0): the quotient of the two strengths at π = ½, R = 1.",
    hints=(
        "With c = L/(α₀π²) the cosine is 1/√2 where x = c/θ³ is one.",
        "The height is θ s ≈ θ⁴/c as long as x is large; set it to √(2 log L).",
        "c^(1/3) over (c √(2 log L))^(1/4), with c = 4L/α₀.",
    ),
    proof=(
        "the cosine is 1/√2 at θ = c^(1/3)",
        "the height θ⁴/c reaches √(2 log L) at θ = (c√(2 log L))^(1/4)",
    ),
)
def height(answer: Any) -> Reply:
    def quotient(L: float, alpha0: float, pulls: float = 4.0) -> float:
        return float((pulls * L / alpha0) ** (1 / 12) * _tall(L) ** (-1 / 4))

    return function(
        answer,
        quotient,
        [{"L": 1e4, "alpha0": 1.0}, {"L": 1e8, "alpha0": 5.0}],
        rel=2e-3,
        mistakes=[
            (lambda L, alpha0: quotient(L, alpha0, 1.0), "Where is π²? It is one quarter."),
            (
                lambda L, alpha0: (4 * L / alpha0) ** (1 / 12),
                "The tallest straw is not of height one.",
            ),
            (lambda L, alpha0: 1 / quotient(L, alpha0), "Upside down: which strength is larger?"),
        ],
    )


@SHEET.exercise(
    "one-or-two",
    "a function f(L, pi): by which factor the needle must be longer for one step than for two.",
    hints=(
        "Divide the fourth powers of the two strengths.",
        "What remains is √(2 log L (1 − π)/π).",
        "Its fourth root: (2 log L (1 − π)/π)^(1/8).",
    ),
    proof=(
        "L, α₀ and R cancel in the quotient of the fourth powers",
        "the factor exceeds one if and only if π < 2 log L/(1 + 2 log L)",
    ),
)
def one_or_two(answer: Any) -> Reply:
    def factor(L: float, pi: float, power: float = 1 / 8) -> float:
        return float((2 * np.log(L) * (1 - pi) / pi) ** power)

    return function(
        answer,
        factor,
        [{"L": 1e4, "pi": 0.5}, {"L": 1e6, "pi": 0.05}, {"L": 300, "pi": 0.95}],
        rel=2e-3,
        mistakes=[
            (
                lambda L, pi: factor(L, pi, 1 / 2),
                "That is the quotient of the fourth powers of the strengths.",
            ),
            (
                lambda L, pi: (2 * np.log(L)) ** (1 / 8),
                "Right at π = ½; the pulls of the second step depend on the share.",
            ),
            (lambda L, pi: 1 / factor(L, pi), "Upside down: who needs the longer needle?"),
        ],
    )


@SHEET.exercise(
    "longest-token",
    "a function f(L, d): the strength at which the longest token gives the needle away.",
    hints=(
        "The squared length of a straw is χ²_d: about d + √(2d) g.",
        "A needle's is about θ² more; in units of √(2d) it must pass the tallest of L normals.",
        "θ²/√(2d) = √(2 log L), so θ = (4d log L)^(1/4).",
    ),
)
def longest_token(answer: Any) -> Reply:
    def edge(L: float, d: float, factor: float = 4.0) -> float:
        return float((factor * d * np.log(L)) ** 0.25)

    def drawn(L: float, d: float) -> Array:
        lengths = np.random.default_rng(703).chisquare(d, (400, int(L))).max(axis=1)
        found: Array = np.sqrt(lengths - d)  # what a needle must add to pass the longest straw
        return found

    reply = function(
        answer,
        edge,
        [{"L": 1e4, "d": 100}, {"L": 2000, "d": 400}],
        rel=2e-3,
        mistakes=[
            (lambda L, d: _tall(L), "That is for a direction that is known; a length is noisier."),
            (lambda L, d: edge(L, d, 2.0), "The variance of χ²_d is 2d."),
            (lambda L, d: np.sqrt(edge(L, d) ** 4), "That is the square of the strength."),
        ],
    )
    if not reply:
        return reply
    seen = drawn(2000, 400)
    return Reply(
        True,
        f"{reply.words} In bags of 2000 tokens in 400 dimensions the longest straw asks for"
        f" {seen.mean():.2f} ± {seen.std():.2f}, the formula for {edge(2000, 400):.2f}.",
    )
