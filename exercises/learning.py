"""Checks of the chapter on the best that any learner can do."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import gammaln, softmax

from needle import SparseTokens, learning_thresholds
from needle.learning import race

from .desk import Sheet
from .judging import Array, call, function, numbers, value
from .reply import Reply

SHEET = Sheet("learning")


@SHEET.exercise(
    "negatives",
    "a function f(pi, pi0, alpha0): how many bags per dimension give, at a share π of positives,"
    " the"
    " cosine that α₀ give at π₀?",
    hints=(
        "A negative bag has the density of pure noise.",
        "What does not contain ξ cancels in Bayes' formula.",
        "Only the number of positive bags counts: π α is the same.",
    ),
    proof=(
        "given the labels the bags are independent",
        "the factor of a negative bag does not contain ξ and cancels",
        "negatives matter for π, for the threshold, and for unknown noise",
    ),
)
def negatives(answer: Any) -> Reply:
    return function(
        answer,
        lambda pi, pi0, alpha0: alpha0 * pi0 / pi,
        [
            {"pi": 0.5, "pi0": 0.5, "alpha0": 3.0},
            {"pi": 0.05, "pi0": 0.4, "alpha0": 2.0},
            {"pi": 0.7, "pi0": 0.1, "alpha0": 1.0},
        ],
        mistakes=[
            (
                lambda pi, pi0, alpha0: alpha0,
                "The labels of negatives are bags too, but they teach nothing about ξ.",
            ),
            (
                lambda pi, pi0, alpha0: alpha0 * pi / pi0,
                "The other way round: where positives are rare, more bags.",
            ),
        ],
    )


@SHEET.exercise(
    "race",
    "a function W(L, x): the mean softmax weight on the needle when its log weight is x + √x g and"
    " those of the L − 1 straws are √x g.",
    hints=(
        "Add Gumbel noise to every log weight: the weight is the probability to win.",
        "Given the needle's number u, all others lie below it with probability H(u)^(L−1).",
        "∫ H'(u − x) H(u)^(L−1) du, H the distribution function of √x g + Gumbel; or average"
        " draws.",
    ),
    proof=(
        "given u the others lie below with probability ∏ exp(−e^(u_k − u))",
        "the substitution t = e^(−u) gives e^(u_ℓ)/Σ e^(u_k)",
        "averaging over independent u_k before the race gives the integral",
    ),
)
def winning(answer: Any) -> Reply:
    def drawn(L: float, x: float) -> Array:
        fields = np.sqrt(x) * np.random.default_rng(702).standard_normal((20_000, int(L)))
        fields[:, 0] += x
        weight: Array = softmax(fields, axis=1)[:, 0]
        return weight

    return function(
        answer,
        lambda L, x: race(int(L), float(x)),
        [{"L": 2, "x": 1.0}, {"L": 30, "x": 5.0}, {"L": 120, "x": 7.0}],
        rel=0.02,
        mistakes=[
            (
                lambda L, x: 1 / (1 + (L - 1) * np.exp(-x)),
                "The straws fluctuate too: their log weights are not zero.",
            ),
            (
                lambda L, x: 1 / (1 + (L - 1) * np.exp(-x / 2)),
                "You have replaced the sum of the straws by its mean; the few high ones decide.",
            ),
            (lambda L, x: np.exp(x) / L, "That is the first order, for tiny weights."),
        ],
        draws=drawn,
    )


@SHEET.exercise(
    "spinodal",
    "a function f(L, R, theta): the maximum of πα over x, by hand, for θ > 2.",
    hints=(
        "πα = L/(R²θ²) · x e^(−x)/(θ² − x).",
        "Its logarithm is stationary where x(θ² − x) = θ².",
        "The smaller root, x = θ²/2 (1 − √(1 − 4/θ²)), is the maximum.",
    ),
    proof=(
        "m/(1 − m) = x/(θ² − x) equals παRθ² · Re^x/L",
        "for θ ≤ 2 the derivative never vanishes: learning is gradual",
        "x = 1 + θ⁻² + 2θ⁻⁴ + …, hence L/(eθ⁴R²)(1 + θ⁻² + 3/2 θ⁻⁴ + …)",
    ),
)
def spinodal(answer: Any) -> Reply:
    def by_hand(L: float, R: float, theta: float, sign: int = -1) -> float:
        x = theta**2 / 2 * (1 + sign * np.sqrt(1 - 4 / theta**2))
        return float(L / (R * theta) ** 2 * x * np.exp(-x) / (theta**2 - x))

    reply = function(
        answer,
        by_hand,
        [
            {"L": 1e4, "R": 1, "theta": 3.0},
            {"L": 1e6, "R": 2, "theta": 5.0},
            {"L": 500, "R": 1, "theta": 2.5},
        ],
        rel=2e-3,
        mistakes=[
            (
                lambda L, R, theta: L / (np.e * theta**4 * R**2),
                "That is the leading order for large θ.",
            ),
            (
                lambda L, R, theta: by_hand(L, R, theta, 1),
                "That root is the minimum: where the fold begins.",
            ),
            (
                lambda L, R, theta: by_hand(L, 1, theta) / R,
                "R enters twice: through the number of needles and through the weight.",
            ),
        ],
    )
    if not reply:
        return reply
    exact = 0.5 * learning_thresholds(SparseTokens(10**6, 2, 5.0, 0.5)).algorithm
    return Reply(
        True,
        f"{reply.words} At L = 10⁶, R = 2, θ = 5 the full equation says {exact:.4f}, by hand"
        f" {by_hand(1e6, 2, 5.0):.4f}.",
    )


def _log_subsets(L: float, R: float) -> float:
    return float(gammaln(L + 1) - gammaln(R + 1) - gammaln(L - R + 1))


@SHEET.exercise(
    "area",
    "a function f(L, R): the integral of 1 − W(x) over all x > 0.",
    hints=(
        "Ψ' = R W/2: integrate R/2 − Ψ'.",
        "Ψ(0) = 0; where does Ψ(x) − Rx/2 end?",
        "At −log C(L, R): the area is (2/R) log C(L, R).",
    ),
    proof=(
        "Ψ(0) = 0 and Ψ(x) − Rx/2 → −log C(L, R)",
        "the uncertainty about the places is used up once, however the channel improves",
    ),
)
def area(answer: Any) -> Reply:
    return function(
        answer,
        lambda L, R: 2 / R * _log_subsets(L, R),
        [{"L": 20, "R": 1}, {"L": 15, "R": 3}],
        rel=2e-3,
        mistakes=[
            (lambda L, R: 2 * np.log(L), "Right for one needle; how many subsets are there for R?"),
            (lambda L, R: _log_subsets(L, R), "Mind the factor in Ψ' = R W/2."),
            (
                lambda L, R: 2 * _log_subsets(L, R),
                "That is the area of R W, for all needles together.",
            ),
        ],
    )


@SHEET.exercise(
    "many",
    "an array of two numbers: the exponent of R in α_alg at fixed θ, and at fixed θR.",
    hints=(
        "π α_alg ≃ L/(eθ⁴R²).",
        "At fixed θR = c the strength of a needle is c/R.",
        "θ⁴R² = c⁴/R².",
    ),
)
def many(answer: Any) -> Reply:
    return value(
        answer,
        np.array([-2.0, 2.0]),
        rel=0.03,
        mistakes=[
            (np.array([-2.0, -2.0]), "The second: at fixed θR more needles are weaker needles."),
            (np.array([-2.0, 0.0]), "The second would hold if only θR counted, as for averaging."),
            (np.array([-1.0, 1.0]), "Both the number of needles and their weight grow with R."),
        ],
    )


@SHEET.exercise(
    "rare",
    "an array of two exponents of π: on π to which power times α does the best learner depend, and"
    " two gradient steps, while their cosine is small?",
    hints=(
        "The best learner does not look at negatives.",
        "The first step collects a signal ∝ π under the noise of all bags; the second balances"
        " its pulls.",
        "x contains α₀ √(π³(1 − π)).",
    ),
)
def rare(answer: Any) -> Reply:
    return value(
        answer,
        np.array([1.0, 1.5]),
        rel=0.02,
        mistakes=[
            (
                np.array([1.0, 2.0]),
                "π² holds if the pulls of the second step are not balanced; a calibrated rate"
                " balances them.",
            ),
            (np.array([1.5, 1.0]), "In the wrong order: who pays for rare positives?"),
            (np.array([1.0, 1.0]), "Two steps pay for the negatives too."),
        ],
    )


@SHEET.exercise(
    "em",
    "a function f(v, h): the M-step's estimate of μ from posterior weights v and fields h, two"
    " arrays of one shape.",
    hints=(
        "Write the log likelihood of h = μv + g, for given places.",
        "Its posterior mean is μ Σ v̂ĥ − μ²/2 Σ v̂, since v² = v for places.",
        "Σ v̂ĥ/Σ v̂.",
    ),
    proof=(
        "the log likelihood is −½ Σ (ĥ − μv)²",
        "v is 0 or 1, so v² = v and its mean is v̂",
        "only the length of ξ̂ is fixed by μ: θ never appears",
    ),
)
def em(answer: Any) -> Reply:
    rng = np.random.default_rng(707)
    points = [
        {"v": softmax(rng.standard_normal(shape) * 2, axis=-1), "h": rng.standard_normal(shape) + 1}
        for shape in ((4, 5), (30, 12))
    ]
    return function(
        answer,
        lambda v, h: float((v * h).sum() / v.sum()),
        points,
        rel=1e-6,
        mistakes=[
            (
                lambda v, h: (v * h).sum() / (v**2).sum(),
                "That is a regression on the weights; a place is 0 or 1, and so is its square.",
            ),
            (lambda v, h: (v * h).mean(), "Divide by the weights, not by the number of tokens."),
            (lambda v, h: h.mean(), "Straws do not know μ."),
        ],
    )


@SHEET.exercise(
    "more-steps",
    "a function f(X, y, q): the query after one round of readout→query on tokens X, shape (n, L,"
    " d),"
    " labels y = ±1, sharpness 1.",
    hints=(
        "Attend with q, then add the attended tokens with pulls that sum to zero.",
        "The pull of bag i is 1[y_i = 1] minus the share of positives.",
        "w = Σ pull_i X_iᵀ softmax(X_i q), then w/|w|.",
    ),
)
def more_steps(answer: Any) -> Reply:
    rng = np.random.default_rng(708)
    X, q = rng.standard_normal((40, 6, 5)), rng.standard_normal(5)
    X[:, 0, 0] += 2
    y = np.where(rng.random(40) < 0.4, 1, -1)

    def collected(pull: Array, tokens: Array) -> Array:
        s = softmax(tokens @ q, axis=1)
        w: Array = np.einsum("n,nl,nld->d", pull, s, tokens)
        return w / np.linalg.norm(w)

    given = numbers(call(answer, {"X": X, "y": y, "q": q}), (5,), "40 bags")
    pulls = (y > 0) - np.mean(y > 0)
    if np.allclose(given, collected(pulls, X), atol=1e-8):
        return Reply(True, "Right.")
    if np.linalg.norm(given) > 0 and np.allclose(
        given / np.linalg.norm(given), collected(pulls, X)
    ):
        return Reply(False, "The direction is right; a query of length one is asked.")
    for pull in (y * 1.0, (y > 0) * 1.0):
        if np.allclose(given, collected(pull, X)):
            return Reply(False, "The pulls must add up to zero, or the noise of all bags adds up.")
    cos = float(given @ collected(pulls, X) / max(np.linalg.norm(given), 1e-300))
    return Reply(False, f"The cosine with the right answer is {cos:.3f}.")
