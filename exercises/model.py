"""Checks of Chapter 1: the model."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.integrate import quad
from scipy.special import log_ndtr, ndtr, ndtri

from needle import SparseTokens, attention

from .desk import Sheet
from .judging import Array, call, function, numbers
from .reply import Reply

SHEET = Sheet("model")


def _highest(L: float) -> float:
    def integrand(x: float) -> float:
        return x * L * float(np.exp(-(x**2) / 2 + (L - 1) * log_ndtr(x))) / np.sqrt(2 * np.pi)

    return float(quad(integrand, -10, 12, points=[0, 2, 4, 6])[0])


def _highest_drawn(L: float) -> Array:
    return np.random.default_rng(101).standard_normal((2000, int(L))).max(axis=1)


@SHEET.exercise(
    "longest-straw",
    "a function f(L), the mean of the largest of L independent standard normal numbers.",
    hints=(
        "All L numbers lie below x with probability Φ(x)^L.",
        "The derivative of that is the density of the largest; the mean is one integral.",
        "Integrate x · L · φ(x) · Φ(x)^(L−1) from −10 to 12; tell `quad` where the peak may be.",
    ),
    proof=(
        "Jensen: exp(τ E max) ≤ E exp(τ max) for every τ > 0",
        "the largest term is at most the sum, whose mean is L exp(τ²/2)",
        "the minimum over τ of log L/τ + τ/2, and where it is attained",
    ),
)
def longest_straw(answer: Any) -> Reply:
    return function(
        answer,
        _highest,
        [{"L": 2}, {"L": 25}, {"L": 600}],
        rel=2e-3,
        mistakes=[
            (
                lambda L: np.sqrt(2 * np.log(L)),
                "That is the bound of part (a), not the mean itself.",
            ),
            (
                lambda L: float(ndtri(1 - 1 / L)),
                "That is the level that one in L exceeds: close, but a quantile is no mean.",
            ),
        ],
        draws=_highest_drawn,
    )


@SHEET.exercise(
    "places",
    "a function f(L) that returns the L weights of the best vectorized classifier along ξ, if the"
    " needle sits, uniformly, in one of the first L/4 places.",
    hints=(
        "Tokens where no needle ever sits bring noise and nothing else.",
        "What remains is a haystack of L/4 tokens, all alike.",
        "Equal weights on the first L/4 places, nothing on the others; the length does not matter.",
    ),
    proof=(
        "softmax commutes with a permutation, and PᵀP = I",
        "scores do not change when tokens and query are rotated together, features rotate along",
        "the vectorized score keeps rotations, if W rotates too, and loses permutations",
    ),
)
def places(answer: Any) -> Reply:
    ratios = []
    for L in (16, 60):
        w = numbers(call(answer, {"L": L}), (L,), f"L = {L}")
        length = np.linalg.norm(w)
        if length == 0:
            return Reply(False, "Weights that are all zero see nothing.")
        ratios.append(w[: L // 4].mean() / length * np.sqrt(L / 4))
    best = min(ratios)
    if best > 0.999:
        return Reply(True, "Right: the distance is θ/√(L/4), twice that of equal weights.")
    if abs(best) < 1e-9:
        return Reply(False, "Your weights never meet a needle: the distance is zero.")
    if max(abs(r - 0.5) for r in ratios) < 1e-6:
        return Reply(False, "These weights ignore what you know: half of the distance is lost.")
    return Reply(False, f"Your classes are {best:.2f} of the largest distance apart.")


def _clouds(model: SparseTokens, tau: float) -> list[tuple[Array, Array]]:
    y, a, c, _, weight = attention(model, temperature=tau, cos=1.0).points
    return [((model.theta * a + c)[y == k], weight[y == k]) for k in (1, -1)]


def _area(model: SparseTokens, tau: float) -> float:
    (p, u), (n, w) = _clouds(model, tau)
    order = np.argsort(n)
    below = np.append(0, np.cumsum(w[order]))[np.searchsorted(n[order], p)]
    return float(u @ below / (u.sum() * w.sum()))


@SHEET.exercise(
    "many-needles",
    "a number: the best sharpness for sixteen needles of strength ½ among 64 tokens.",
    hints=(
        "Pooling is the softmax of sharpness zero, so the best sharpness is never worse.",
        "Weak needles hardly stand out: a sharp softmax throws the average away for nothing.",
        "Compute the area for sharpnesses below ½ and look for its maximum; it is flat.",
    ),
)
def many_needles(answer: Any) -> Reply:
    tau = float(numbers(answer, ()))
    if not 0 <= tau <= 20:
        return Reply(False, "A sharpness between 0 and 20 is asked.")
    task = SparseTokens(L=64, R=16, theta=0.5, pi=0.5)
    pooling, best, yours = float(ndtr(0.5**0.5)), _area(task, 0.2), _area(task, max(tau, 1e-3))
    if yours > best - 5e-4:
        return Reply(True, f"Right: a positive outscores a negative with probability {yours:.4f}.")
    if yours < pooling - 1e-3:
        return Reply(
            False,
            f"At that sharpness attention falls behind pooling: {yours:.3f} against {pooling:.3f}.",
        )
    return Reply(False, f"{yours:.4f}: hardly more than pooling; there is a better sharpness.")


def _best_error(delta: float, pi: float) -> float:
    t = delta / 2 + np.log((1 - pi) / pi) / delta
    return float(pi * ndtr(t - delta) + (1 - pi) * ndtr(-t))


def _counted_errors(delta: float, pi: float) -> Array:
    rng = np.random.default_rng(104)
    y = rng.random((20, 20_000)) < pi
    score = rng.standard_normal(y.shape) + delta * y
    t = delta / 2 + np.log((1 - pi) / pi) / delta
    return ((score > t) != y).mean(axis=1)


@SHEET.exercise(
    "rare",
    "a function f(delta, pi): the least error of a threshold on the pooled score.",
    hints=(
        "In units of its noise the score is N(δ, 1) with probability π, and N(0, 1) otherwise.",
        "The best threshold is where π times one density equals 1 − π times the other.",
        "t = δ/2 + log((1 − π)/π)/δ; misses π Φ(t − δ), false alarms (1 − π) Φ(−t).",
    ),
)
def rare(answer: Any) -> Reply:
    return function(
        answer,
        _best_error,
        [{"delta": 2.0, "pi": 0.5}, {"delta": 1.3, "pi": 0.2}, {"delta": 2.4, "pi": 0.07}],
        rel=1e-3,
        mistakes=[
            (
                lambda delta, pi: ndtr(-delta / 2),
                "That threshold lies midway, which is best only if both classes are equally"
                " frequent.",
            ),
            (
                lambda delta, pi: min(pi, 1 - pi),
                "That is the error of silence; a threshold can do better.",
            ),
        ],
        draws=_counted_errors,
    )


@SHEET.exercise(
    "two-signs",
    "a function score(h) of the projections h, shape (n, 100), of n samples on ξ, which returns n"
    " scores that find needles of both signs at θ = 5.",
    hints=(
        "One softmax along +ξ finds half of the needles and buries the others.",
        "Use two queries, +τξ and −τξ.",
        "The softmax mean along +τξ minus the one along −τξ, at τ = 3.",
    ),
)
def two_signs(answer: Any) -> Reply:
    rng = np.random.default_rng(105)
    y = rng.random(2000) < 0.5
    h = rng.standard_normal((2000, 100))
    h[:, 17] += 5.0 * y * rng.choice([-1, 1], 2000)
    h = rng.permuted(h, axis=1)
    scores = numbers(call(answer, {"h": h}), (2000,), "2000 samples")
    share = _ranked(scores, y)
    error = float(np.sqrt(share * (1 - share) / 500))
    words = f"A positive outscores a negative in {share:.1%} of the pairs (± {error:.1%})"
    if share > 0.93:
        return Reply(True, f"Right. {words}.")
    if abs(share - 0.5) < 0.05:
        return Reply(False, f"{words}: what the two signs add to your score cancels.")
    if share < 0.45:
        return Reply(False, f"{words}: the order is upside down.")
    return Reply(False, f"{words}: about the needles of one sign are found. What of the others?")


def _ranked(scores: Array, y: Array) -> float:
    """Share of pairs in which the positive has the higher score, ties counted half."""
    negative = np.sort(scores[~y])
    below = np.searchsorted(negative, scores[y], "left")
    upto = np.searchsorted(negative, scores[y], "right")
    return float((below + upto).mean() / 2 / len(negative))


def _shared_snr(theta: float, R: float, L: float, rho: float) -> float:
    return theta * R / L / np.sqrt(rho + (1 - rho) / L)


def _shared_drawn(theta: float, R: float, L: float, rho: float) -> Array:
    rng = np.random.default_rng(106)
    z = np.sqrt(rho) * rng.standard_normal((40, 2000)) + np.sqrt(
        (1 - rho) / L
    ) * rng.standard_normal((40, 2000))
    return theta * R / L / z.std(axis=1)


@SHEET.exercise(
    "correlated",
    "a function f(theta, R, L, rho): the signal-to-noise ratio of pooling with common noise.",
    hints=(
        "The common part is the same in all L tokens: averaging leaves it as it is.",
        "Add the variances of the common and of the averaged part.",
        "θR/L divided by the root of ρ + (1 − ρ)/L.",
    ),
)
def correlated(answer: Any) -> Reply:
    return function(
        answer,
        _shared_snr,
        [
            {"theta": 2.0, "R": 1, "L": 9, "rho": 0.0},
            {"theta": 3.0, "R": 2, "L": 50, "rho": 0.5},
            {"theta": 5.0, "R": 1, "L": 30, "rho": 0.1},
        ],
        mistakes=[
            (lambda theta, R, L, rho: theta * R / np.sqrt(L), "That is δ without common noise."),
            (
                lambda theta, R, L, rho: theta * R / np.sqrt(L * (1 - rho)),
                "You have taken the common noise away; pooling cannot.",
            ),
            (
                lambda theta, R, L, rho: theta * R / L / (rho + (1 - rho) / L),
                "That is signal over variance; the ratio has a root.",
            ),
        ],
        draws=_shared_drawn,
    )


@SHEET.exercise(
    "missed",
    "a function f(limit, power): by how many standard errors must a formula be off, with many"
    " trials, to be refused with that probability by |z| > limit?",
    hints=(
        "A row that is off by k standard errors has z ≈ N(k, 1).",
        "It is refused with probability Φ(k − limit): a half at k = limit.",
        "k = limit + Φ⁻¹(power).",
    ),
)
def missed(answer: Any) -> Reply:
    return function(
        answer,
        lambda limit, power: limit + float(ndtri(power)),
        [{"limit": 4.3, "power": 0.5}, {"limit": 3.0, "power": 0.8}, {"limit": 5.0, "power": 0.99}],
        rel=2e-3,
        mistakes=[
            (lambda limit, power: limit, "At that size it is refused only half of the time."),
            (
                lambda limit, power: limit * power,
                "Powers do not scale the limit: think of where z lies.",
            ),
        ],
    )
