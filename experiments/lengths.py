"""Trained at one length, used at another: every rule for the sharpness, by the exact law."""

from __future__ import annotations

import math

import numpy as np

from needle.data.tokens import SparseTokens
from needle.readout.heights import two_height_sharpness, two_heights
from needle.readout.lengths import dials, head_at
from needle.readout.transfer import INTERCEPTS

HEAD = 0.9, 4.0, 0.01  # cosine of the query, bags per dimension, ridge
TIMES = (0.25, 4.0, 16.0, 64.0)


def by_rule(L: int, theta: float, share: float, rng: np.random.Generator) -> dict[str, float]:
    """A head of sharpness `share`·√(2 log L): errors at L′ = 4L to 64L, and L/4, under each rule.

    "best T": the T′ of least error; "heights": the exact error at the T′ of `two_height_sharpness`
    (intercept kept), "said": what `two_heights` says of it.
    """
    model, T = SparseTokens(L, 1, theta, 0.5), share * math.sqrt(2 * math.log(L))
    found = {}
    for times in TIMES:
        new = round(times * L)
        for how in INTERCEPTS:
            race = dials(model, new, T, *HEAD, how)
            errors = {rule: one.test_error for rule, (_, one) in race.items()}
            if how == "keep":
                aimed = two_height_sharpness(model, new, T, *HEAD)
                errors["heights"] = head_at(model, new, T, *HEAD, how)(aimed).test_error
                said = two_heights(model, new, T, *HEAD, sharpness=aimed)
                found[f"{times:g}/said"] = said.test_error
            found |= {f"{times:g}/{how}/{rule}": error for rule, error in errors.items()}
            found[f"{times:g}/{how}/best T"] = race["best"][0]
    return found
