"""What an explorer is made of: sliders with stops, and random numbers that a browser has too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

Array = np.ndarray


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


def stops(low: float, high: float, count: int, *, log: bool = False) -> Any:
    """Values from low to high, evenly or by a constant factor, each rounded to two digits.

    >>> stops(1, 1000, 4, log=True)
    (1.0, 10.0, 100.0, 1000.0)
    """
    grid = np.geomspace(low, high, count) if log else np.linspace(low, high, count)
    rounded = [float(f"{x:.2g}") if log else float(round(x, 6)) for x in grid]
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
    """Numbers in (0, 1) by the place in a stream: to the bit those of `explorers/maths.mjs`."""
    h = (np.uint64(seed) * np.uint64(0x9E3779B1)) + np.asarray(place, np.uint64) * np.uint64(
        0x85EBCA77
    )
    mask = np.uint64(0xFFFFFFFF)
    h &= mask
    for factor, shift in ((0x85EBCA6B, 16), (0xC2B2AE35, 13)):
        h = ((h ^ (h >> np.uint64(shift))) * np.uint64(factor)) & mask
    h ^= h >> np.uint64(16)
    return (h.astype(float) + 0.5) / 2**32
