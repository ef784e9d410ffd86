"""Checks of the appendix on bets and uneven places."""

from __future__ import annotations

from typing import Any

import numpy as np

from .desk import Sheet
from .judging import call, function, numbers
from .reply import Reply

SHEET = Sheet("bets")


@SHEET.exercise(
    "bet-boundary",
    "a function f(pi): to leading order as π → 0, the δ below which some bet beats covering all"
    " places.",
    hints=(
        "The best threshold of covering is at t = δ/2 + log(1/π)/δ.",
        "Covering misses nearly all positives while t > δ.",
        "t = δ at δ = √(2 log(1/π)).",
    ),
)
def bet_boundary(answer: Any) -> Reply:
    return function(
        answer,
        lambda pi: np.sqrt(2 * np.log(1 / pi)),
        [{"pi": 1e-3}, {"pi": 1e-6}],
        rel=5e-3,
        mistakes=[
            (lambda pi: np.log(1 / pi), "The threshold has two terms; where do they balance?"),
            (lambda pi: np.sqrt(np.log(1 / pi)), "A factor √2 is missing."),
        ],
    )


@SHEET.exercise(
    "exponent",
    "a function f(a, e): the power of L in the strength for an error e < ½, places p ∝ ℓ^(−a), π"
    " = ½.",
    hints=(
        "How many places hold the share 1 − 2e of the needles?",
        "For a = 1 the first N hold log N/log L; for a < 1 a share (N/L)^(1−a); for a > 1 a few"
        " hold nearly all.",
        "The strength is the root of that number of places: ½ − e at a = 1, ½ below, 0 above.",
    ),
    proof=(
        "lower bound: an error e forces θ ≥ c√N for η slightly above 2e",
        "upper bound: equal weights on N_η places, η slightly below 2e",
    ),
)
def exponent(answer: Any) -> Reply:
    return function(
        answer,
        lambda a, e: 0.5 if a < 1 else (0.5 - e if a == 1 else 0.0),
        [{"a": 0.5, "e": 0.1}, {"a": 1, "e": 0.2}, {"a": 1.7, "e": 0.3}, {"a": 1, "e": 0.05}],
        floor=0.05,
        mistakes=[
            (
                lambda a, e: 0.5 - e,
                "Right for the law 1/ℓ; what if it falls more slowly, or faster?",
            ),
            (lambda a, e: 0.5, "That is uniform places."),
        ],
    )


@SHEET.exercise(
    "learning-places",
    "a function f(p): the weights of the places that training with a strong ridge finds (an array,"
    " up to a factor).",
    hints=(
        "A strong ridge gives the difference of the class means.",
        "The mean token at place ℓ of a positive bag is shifted by θ times a probability.",
        "Proportional to p: the matched filter.",
    ),
)
def learning_places(answer: Any) -> Reply:
    for p in (np.array([0.5, 0.3, 0.2]), np.array([0.7, 0.1, 0.1, 0.06, 0.04])):
        w = numbers(call(answer, {"p": p}), p.shape, f"{len(p)} places")
        if not np.linalg.norm(w) > 0:
            return Reply(False, "Weights that are all zero see nothing.")
        cos = float(w @ p / np.linalg.norm(w) / np.linalg.norm(p))
        if cos < 1 - 1e-9:
            equal = "Those are equal weights. " if np.ptp(w) < 1e-12 else ""
            return Reply(
                False, f"{equal}Your weights have the cosine {cos:.3f} with what is found."
            )
    return Reply(True, "Right: the matched filter.")
