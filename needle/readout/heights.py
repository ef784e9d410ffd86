"""A head as a rule on the largest token with two heights: what it does at another length.

In a bag of L′ tokens, at sharpness T′, a token at height h along the query has the weight

    s(h) = σ(T′h − Λ),   Λ = log L′ + T′²/2 below freezing, T′√(2 log L′) from there on,

and the score of the bag, in units of ⟨w, q̂⟩, is Gaussian with mean c₀ + (h + e − c₀) s(h) and
standard deviation ω s(h): c₀ = min(T′, √(2 log L′)) is what straws score together, e = θ s_⊥κ/ν
what the readout adds for a needle, ω = √(κ² + w_⊥²)/ν the noise of the token that is read. The
answer is yes above t = −b/ν. So a needle is found above one height and a straw raises a false
alarm above another; the readout's noise blurs both. Chapter 11, prop-11-capture.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.special import expit, log_ndtr, ndtr

from ..data.tokens import SparseTokens, check_model
from ..kit.checks import check_integer, check_real
from .lengths import trained_head

Array = np.ndarray
REACH = 40.0  # no token stands higher
_G = np.linspace(-9, 9, 721)
_NORMAL = np.exp(-(_G**2) / 2) / np.exp(-(_G**2) / 2).sum()


@dataclass(frozen=True)
class TwoHeights:
    """A trained head as a rule on the largest token of a bag.

    Attributes
    ----------
    capture : the height at which a token holds half of the attention
    needle, straw : heights from which the mean score of a bag says yes, by its needle or by
        a straw; ∞ where no token suffices, −∞ where every bag is called positive
    misses, false_alarms, test_error : P(y = +1, no), P(y = −1, yes) and their sum
    """

    capture: float
    needle: float
    straw: float
    misses: float
    false_alarms: float

    @property
    def test_error(self) -> float:
        return self.misses + self.false_alarms


def capture_height(temperature: float, L: float) -> float:
    """The height at which one token holds half of the attention among L.

    log L/T + T/2 below freezing, √(2 log L) from there on.

    Examples
    --------
    >>> [round(capture_height(T, 100), 2) for T in (1.0, 2.0, 4.0)]
    [5.11, 3.3, 3.03]
    """
    T = check_real("temperature", temperature, 0, open_low=True)
    L = check_real("L", L, 2)
    frozen = math.sqrt(2 * math.log(L))
    return frozen if frozen <= T else math.log(L) / T + T / 2


def two_heights(
    model: SparseTokens,
    new: int,
    temperature: float,
    cos: float,
    alpha: float,
    lam: float,
    *,
    sharpness: float | None = None,
) -> TwoHeights:
    """The head trained at (model.L, temperature), used on bags of `new` tokens at `sharpness`.

    Arguments as in `sharpened`; the intercept is kept, `sharpness` is `temperature` unless given.
    For one needle. Where it is asked at its own best sharpness, its errors are within 11 % of the
    exact law's for T/√(2 log L) from 0.45 to 1.2, and up to 33 % too low at 0.3 (L = 100 and 1000,
    θ = 5 to 7, L′/L = 4 to 64: the stored sweep `length_rules`).

    Examples
    --------
    >>> head = SparseTokens(100, 1, 6.0, 0.5)
    >>> found = two_heights(head, 1600, 1.37, 0.9, 4.0, 0.01)
    >>> [round(x, 2) for x in (found.capture, found.needle, found.straw)]
    [6.07, 5.35, 5.74]
    >>> round(found.misses, 2), round(found.false_alarms, 3)
    (0.24, 0.0)
    """
    rule = _Rule(check_model(model), new, temperature, cos, alpha, lam)
    if sharpness is None:
        return rule(rule.temperature)
    return rule(check_real("sharpness", sharpness, 0, open_low=True))


def two_height_sharpness(
    model: SparseTokens, new: int, temperature: float, cos: float, alpha: float, lam: float
) -> float:
    """The T′ at which the rule with two heights errs least at length `new`, the intercept kept.

    Needs one trained head and no law at the new length. The head's exact error at this T′ is
    within 11 % of the least in the stored sweep `length_rules` for L′ = 4L to 64L, within 4 % for
    T/√(2 log L) from 0.45 to 0.9; within 18 % at the shorter L′ = L/4.

    Examples
    --------
    >>> T = two_height_sharpness(SparseTokens(100, 1, 6.0, 0.5), 1600, 1.37, 0.9, 4.0, 0.01)
    >>> 2.2 < T < 2.35
    True
    """
    rule = _Rule(check_model(model), new, temperature, cos, alpha, lam)
    high = max(1.5 * rule.temperature, 1.6 * math.sqrt(2 * math.log(rule.new)))
    grid = np.linspace(0.3 * rule.temperature, high, 40)
    error = lambda T: rule(float(T)).test_error  # noqa: E731
    k = int(np.argmin([error(T) for T in grid]))
    ends = float(grid[max(k - 1, 0)]), float(grid[min(k + 1, 39)])
    return float(minimize_scalar(error, bounds=ends, method="bounded", options={"xatol": 1e-4}).x)


class _Rule:
    """T′ → what the head does."""

    def __init__(
        self, model: SparseTokens, new: int, temperature: float, cos: float, alpha: float,
        lam: float,
    ) -> None:  # fmt: skip
        if model.R > 1:
            raise ValueError(f"R = {model.R} is not allowed: for two heights, R must be 1")
        self.model, self.new = model, check_integer("new", new, 2)
        self.temperature = check_real("temperature", temperature, 0, open_low=True)
        self.cos = check_real("cos", cos, 0, 1, open_low=True)
        o = trained_head(model, self.temperature, self.cos, alpha, lam)
        if not o.nu > 0:
            raise ValueError(
                f"alpha = {alpha!r} is not allowed: alpha must be enough for a readout along q"
            )
        self.level = -o.bias / o.nu
        self.extra = model.theta * math.sqrt(1 - self.cos**2) * o.kappa / o.nu
        self.noise = math.hypot(o.kappa, o.rest) / o.nu
        self.up = np.linspace(-3, 14, 1701)
        self.largest = np.diff(np.exp(self.new * log_ndtr(self.up)), prepend=0.0)

    def __call__(self, sharpness: float) -> TwoHeights:
        height = self.model.theta * self.cos + _G
        silent = float(_NORMAL @ self._no(sharpness, height, self.extra))
        quiet = float(self.largest @ self._no(sharpness, self.up, 0.0))
        misses = self.model.pi * silent * quiet ** ((self.new - 1) / self.new)
        return TwoHeights(
            capture_height(sharpness, self.new), self._crossing(sharpness, self.extra),
            self._crossing(sharpness, 0.0), misses, (1 - self.model.pi) * (1 - quiet),
        )  # fmt: skip

    def _mean(self, T: float, h: Array | float, extra: float) -> tuple[Array, Array]:
        """Weight and mean score of a bag whose heaviest token stands at h."""
        frozen = math.sqrt(2 * math.log(self.new))
        floor, T = min(T, frozen), float(T)
        weight = expit(T * (np.asarray(h) - capture_height(T, self.new)))
        return weight, floor + (h + extra - floor) * weight

    def _no(self, T: float, h: Array, extra: float) -> Array:
        weight, mean = self._mean(T, h, extra)
        return np.asarray(ndtr((self.level - mean) / (self.noise * weight + 1e-12)))

    def _crossing(self, T: float, extra: float) -> float:
        """The height from which on the mean score exceeds the level."""
        grid = np.linspace(-REACH, REACH, 4001)
        over = self._mean(T, grid, extra)[1] - self.level
        below = np.flatnonzero(over <= 0)
        if not len(below):
            return -math.inf
        k = int(below[-1])
        if k == len(grid) - 1:
            return math.inf
        gap = lambda h: float(self._mean(T, h, extra)[1] - self.level)  # noqa: E731
        return float(brentq(gap, grid[k], grid[k + 1]))
