"""Typical bags of straws of any length: the tallest one by one, the others as a few sums.

What makes a rule err is rare: a straw too tall, or needles too low. Given *typical* other tokens
the rare event is an integral over one token. So typical bags are all that is drawn, and an error of
10⁻³⁰⁰ costs no more than one of 10⁻¹, at L = 10³⁰⁰ no more than at 100. Appendix A, alg-A-rare.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr, ndtri_exp

from .rules import OracleError

Array = np.ndarray
TOP, GROUPS = 48, 12  # straws drawn one by one, and groups of the others
LOG_ROOT_2PI = math.log(2 * math.pi) / 2


@dataclass(frozen=True)
class Straws:
    """The tallest straws `top` (bags, k) of each bag, falling, and how many `others` are below.

    `log_below` (bags,) is log Φ of the last of `top`.
    """

    top: Array
    others: float
    log_below: Array

    def repeat(self, copies: int) -> Straws:
        """Every bag `copies` times in a row."""
        return Straws(self.top.repeat(copies, axis=0), self.others, self.log_below.repeat(copies))

    def log_groups(self, r: float) -> tuple[Array, Array]:
        """log of the mean e^{rg} of groups of the others (bags, groups), and the groups' sizes.

        The share of the others that lies above the foot of a group falls by equal factors.
        """
        n = self.others
        if not n:
            return np.zeros((len(self.top), 0)), np.zeros(0)
        share = np.minimum(0.5, 8 / n) ** (np.arange(GROUPS) / GROUPS)
        size = n * (share - np.append(share[1:], 0.0))
        last = self.top[:, -1:]
        beyond = np.logaddexp(log_ndtr(-last), np.log(share) + self.log_below[:, None])
        feet = np.concatenate([-ndtri_exp(np.minimum(beyond, 0.0)), last], axis=1)
        mass = log_between(feet[:, :-1] - r, feet[:, 1:] - r)
        return r * r / 2 + mass - np.log(size / n) - self.log_below[:, None], size


def sample_straws(count: float, bags: int, rng: np.random.Generator) -> Straws:
    """`bags` bags of `count` standard normal heights, count ≤ 10³⁰⁰.

    >>> bags = sample_straws(1e300, 1000, np.random.default_rng(0))
    >>> round(float(bags.top[:, 0].mean()), 1)
    37.1
    """
    k = int(min(count, TOP))
    if not k:
        return Straws(np.empty((bags, 0)), 0.0, np.zeros(bags))
    uniform = np.maximum(rng.random((bags, k)), 2.0**-53)
    rank = np.cumsum(np.log(uniform) / (count - np.arange(k)), axis=1)  # log Φ(g), falling
    top = ndtri_exp(np.minimum(rank, -1e-305))
    return Straws(top, float(count - k), np.asarray(log_ndtr(top[:, -1])))


def log_between(low: Array, high: Array) -> Array:
    """log P(low < g < high) of a standard normal g, to full relative precision in both tails."""
    flip = low > 0
    a, b = np.where(flip, -high, low), np.where(flip, -low, high)
    with np.errstate(divide="ignore", invalid="ignore"):
        upper = log_ndtr(b)
        return np.asarray(upper + np.log1p(-np.exp(np.minimum(log_ndtr(a) - upper, 0.0))))


def log_mean(values: Array) -> float:
    """log of the mean of e^{values}."""
    peak = float(np.max(values))
    return peak if peak in (-math.inf, math.inf) else peak + math.log(np.exp(values - peak).mean())


def record(
    log_risks: Array, pi: float, threshold: float, tau: float | None, *, paired: bool = False
) -> OracleError:
    """The mean of independent risks; `paired`, neighbors are draws from neighboring strata.

    No error is above min(π, 1 − π): a rule may always answer the same.
    """
    level = log_mean(log_risks)
    if level == -math.inf:
        return OracleError(0.0, 0.0, threshold, tau)
    risk, n = np.exp(log_risks - level), len(log_risks)
    spread = risk.std(ddof=1) / math.sqrt(n)
    if paired:
        spread = math.sqrt(float(((risk[::2] - risk[1::2]) ** 2).sum())) / n
    error = math.exp(level)
    return OracleError(min(error, pi, 1 - pi), float(spread) * error, threshold, tau)
