"""What each explorer shows, as a function of its sliders; exact, by the modules of the chapters.

A figure's module in `explorers/` has a twin `compute` of each function here, from closed forms or
from tables; the tests hold the two against each other at a thousand settings of the sliders.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri, softmax

from .model import SparseTokens

Array = np.ndarray
PLACES = 2**20  # streams of `uniform`: noise along ξ, noise across it, places of the needles


class Slider(NamedTuple):
    """A slider: the letter and words beside it, and the values it stops at."""

    name: str
    symbol: str
    label: str
    stops: tuple[Any, ...]
    labels: tuple[str, ...] | None = None
    digits: int | None = None


@dataclass(frozen=True)
class Explorer:
    """A question, the sliders that ask it, and the function that answers."""

    title: str
    sliders: tuple[Slider, ...]
    start: dict[str, Any]
    values: Callable[[dict[str, Any]], dict[str, Any]]
    again: bool = False


def stops(low: float, high: float, count: int, *, log: bool = False, digits: int = 2) -> Any:
    """Values from low to high, evenly or by a constant factor, each rounded to `digits` digits.

    >>> stops(1, 1000, 4, log=True)
    (1.0, 10.0, 100.0, 1000.0)
    """
    grid = np.geomspace(low, high, count) if log else np.linspace(low, high, count)
    rounded = [float(f"{x:.{digits}g}") if log else float(round(x, 6)) for x in grid]
    return tuple(dict.fromkeys(rounded))


def integers(low: int, high: int) -> tuple[int, ...]:
    """Round whole numbers from low to high, about ten for each factor of ten.

    >>> integers(1, 100)
    (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 60, 80, 100)
    """
    series = (10, 12, 15, 20, 25, 30, 40, 50, 60, 80)
    found = [10**k * n // 10 for k in range(len(str(high))) for n in series if 10**k * n % 10 == 0]
    return tuple(n for n in found if low <= n <= high)


def uniform(seed: int, place: ArrayLike) -> Array:
    """Numbers in (0, 1) by the place in a stream: the same, to the bit, in `common.mjs`."""
    h = (np.uint64(seed) * np.uint64(0x9E3779B1)) + np.asarray(place, np.uint64) * np.uint64(
        0x85EBCA77
    )
    mask = np.uint64(0xFFFFFFFF)
    h &= mask
    for factor, shift in ((0x85EBCA6B, 16), (0xC2B2AE35, 13)):
        h = ((h ^ (h >> np.uint64(shift))) * np.uint64(factor)) & mask
    h ^= h >> np.uint64(16)
    return (h.astype(float) + 0.5) / 2**32


def needle(p: dict[str, Any]) -> dict[str, Any]:
    """One positive sample: projections on ξ, softmax weights, signal-to-noise ratios.

    With a = Σ_needles s_ℓ and r = |s| of s = softmax(T⟨x_ℓ, q̂⟩): δ = θR/√L under equal weights and
    θa/r under these.
    """
    model = SparseTokens(L=p["L"], R=min(p["R"], p["L"]), theta=p["theta"], pi=0.5)
    place, draw, cos = np.arange(model.L), p["draw"], p["cos"]
    needles = np.sort(np.argsort(uniform(draw, PLACES + place), kind="stable")[: model.R])
    height = ndtri(uniform(draw, 2 * place))
    height[needles] += model.theta
    across = ndtri(uniform(draw, 2 * place + 1))
    weight = softmax(p["T"] * (cos * height + np.sqrt(1 - cos**2) * across))
    share = float(weight[needles].sum())
    return {
        "height": height.tolist(),
        "weight": weight.tolist(),
        "needles": needles.tolist(),
        "share": share,
        "pooled": model.snr,
        "attended": model.theta * share / float(np.linalg.norm(weight)),
    }


EXPLORERS: dict[str, Explorer] = {
    "needle": Explorer(
        title="Where does the weight go, and what is left of the noise?",
        sliders=(
            Slider("theta", "θ", "strength of a needle", stops(0, 10, 41)),
            Slider("L", "L", "tokens", integers(10, 1000)),
            Slider("R", "R", "needles", tuple(range(1, 11))),
            Slider("cos", "s_q", "cosine of query and signal", stops(-1, 1, 41)),
            Slider("T", "T", "sharpness of the softmax", stops(0, 8, 33)),
        ),
        start={"theta": 4.0, "L": 40, "R": 2, "cos": 0.8, "T": 2.0, "draw": 1},
        values=needle,
        again=True,
    ),
}
