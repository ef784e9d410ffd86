"""Checks of the chapter on one data set that is used twice."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtr

from .desk import Sheet
from .judging import Array, function, value
from .reply import Reply

SHEET = Sheet("again")


@SHEET.exercise(
    "share",
    "a function f(L, theta, alpha) that returns two probabilities, π = ½, R = 1: that w after one"
    " step misreads a bag that took part, and that it misreads a new one.",
    hints=(
        "The label of a bag stands in its own heights, as a constant 1/(αL) in units of η_w/2.",
        "In these units the margin has variance σ² = (m² + 1/(αL))/L, m = πθ/L.",
        "Means 1/(αL) + mθ/L for positives, 1/(αL) for negatives; without 1/(αL) for a new bag.",
    ),
    proof=(
        "at the start F = −y/(2L) in every token, and there is no older direction",
        "the pull has the coordinate −πθR/(2L) on ξ, and r on the new direction",
        "as α → ∞ the share vanishes relative to σ like 1/(αm√L)",
    ),
)
def share(answer: Any) -> Reply:
    def misread(L: float, theta: float, alpha: float, own: float = 1.0) -> Array:
        m, part = theta / L / 2, own / (alpha * L)
        sigma = np.sqrt((m**2 + 1 / (alpha * L)) / L)
        shift = m * theta / L
        seen = (ndtr(-(part + shift) / sigma) + ndtr(-part / sigma)) / 2
        return np.array([seen, (ndtr(-shift / sigma) + 0.5) / 2])

    return function(
        answer,
        misread,
        [
            {"L": 10, "theta": 3.0, "alpha": 1.0},
            {"L": 30, "theta": 6.0, "alpha": 4.0},
            {"L": 5, "theta": 2.0, "alpha": 0.5},
        ],
        rel=2e-3,
        mistakes=[
            (
                lambda L, theta, alpha: misread(L, theta, alpha, 0.0),
                "A bag that took part has moved w towards itself: its label stands in its heights.",
            ),
            (
                lambda L, theta, alpha: misread(L, theta, alpha)[::-1],
                "Both are right, in the wrong order.",
            ),
            (
                lambda L, theta, alpha: misread(L, theta, alpha, 2.0),
                "The new bag is right; the share of the other is too large.",
            ),
        ],
    )


@SHEET.exercise(
    "populations",
    "a number: by which factor does the stated standard error fall from 400 to 1600 bags?",
    hints=(
        "Compute both, with the same number of populations.",
        "A population is a mean over its bags.",
        "Four times the bags: the root of four.",
    ),
)
def populations(answer: Any) -> Reply:
    return value(
        answer,
        2.0,
        rel=0.2,
        mistakes=[
            (4.0, "That would be the variance."),
            (0.5, "That is the quotient the other way round; by which factor does it fall?"),
            (1.0, "The error is that of a mean over bags: it falls with their number."),
        ],
    )


SHEET.add(
    "average",
    "A look at your own answer: it should contain these points.",
    hints=(
        "The mean of the queries is one more linear combination of states.",
        "Keep the sum of all states beside the last one; its field is the sum of the fields.",
        "Compare cosines at the best step of the last query, and long after it.",
    ),
    proof=(
        "which state the theory has to carry along, and why no new idea is needed",
        "the cosine of the mean query at the best moment against that of the last one",
        "whether the mean forgets as well, and when",
    ),
)
