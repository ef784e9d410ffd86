"""How long must the needle be: strengths against the length, and how high a learned query lifts it.

Balanced classes, a calibrated bias, α₀ samples per dimension for the query (Chapter 7): after two
steps the cosine is s = (1 + x² + x/θ)^(−1/2), x = 4L/(α₀θ³R²), and the needle is found where its
height θs passes that of the tallest straw, √(2 log L).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import ndtri

from .base import Explorer, Slider, stops

LENGTHS = tuple(np.geomspace(10, 1e9, 33).tolist())
STRENGTHS = tuple(np.geomspace(1, 1000, 61).tolist())


def cosine(L: float, R: int, theta: float, alpha0: float) -> float:
    """s of the query after two steps.

    >>> round(cosine(1000, 1, 12.6, 2.0), 2)
    0.69
    """
    x = 4 * L / (alpha0 * theta**3 * R**2)
    return 1 / math.sqrt(1 + x * x + x / theta)


def length(p: dict[str, Any]) -> dict[str, Any]:
    """Leading orders of the needed strengths over L; cosines and heights over θ at one L."""
    L, R, alpha0, theta = p["L"], p["R"], p["alpha0"], p["theta"]
    walls = [math.sqrt(2 * math.log(n)) for n in LENGTHS]
    crowd = [4 * n / (alpha0 * R**2) for n in LENGTHS]
    here = cosine(L, R, theta, alpha0)
    return {
        "average": [-2 * float(ndtri(0.05)) * math.sqrt(n) / R for n in LENGTHS],
        "one": [(c * w**2) ** 0.25 for c, w in zip(crowd, walls, strict=True)],
        "two": [(c * w) ** 0.25 for c, w in zip(crowd, walls, strict=True)],
        "given": walls,
        "height": [t * cosine(L, R, t, alpha0) for t in STRENGTHS],
        "cos": here,
        "here": theta * here,
        "wall": math.sqrt(2 * math.log(L)),
        "needed": (4 * L / (alpha0 * R**2) * math.sqrt(2 * math.log(L))) ** 0.25,
        "how": "Exact: the formulas of this chapter, leading orders in L.",
    }


EXPLORER = Explorer(
    title="How long must a needle be for a head that learns where to look?",
    sliders=(
        Slider("L", "L", "tokens", tuple(10**k for k in range(2, 10))),
        Slider("theta", "θ", "strength of a needle", stops(2, 500, 33, log=True)),
        Slider("alpha0", "α₀", "samples per dimension", stops(0.5, 1000, 34, log=True)),
        Slider("R", "R", "needles", (1, 2, 4, 10)),
    ),
    start={"L": 10**6, "theta": 63.0, "alpha0": 2.0, "R": 1},
    values=length,
)
