"""Checks of Chapter 5: the error, exactly."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from needle import SparseTokens, attention, fit_readout, predict_readout

from .desk import Sheet
from .judging import call, function, numbers, value
from .reply import Reply

SHEET = Sheet("readout")
MODEL = SparseTokens(L=10, R=1, theta=5.0, pi=0.5)


@SHEET.exercise(
    "eight-digits",
    "a number: the ridge λ, in the units of this book, that gives the published eight digits.",
    hints=(
        "Their objective is a sum over samples, ours a mean.",
        "Divide theirs by n = αd.",
        "λ = λ_s/α with λ_s = 0.01 and α = 3.",
    ),
)
def eight_digits(answer: Any) -> Reply:
    return value(
        answer,
        0.01 / 3,
        rel=1e-4,
        mistakes=[
            (0.01, "That is their number; their objective is a sum, ours a mean."),
            (0.03, "The wrong way round: divide the penalty by α."),
        ],
        well="Right: test error 0.13102337, training loss 0.05858808.",
    )


@SHEET.exercise(
    "nothing",
    "an array of two numbers: the test error at θ = 0, and the α₁ at which the training loss of"
    " pooled features without ridge begins to be positive.",
    hints=(
        "Without a signal the labels are coin flips.",
        "Random labels can be fitted perfectly up to a number of samples that Cover counted.",
        "½, and two samples per dimension.",
    ),
)
def nothing(answer: Any) -> Reply:
    return value(
        answer,
        np.array([0.5, 2.0]),
        mistakes=[
            (
                np.array([0.5, 1.0]),
                "One sample per dimension can be fitted exactly, with the square loss; the"
                " logistic loss asks only for signs.",
            ),
            (np.array([0.0, 2.0]), "The training set is fitted; new labels are still coin flips."),
        ],
    )


@SHEET.exercise(
    "one-line",
    "a function f(Omega, chi, y): the score u_i of a training sample from the score Ω_i that the"
    " readout trained without it gives, for the square loss.",
    hints=(
        "Write down stationarity of both problems and subtract.",
        "Multiply by f_iᵀ H⁻¹: u − Ω = χ(y − u).",
        "u = (Ω + χy)/(1 + χ).",
    ),
    proof=(
        "both problems share H without sample i and the same right side",
        "the difference of the weights is H⁻¹f_i(y_i − u_i)/n",
        "the square loss makes H independent of w: nothing was expanded",
    ),
)
def one_line(answer: Any) -> Reply:
    rng, worst = np.random.default_rng(503), 0.0
    for n, d, ridge in ((20, 30, 0.05), (60, 20, 0.2), (9, 4, 0.5)):
        F, y = rng.standard_normal((n, d)), rng.choice([-1.0, 1.0], n)
        F[:, 0] += y
        inverse = np.linalg.inv(ridge * np.eye(d) + F[1:].T @ F[1:] / n)
        omega, chi = F[0] @ inverse @ (F[1:].T @ y[1:]) / n, F[0] @ inverse @ F[0] / n
        u = F[0] @ fit_readout(F, y, ridge, loss="square", intercept=False).w
        point = {"Omega": float(omega), "chi": float(chi), "y": float(y[0])}
        given = float(numbers(call(answer, point), (), f"n = {n}, d = {d}"))
        if abs(given - (omega + chi * (y[0] - omega))) < 1e-9:
            return Reply(
                False, "That is one small step of size χ; the sample pulls until it balances."
            )
        worst = max(worst, abs(given - u))
    if worst < 1e-6:
        return Reply(
            True, "Right, to rounding, on three data sets trained with and without a sample."
        )
    return Reply(
        False,
        f"Trained with and without a sample, the scores differ from yours by up to {worst:.2g}.",
    )


SHARPNESSES = (0.5, 1.0, 2.0, 5.0)


@SHEET.exercise(
    "temperature",
    "an array of two sharpnesses out of ½, 1, 2, 5: the best at α₁ = 2, λ = 0.01, and the best at"
    " α₁ = ∞, for a query of cosine 0.8.",
    hints=(
        "A sharper softmax makes signal and noise of a feature larger.",
        "With few samples noise counts for more.",
        "Compare predict_readout(attention(model, temperature=T, cos=0.8), α, λ).test_error.",
    ),
)
def temperature(answer: Any) -> Reply:
    def best(alpha: float, ridge: float) -> float:
        laws = [attention(MODEL, temperature=T, cos=0.8, resolution=240) for T in SHARPNESSES]
        errors = [predict_readout(law, alpha, ridge).test_error for law in laws]
        return SHARPNESSES[int(np.argmin(errors))]

    given = numbers(answer, (2,))
    exact = np.array([best(2.0, 0.01), best(np.inf, 0.0)])
    if np.allclose(given, exact):
        return Reply(True, "Right: more samples afford more noise.")
    if np.allclose(given, exact[::-1]):
        return Reply(False, "The other way round: what is it that a few samples cannot afford?")
    return Reply(False, f"{int((np.abs(given - exact) < 1e-9).sum())} of the two are right.")


@SHEET.exercise(
    "own",
    "a function f(alpha0, L, lr_q, beta): the slope of the change of a sample's logits, when it is"
    " added to the data of the query, on m_i.",
    hints=(
        "The sample adds a multiple of X_iᵀm_i to the query.",
        "Its own logits change by X_i times that, and X_iX_iᵀ ≈ d I.",
        "η_q β²/(α₀L).",
    ),
    proof=(
        "sample i adds η_qβ X_iᵀm_i/(n₀L) to q",
        "X_iX_iᵀ = dI + O(√d), and d/n₀ = 1/α₀",
        "the change of w⁽¹⁾ shifts all logits of the sample alike; a softmax does not see it",
    ),
)
def own(answer: Any) -> Reply:
    return function(
        answer,
        lambda alpha0, L, lr_q, beta: lr_q * beta**2 / (alpha0 * L),
        [
            {"alpha0": 1.0, "L": 10, "lr_q": 1.0, "beta": 1.0},
            {"alpha0": 4.0, "L": 25, "lr_q": 3.0, "beta": 0.5},
        ],
        mistakes=[
            (
                lambda alpha0, L, lr_q, beta: lr_q * beta / (alpha0 * L),
                "The scale β enters twice: in the gradient and in the logits.",
            ),
            (
                lambda alpha0, L, lr_q, beta: lr_q * beta**2 / alpha0,
                "The gradient is a mean over tokens.",
            ),
        ],
    )


@SHEET.exercise(
    "luck",
    "a function f(n, L, d): the order of the bias over the standard deviation of a new score, few"
    " samples, square loss, no ridge.",
    hints=(
        "In many dimensions the samples are nearly orthogonal.",
        "Interpolation sets b to about the mean label, and |w|² to about n over the squared"
        " length.",
        "n^(−1/2) over √(n/(Ld)).",
    ),
)
def luck(answer: Any) -> Reply:
    return function(
        answer,
        lambda n, L, d: np.sqrt(L * d) / n,
        [{"n": 20, "L": 10, "d": 100}, {"n": 50, "L": 4, "d": 300}],
        mistakes=[
            (lambda n, L, d: np.sqrt(L * d / n), "The mean of n labels is of order 1/√n, not 1."),
            (lambda n, L, d: 1 / np.sqrt(n), "That is the bias; how long is w?"),
            (lambda n, L, d: n / np.sqrt(L * d), "Upside down."),
        ],
    )


@lru_cache
def _error(cos: float) -> float:
    law = attention(MODEL, temperature=2.0, cos=cos)
    return predict_readout(law, np.inf, 0.0).test_error


@SHEET.exercise(
    "other-way",
    "a number: the limiting test error (α₁ = ∞, no ridge) at s_q = −½, T = 2, logistic loss.",
    hints=(
        "`attention` takes a negative cosine.",
        "The softmax is not odd: another sign of the readout does not repair the query.",
        "predict_readout(attention(model, temperature=2.0, cos=-0.5), np.inf, 0.0).test_error.",
    ),
)
def other_way(answer: Any) -> Reply:
    return value(
        answer,
        lambda: _error(-0.5),
        rel=0.01,
        mistakes=[
            (lambda: _error(0.5), "That is a query that looks the right way."),
            (lambda: _error(0.0), "That query ignores the needle; this one avoids it."),
        ],
    )


@SHEET.exercise(
    "peak",
    "a number: the exponent of |w| in |α₁ − 1| as α₁ → 1, square loss, no ridge.",
    hints=(
        "Measure |w| at |α − 1| = 10⁻³ and 10⁻⁵.",
        "A bracket that vanishes in proportion to |α − 1| multiplies w_⊥².",
        "So |w| grows like |α − 1|^(−½).",
    ),
)
def peak(answer: Any) -> Reply:
    return value(
        answer,
        -0.5,
        rel=0.03,
        mistakes=[
            (-1.0, "That is the exponent of |w|²."),
            (0.5, "The norm grows towards the peak: mind the sign."),
        ],
    )


@SHEET.exercise(
    "labels",
    "a function f(loss): the bound on λ|ŵ|² at b₀ = 0, for 'logistic', 'square' and 'hinge'.",
    hints=(
        "The objective minus λ|w − ŵ|²/2 is convex as well, and stationary at the minimum.",
        "At (0, b₀) it says L_n(0, b₀) − λ|ŵ|²/2 ≥ L_n(ŵ, b̂) + λ|ŵ|²/2.",
        "λ|ŵ|² ≤ the loss of a score of zero: log 2, ½ and 1.",
    ),
    proof=(
        "the objective minus λ|w − ŵ|²/2 differs from the loss by a linear function",
        "a convex function that is stationary at a point is smallest there",
        "comparing values alone loses a factor of two",
    ),
)
def labels(answer: Any) -> Reply:
    for loss, bound in (("square", 0.5), ("logistic", np.log(2)), ("hinge", 1.0)):
        given = float(numbers(call(answer, {"loss": loss}), (), loss))
        if abs(given - 2 * bound) < 1e-3:
            return Reply(False, "That is what comparing values gives: a factor of two is lost.")
        if abs(given - bound) > 1e-3:
            return Reply(False, f"{loss}: what is the loss of a score of zero?")
    return Reply(True, "Right for all three losses, whatever the labels.")


SHEET.add(
    "missed",
    "A look at your own answer: it should contain these points.",
    hints=(
        "Compare the wrong theory's number with the simulation, in the row's own standard errors.",
        "A row refuses at about four of them.",
        "The weakest row is the one that scatters with the query; share that scatter between runs.",
    ),
    proof=(
        "for each row the distance of both wrong theories from the simulation, in standard errors",
        "which rows refuse which theory, and at what size a row refuses at all",
        "the weakest row, why it is weak, and a way to halve its error without more runs",
    ),
)
