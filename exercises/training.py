"""Checks of the chapter on training without the recipe."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import expit, logit

from needle import SparseTokens
from needle.training import predict_rounds

from .desk import Sheet
from .judging import Array, call, function, numbers, value
from .reply import Reply

SHEET = Sheet("training")


@SHEET.exercise(
    "ramp",
    "a function f(L, R, theta, pi): the bracket of the ramp, the slope of ⟨q, ξ⟩ in units of"
    " η_q γ⟨w, ξ⟩/L, at equal pulls γ.",
    hints=(
        "To first order only E[y⟨k, h⟩] moves the query.",
        "The noises of v_ℓ and h_ℓ are correlated in both classes; needles add to positives alone.",
        "π θ²R̄ + (2π − 1)(L − 1) with R̄ = R(L − R)/L.",
    ),
    proof=(
        "⟨w, ξ⟩, |w|² and b are of first order, the three numbers with q of second",
        "|w|² drops out: the noises of v̄ and v_ℓ − v̄ are uncorrelated",
        "the echo is the covariance of a token with itself",
    ),
)
def ramp(answer: Any) -> Reply:
    def bracket(L: float, R: float, theta: float, pi: float) -> float:
        return pi * theta**2 * R * (L - R) / L + (2 * pi - 1) * (L - 1)

    def drawn(L: float, R: float, theta: float, pi: float) -> Array:
        rng, n = np.random.default_rng(801), 20_000
        g, own = rng.standard_normal((2, 20, n // 20, int(L)))
        y = rng.random((20, n // 20)) < pi
        h = g + theta * (np.arange(L) < R) * y[..., None]
        v = h + own  # the score along w = ξ + something across it
        k = v - v.mean(axis=-1, keepdims=True)
        slope: Array = (np.where(y, 1, -1) * (k * h).sum(axis=-1)).mean(axis=1)
        return slope

    return function(
        answer,
        bracket,
        [
            {"L": 10, "R": 1, "theta": 0.0, "pi": 0.3},
            {"L": 12, "R": 3, "theta": 2.0, "pi": 0.5},
            {"L": 8, "R": 2, "theta": 2.0, "pi": 0.7},
        ],
        rel=2e-3,
        mistakes=[
            (
                lambda L, R, theta, pi: pi * theta**2 * R + (2 * pi - 1) * (L - 1),
                "Needles also raise the mean of their bag: R̄, not R.",
            ),
            (lambda L, R, theta, pi: pi * theta**2 * R * (L - R) / L, "Where is the echo?"),
            (
                lambda L, R, theta, pi: pi * theta**2 * R * (L - R) / L + (2 * pi - 1) * L,
                "A token is compared with the mean of its bag, which contains it: L − 1.",
            ),
        ],
        draws=drawn,
    )


@SHEET.exercise(
    "intercept",
    "a function f(pi, loss): where the intercept ends, for loss 'logistic' or 'square'.",
    hints=(
        "The flow stops where the mean pull is zero.",
        "Logistic: π σ(−b) = (1 − π) σ(b). Square: π(1 − b) = (1 − π)(1 + b).",
        "log π/(1 − π), and 2π − 1.",
    ),
    proof=(
        "the loss is convex in b: there is one end",
        "the echo is proportional to the mean pull",
    ),
)
def intercept(answer: Any) -> Reply:
    for loss, truth in (("logistic", logit), ("square", lambda pi: 2 * pi - 1)):
        for pi in (0.2, 0.85):
            where = f"π = {pi}, {loss}"
            given = float(numbers(call(answer, {"pi": pi, "loss": loss}), (), where))
            exact = float(truth(pi))
            if abs(given - exact) > 2e-3 * abs(exact):
                pull = pi * expit(-given) - (1 - pi) * expit(given)
                if loss == "square":
                    pull = pi * (1 - given) - (1 - pi) * (1 + given)
                return Reply(False, f"At {where} your b leaves a mean pull of {pull:+.3f}.")
    return Reply(True, "Right for both losses: nothing pulls any more.")


@SHEET.exercise(
    "shake",
    "a function f(L, theta, lr): the squared length at which |w|² ends, q = 0, b = 0, square loss,"
    " R = 1, π = ½, and ∞ where it does not end.",
    hints=(
        "Write the two equations for ⟨w, ξ⟩ and |w|² with s = 1/L.",
        "⟨w, ξ⟩ ends at m₁/(1/L + m₂), m₁ = πθ/L, m₂ = π(θ/L)²; |w|² needs η < 2L.",
        "Set the second right-hand side to zero at that ⟨w, ξ⟩ and solve for |w|².",
    ),
    proof=(
        "E[t²] = |w|²/L + m₂⟨w, ξ⟩² and E[ty] = m₁⟨w, ξ⟩",
        "the coefficient of |w|² is η(η/L − 2)/L, negative exactly for η < 2L",
    ),
)
def shake(answer: Any) -> Reply:
    def end(L: float, theta: float, lr: float) -> float:
        m1, m2 = theta / L / 2, (theta / L) ** 2 / 2
        along = m1 / (1 / L + m2)
        gain = lr * (lr / L - 2) * m2 * along**2 + 2 * lr * m1 * (1 - lr / L) * along + lr**2 / L
        return float(gain / (lr / L * (2 - lr / L)))

    beyond = call(answer, {"L": 6, "theta": 2.0, "lr": 13.0})
    try:
        endless = float(beyond) == np.inf
    except (TypeError, ValueError):
        endless = False
    if not endless:
        return Reply(False, "At L = 6, η = 13 the length runs away; your function should say ∞.")
    points = [{"L": 4, "theta": 2.0, "lr": 6.0}, {"L": 9, "theta": 3.0, "lr": 1.0}]
    return function(
        answer,
        end,
        points,
        rel=3e-3,
        mistakes=[
            (
                lambda L, theta, lr: end(L, theta, 1e-9),
                "That is where the flow of an infinitely small rate ends; a finite rate shakes.",
            ),
        ],
    )


@SHEET.exercise(
    "rates",
    "a number: the test error after 40 steps with all rates at 10.",
    hints=(
        "Run `simulate_descent` with all three rates at 10.",
        "Look at what happens at steps 2, 3 and 4: which sign have all the scores?",
        "The query looks at one token, hardly ever the needle: new labels are guessed.",
    ),
)
def rates(answer: Any) -> Reply:
    return value(
        answer,
        0.5,
        rel=0.06,
        mistakes=[
            (0.06, "That is where rates of 0.3 and 1 end. Run the fast one."),
            (0.0, "The training bags are memorized; what about new ones?"),
        ],
    )


SHEET.add(
    "stop",
    "A look at your own answer: it should contain these points.",
    hints=(
        "Train on nine tenths, watch the error on the last tenth.",
        "Compare three numbers: the chosen step, the best step of the same run, the best of all"
        " bags.",
        "Choosing by 24 bags costs more than training without them.",
    ),
    proof=(
        "the stopping step depends on the bags kept aside only",
        "the price in test error with its standard error over data sets, paired",
        "which part of the price is the choice, which the missing bags",
        "what stopping saves against going on",
    ),
)


@lru_cache
def _tenth(T: float) -> float:
    task = SparseTokens(L=200, R=1, theta=6.0, pi=0.5)
    return float(predict_rounds(task, 0.5, 10, kind="repeat", sharpness=T)[-1])


@SHEET.exercise(
    "sharpness",
    "a number: the cosine of *repeat* after ten rounds at sharpness 1, L = 200, θ = 6, α = ½ a"
    " step,"
    " π = ½.",
    hints=(
        "`predict_rounds` computes it.",
        "predict_rounds(model, 0.5, 10, kind='repeat', sharpness=1.0), the last entry.",
        "It arrives where *readout* does, a little above 0.9.",
    ),
)
def sharpness(answer: Any) -> Reply:
    return value(
        answer,
        lambda: _tenth(1.0),
        rel=0.01,
        mistakes=[
            (lambda: _tenth(2.0), "That is sharpness 2, which commits to chance."),
            (lambda: _tenth(0.5), "That is sharpness ½."),
            (1.0, "Ten rounds with fresh bags do not make the query perfect."),
        ],
    )
