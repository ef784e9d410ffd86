"""Checks of the chapter on real bags."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from .desk import Sheet
from .judging import Array, call, function, numbers, value
from .reply import Reply

SHEET = Sheet("real")


def _power(M: Array, p: float) -> Array:
    values, vectors = np.linalg.eigh(M)
    root: Array = (vectors * values**p) @ vectors.T
    return root


@SHEET.exercise(
    "rotation",
    "a function f(A, Sigma): the rotation O of the proof, for an invertible A and a covariance Σ.",
    hints=(
        "O must undo A up to a rotation: it maps Σ-white features to AΣAᵀ-white ones.",
        "Powers of a symmetric matrix come from its eigenvalues.",
        "(AΣAᵀ)^(−½) A Σ^(½).",
    ),
    proof=(
        "OOᵀ = (AΣAᵀ)^(−½) AΣAᵀ (AΣAᵀ)^(−½) = I",
        "scores and |w| do not change under w → Ow, f → Of, so minimizers correspond",
    ),
)
def rotation(answer: Any) -> Reply:
    rng = np.random.default_rng(1101)
    for d in (2, 5):
        A, S = rng.standard_normal((d, d)), np.cov(rng.standard_normal((d, 40)))
        given = numbers(call(answer, {"A": A, "Sigma": S}), (d, d), f"d = {d}")
        miss = float(np.abs(given @ given.T - np.eye(d)).max())
        if miss > 1e-6:
            return Reply(
                False, f"At d = {d} your OOᵀ differs from the identity by up to {miss:.2g}."
            )
        if not np.allclose(given, _power(A @ S @ A.T, -0.5) @ A @ _power(S, 0.5), atol=1e-6):
            return Reply(
                False,
                "A rotation, but not the one that takes whitened features of X to those of XAᵀ.",
            )
    return Reply(True, "Right: a rotation, and the one of the proof.")


@SHEET.exercise(
    "unequal",
    "a function f(sizes): weights of negative bags (an array, up to a factor) that make the noise"
    " of"
    " Σ c_i z̄_i smallest for a given total.",
    hints=(
        "The mean of L_i tokens has variance 1/L_i in every direction.",
        "Minimize Σ c_i²/L_i with Σ c_i fixed, by a multiplier.",
        "c_i ∝ L_i: every token counts alike.",
    ),
    proof=(
        "the variance of a mean of L_i independent standard normal tokens",
        "the multiplier makes c_i/L_i constant",
        "a positive bag with one needle has signal θ/L_i: weight one is best there",
    ),
)
def unequal(answer: Any) -> Reply:
    for sizes in (np.array([2.0, 5.0, 20.0]), np.array([1.0, 1.0, 3.0, 8.0])):
        c = numbers(call(answer, {"sizes": sizes}), sizes.shape, f"sizes {sizes}")
        if abs(c.sum()) < 1e-12:
            return Reply(False, "The total of the weights is zero.")
        noise = float((c**2 / sizes).sum() / c.sum() ** 2 * sizes.sum())
        if noise > 1 + 1e-6:
            known = "Equal weights waste the long bags. " if np.ptp(c) < 1e-12 else ""
            return Reply(False, f"{known}Your noise has {noise:.2f} times the least variance.")
    return Reply(True, "Right: every token counts alike.")


@lru_cache
def _digits() -> tuple[Array, Array]:
    from sklearn.datasets import load_digits

    images, names = load_digits(return_X_y=True)
    return images, names


@lru_cache
def _strength(digit: int) -> float:
    images, names = _digits()
    straw, needle = images[names != digit], images[names == digit]
    gap = needle.mean(axis=0) - straw.mean(axis=0)
    return float(np.sqrt(gap @ np.linalg.solve(np.cov(straw.T) + 1e-3 * np.eye(64), gap)))


@SHEET.exercise(
    "digit",
    "an array of two digits: the hardest and the easiest needle.",
    hints=(
        "θ is the distance of the mean needle from the mean straw, in units of the straws' noise.",
        "Along the best direction that is √(gapᵀ Σ⁻¹ gap).",
        "Compute it for all ten digits and sort.",
    ),
)
def digit(answer: Any) -> Reply:
    given = numbers(answer, (2,))
    if not set(given.tolist()) <= set(map(float, range(10))):
        return Reply(False, "Two digits between 0 and 9 are asked.")
    order = sorted(range(10), key=_strength)
    hardest = [d for d in order if _strength(d) < 1.01 * _strength(order[0])]  # 9 and 8 tie
    if given[0] in hardest and given[1] == order[-1]:
        return Reply(True, f"Right: θ = {_strength(order[0]):.1f} and {_strength(order[-1]):.1f}.")
    if given[1] in hardest and given[0] == order[-1]:
        return Reply(False, "Both are right, in the wrong order: hardest first.")
    ranks = [order.index(int(d)) + 1 for d in given]
    return Reply(False, f"Yours are number {ranks[0]} and {ranks[1]} from the hardest.")


@SHEET.exercise(
    "many-directions",
    "a number: the strength along the query, in units of the larger of the strengths of zero and"
    " eight, if both were equally strong and their directions had the cosine 0.28.",
    hints=(
        "Both steps see averages over positive bags.",
        "The query points along the average of the two differences.",
        "|(e₁ + e₂)/2| with ⟨e₁, e₂⟩ = 0.28: √((1 + 0.28)/2).",
    ),
)
def many_directions(answer: Any) -> Reply:
    return value(
        answer,
        0.8,
        rel=5e-3,
        mistakes=[
            (1.0, "The mean of the two lengths is reached only if the directions agree."),
            (0.64, "That is the square of the length."),
            (float(np.sqrt(0.5)), "That would be orthogonal directions."),
        ],
    )


@SHEET.exercise(
    "shuffled",
    "a function f(n, tested): the standard deviation of the accuracy on `tested` out of n bags with"
    " labels by coin tosses.",
    hints=(
        "Whatever the rule says, each answer is right with probability one half.",
        "The answers on the test bags are independent, given the rule.",
        "½/√tested, whatever n.",
    ),
)
def shuffled(answer: Any) -> Reply:
    return function(
        answer,
        lambda n, tested: 0.5 / np.sqrt(tested),
        [{"n": 92, "tested": 46}, {"n": 100, "tested": 10}],
        mistakes=[
            (lambda n, tested: 0.5 / np.sqrt(n), "Only the bags of the test are tossed for."),
            (lambda n, tested: 0.25 / tested, "That is the variance."),
            (lambda n, tested: 1 / np.sqrt(tested), "A toss has standard deviation one half."),
        ],
    )


@SHEET.exercise(
    "dependent-folds",
    "a function f(J, rho): the factor of s² that estimates the variance of the mean over J folds of"
    " correlation ρ.",
    hints=(
        "The mean of J correlated scores has variance σ²(ρ + (1 − ρ)/J).",
        "The sample variance of the folds estimates (1 − ρ)σ².",
        "1/J + ρ/(1 − ρ).",
    ),
    proof=(
        "J variances and J(J − 1) covariances over J²",
        "E s² = J/(J − 1) · (σ² − Var of the mean)",
        "with ρ = 1/10 and J = 100: 1/100 + 1/9, which does not vanish as J grows",
    ),
)
def dependent_folds(answer: Any) -> Reply:
    return function(
        answer,
        lambda J, rho: 1 / J + rho / (1 - rho),
        [{"J": 10, "rho": 0.0}, {"J": 100, "rho": 0.1}, {"J": 20, "rho": 0.5}],
        rel=3e-3,
        mistakes=[
            (lambda J, rho: 1 / J, "That would be independent folds."),
            (
                lambda J, rho: rho + (1 - rho) / J,
                "That is the factor of σ²; s² is smaller than σ².",
            ),
        ],
    )
