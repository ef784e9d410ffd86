"""The explorer of the rules for the sharpness of a head that meets bags of another length."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

from needle.data.tokens import SparseTokens
from needle.readout.heights import two_height_sharpness
from needle.readout.lengths import dials
from needle.readout.transfer import INTERCEPTS
from utils.results import stored

from .base import Explorer, Slider

HEAD = (
    0.9,
    4.0,
    0.01,
)  # cosine of the query, bags per dimension, ridge: as in experiments/lengths.py
SHARES = (0.3, 0.45, 0.6, 0.75, 0.9, 1.05, 1.2)  # T in units of √(2 log L)
TIMES = (0.25, 4.0, 16.0, 64.0)  # L′/L
RULES = ("none", "root", "log", "yarn", "llama4", "capture", "best")


def at_stop(
    L: int, theta: float, share: float, times: float, how: str
) -> tuple[dict[str, float], float]:
    """Stored errors of every rule and the best at one stop, and the best T′, as `dials` has them.

    With the intercept kept the sharpness of the two heights is stored beside the rules.
    """
    row = stored_rows()[L, theta, share]
    found = {rule: float(row[f"{times:g}/{how}/{rule}"]) for rule in RULES}
    best = float(row[f"{times:g}/{how}/best T"])
    aimed = float(row[f"{times:g}/keep/heights"]) if how == "keep" else math.inf
    if aimed < found["best"]:
        model, T = SparseTokens(L, 1, theta, 0.5), share * math.sqrt(2 * math.log(L))
        found["best"] = aimed
        best = two_height_sharpness(model, round(times * L), T, *HEAD)
    return found, best


@cache
def stored_rows() -> dict[tuple[int, float, float], Any]:
    """The stored sweep by length, strength and sharpness in training."""
    table = stored("length_rules")
    places = [(point["L"], point["theta"], point["share"]) for point in table.points]
    return dict(zip(places, table.estimates, strict=True))


@cache
def along(L: int, theta: float, times: float, how: str) -> dict[str, list[float]]:
    """Stored errors of every rule at all sharpnesses in training."""
    found = [at_stop(L, theta, share, times, how)[0] for share in SHARES]
    return {rule: [row[rule] for row in found] for rule in RULES}


def lengths(p: dict[str, Any]) -> dict[str, Any]:
    """Errors at L′ of a head trained at L, by rule: at the sliders from the law, else stored."""
    L, how = p["L"], INTERCEPTS[p["how"]]
    model, T = SparseTokens(L, 1, p["theta"], 0.5), p["share"] * math.sqrt(2 * math.log(L))
    new = round(p["times"] * L)
    also = [two_height_sharpness(model, new, T, *HEAD)] if how == "keep" else []
    race = dials(model, new, T, *HEAD, how, also=also)
    return {
        **along(L, p["theta"], p["times"], how),
        "sharpness": {rule: sharp for rule, (sharp, _) in race.items()},
        "here": {rule: one.test_error for rule, (_, one) in race.items()},
    }


EXPLORER = Explorer(
    title="A trained head meets longer bags: how sharp should it be?",
    sliders=(
        Slider("times", "L′/L", "length in use over length in training", TIMES),
        Slider("share", "T/√(2 log L)", "sharpness in training", SHARES),
        Slider("theta", "θ", "strength of the needle", (5.0, 6.0, 7.0)),
        Slider("L", "L", "tokens in training", (100, 1000)),
        Slider("how", "b", "intercept", (0, 1, 2), ("kept", "re-set without labels", "re-tuned")),
    ),
    start={"times": 16.0, "share": 0.6, "theta": 6.0, "L": 100, "how": 0},
    values=lengths,
)
