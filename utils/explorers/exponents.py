"""Who sees what, as L → ∞ and at a million tokens: powers of L over the height, errors over θ̂.

Heights, strengths and sharpness in units of a = √(2 log L), π = L^{−γ} (½ for γ = 0), R needles or
L^{1−β}. The exponents are closed forms (Chapter 3, thm-3-master); errors at L = 10⁶ are those of
`oracle_error`, stored (`experiments/separation.toml`).
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from needle.oracle.exponents import detection_boundary, detection_exponent
from utils.results import stored

from .base import Explorer, Slider, stops

LENGTH = 10**6
NEEDLES: tuple[tuple[int | None, float], ...] = (  # R, or None and L^{1−β}; β
    (1, 1.0), (2, 1.0), (10, 1.0), (None, 0.75), (None, 0.6),
)  # fmt: skip
LABELS = ("1", "2", "10", "L^0.25 (β = 0.75)", "L^0.4 (β = 0.6)")
RARITIES = (0.0, 0.25, 0.5, 0.75, 1.0)
SHARPNESS = (0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6, 0.8)
STRENGTHS = stops(0.5, 2, 7)
HEIGHTS, FINE = np.linspace(0, 2, 101), np.linspace(0, 2, 102)  # no boundary on FINE
RULES = ("softmax", "largest", "bayes")
FINITE = {  # shapes of what is stored at a million tokens
    "softmax": (len(SHARPNESS), len(STRENGTHS)),
    "excess": (len(STRENGTHS),),
    "largest": (len(STRENGTHS),),
}


def count(needles: int, L: float = LENGTH) -> int:
    """How many needles there are among L tokens.

    >>> [count(k) for k in range(len(NEEDLES))]
    [1, 2, 10, 32, 251]
    """
    R, beta = NEEDLES[needles]
    return R or round(L ** (1 - beta))


def share(gamma: float, L: float = LENGTH) -> float:
    """π = L^{−γ}, one half for γ = 0."""
    return L**-gamma if gamma else 0.5


@cache
def rates(needles: int, gamma: float) -> dict[str, np.ndarray]:
    """−log(error/π)/log L at a million tokens: softmax (sharpness, θ̂), others (θ̂)."""
    found = stored("finite_errors").at(needles=needles, gamma=gamma)[0][1]
    return {
        rule: np.reshape([float(found[f"{rule}/{k}"]) for k in range(math.prod(shape))], shape)
        for rule, shape in FINITE.items()
    }


def _finite(x: float) -> float | None:
    return float(x) if math.isfinite(x) else None


def exponents(p: dict[str, Any]) -> dict[str, Any]:
    """Powers of L of the straws' weight and of its spread, exponents of errors, and errors at 10⁶.

    Straws at height u together weigh L^{1−u²+2τ̂u}, with a spread of L^{(1−u²)/2+2τ̂u}.
    """
    tau, gamma = p["tau"], p["gamma"]
    R, beta = NEEDLES[p["needles"]]
    at: dict[str, Any] = {"R": R, "beta": beta, "gamma": gamma}
    u = HEIGHTS[HEIGHTS <= 1]
    summits = [min(tau, 1.0), min(2 * tau, 1.0)]
    tops = [1 - summits[0] ** 2, (1 - summits[1] ** 2) / 2]
    alive = 1 - beta - (HEIGHTS - p["theta"]) ** 2
    found, here = rates(p["needles"], gamma), STRENGTHS.index(p["theta"])
    rate = {**found, "softmax": found["softmax"][SHARPNESS.index(tau)]}
    sharp = {rule: {"tau": tau} if rule == "softmax" else {} for rule in RULES}
    return {
        "weight": (1 - u**2 + 2 * tau * u).tolist(),
        "spread": ((1 - u**2) / 2 + 2 * tau * u).tolist(),
        "needles": [_finite(x) for x in np.where(alive >= 0, alive + 2 * tau * HEIGHTS, np.nan)],
        "summits": summits,
        "levels": [top + 2 * tau * x for top, x in zip(tops, summits, strict=True)],
        "wall": math.sqrt(1 + gamma),
        "edge": {rule: detection_boundary(rule, **at, **sharp[rule]) for rule in RULES},
        "exponent": {
            rule: [_finite(detection_exponent(rule, x, **at, **sharp[rule])) for x in FINE]
            for rule in RULES
        },
        "here": {
            rule: _finite(detection_exponent(rule, p["theta"], **at, **sharp[rule]))
            for rule in RULES
        },
        "rate": {rule: row.tolist() for rule, row in rate.items()},
        "risk": {rule: share(gamma) * LENGTH ** -float(row[here]) for rule, row in rate.items()},
        "how": "Exponents exact; errors at a million tokens stored, good to a few per cent.",
    }


EXPLORER = Explorer(
    title="Who sees what, and with which error?",
    sliders=(
        Slider("needles", "R", "needles", tuple(range(len(NEEDLES))), LABELS),
        Slider("gamma", "γ", "rarity, π = L to the −γ", RARITIES),
        Slider("tau", "τ̂", "sharpness of the softmax", SHARPNESS),
        Slider("theta", "θ̂", "strength of a needle", STRENGTHS),
    ),
    start={"needles": 2, "gamma": 0.0, "tau": 0.4, "theta": 1.25},
    values=exponents,
)
