"""Bags with many needles: the two symmetric sums behind the posterior, for R beyond forty.

Keep each token on its own with odds e^x w. Then e_k(w) = P(k kept) e^{−kx} Π(1 + e^x w), at any
x; P is an integral of the characteristic function over a circle, and with R − ½ tokens kept on
average eight nodes give nine digits. What is kept depends on the lowest needles and the highest
straws one by one, on all others only in bulk. So a bag of the fixed quasi-random net is made of

* the EXTREME lowest needles and highest straws, in order, exactly;
* the others as Gauss–Legendre nodes of their truncated normal law, with the Gaussian fluctuations
  of the number kept and of log Π(1 + e^x w), whose covariance is exact.

Means over the net use the number kept at one common x, whose mean and variance are known, as a
control variate: what remains of W is good to 5·10⁻⁵ of it. Appendix E, eq-e-kept and lem-e-weight.
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import pairwise

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, log_expit, ndtri
from scipy.stats import qmc

from ..kit.nodes import normal_grid

Array = np.ndarray
Bulk = tuple[Array, Array]  # log weights (nodes, bags), and how many tokens each stands for
EXTREME, SIZE, CIRCLE = 48, 10, 8
NODE, SHARE = np.polynomial.legendre.leggauss(8)
WIDTH, LOWEST = 3.0, -7.0  # of the panel next to the extreme tokens, and where the last one ends
FINE, MASS = normal_grid(np.arange(-9.5, 9.51, 0.05))


class _Side:
    """The fields g of one kind of token; `sign` says whether its highest or lowest are extreme."""

    def __init__(self, tokens: int, net: Array, chance: Array, sign: float) -> None:
        self.tokens, self.signal, self.chance = tokens, (1 - sign) / 2, ndtri(chance)
        beyond, above = [], np.zeros(net.shape[1])  # upper tail probabilities, in order
        for k, uniform in enumerate(net[: min(tokens, EXTREME)]):
            above = above - (1 - above) * np.expm1(np.log(uniform) / (tokens - k))
            beyond.append(above)
        self.extreme = -sign * ndtri(np.array(beyond))
        self.others = tokens - len(beyond)
        last = -ndtri(above)
        panels = 1 + max(1, math.ceil((float(last.max()) - WIDTH - LOWEST) / (WIDTH + 1)))
        depth = np.append(np.linspace(LOWEST, last - WIDTH, panels), last[None], axis=0)
        nodes, mass = [], []
        for low, high in pairwise(depth):
            nodes.append(low + (high - low) * (1 + NODE[:, None]) / 2)
            mass.append((high - low) * SHARE[:, None] * np.exp(-(nodes[-1] ** 2) / 2))
        count = np.concatenate(mass)
        self.nodes = sign * np.concatenate(nodes)
        self.share = count / count.sum(axis=0)

    def shaken(self, r: float, x: Array) -> tuple[Array, Array, Array]:
        """Log weights and counts of the others with the number kept fluctuating, and the rest.

        The rest is what the fluctuation of log Π(1 + e^x w) is more than that of these weights.
        """
        rows = r * r * self.signal + r * self.nodes
        u, count = x + rows, self.others * self.share
        kept, log = expit(u), -log_expit(-u)
        off, of = kept - (self.share * kept).sum(axis=0), log - (self.share * log).sum(axis=0)
        vk, vl, both = (np.sum(count * a * b, axis=0) for a, b in ((off, off), (of, of), (off, of)))
        spread = count * kept * (1 - kept)
        slope = np.maximum(spread.sum(axis=0), 1e-100)
        wobble = np.log1p(np.minimum(vk / slope / slope, 1))  # beyond, the extreme ones decide
        bend = (spread * (1 - 2 * kept)).sum(axis=0) / slope  # −1 where nearly all are kept
        shift = np.sqrt(wobble) * self.chance[0] - bend * wobble / 2
        alone = np.sqrt(np.maximum(vl * vk - both**2, 0)) * self.chance[1]
        moved = (both * self.chance[0] + alone) / np.sqrt(np.maximum(vk, 1e-250))
        return rows + shift, count, moved + (count * (log + log_expit(-u - shift))).sum(axis=0)


def _kept(one: Array, bulk: list[Bulk], x: Array | float) -> tuple[Array, Array]:
    """Mean and variance of the number of tokens kept."""
    p = expit(x + one)
    mean, variance = p.sum(axis=0), (p * (1 - p)).sum(axis=0)
    for rows, count in bulk:
        q = expit(x + rows)
        mean, variance = (
            mean + (count * q).sum(axis=0),
            variance + (count * q * (1 - q)).sum(axis=0),
        )
    return mean, variance


def _balance(one: Array, bulk: list[Bulk], goal: float, x: Array) -> Array:
    """x at which about `goal` tokens are kept: near enough for the circle, which asks no more."""
    rows = [one, *(rows for rows, _ in bulk)]
    low = np.full(x.shape, -max(part.max() for part in rows) - 60)
    high = np.full(x.shape, 60 - min(part.min() for part in rows))
    for _ in range(200):
        mean, variance = _kept(one, bulk, x)
        low, high = np.where(mean < goal, x, low), np.where(mean < goal, high, x)
        y = x + np.clip((goal - mean) / np.maximum(variance, 1e-250), -4, 4)
        y = np.where((y <= low) | (y >= high), (low + high) / 2, y)
        x, moved = y, np.abs(y - x).max()
        if moved < 1e-2:
            break
    return x


class Crowd:
    """A net of bags: `straws` noise tokens and `needles` signal tokens, the same at every s."""

    def __init__(self, straws: int, needles: int, size: int = SIZE) -> None:
        net = qmc.Sobol(2 * EXTREME + 4, rng=7).random_base2(size).T
        net = np.clip(net, 1e-12, 1 - 1e-12)
        kinds = ((straws, net[4::2], net[:3:2], 1.0), (needles, net[5::2], net[1:4:2], -1.0))
        self.sides = [_Side(*kind) for kind in kinds if kind[0]]
        self.bags = net.shape[1]
        self._tilt = lru_cache(maxsize=1)(self._tilted)

    def _common(self, r: float, goal: float) -> tuple[float, float]:
        """The x at which `goal` tokens are kept in the mean over all bags, and their variance."""

        def each(x: float) -> list[tuple[int, Array]]:
            fields = r * FINE
            return [(one.tokens, expit(x + r * r * one.signal + fields)) for one in self.sides]

        def gap(x: float) -> float:
            return sum(tokens * float(MASS @ p) for tokens, p in each(x)) - goal

        x = float(brentq(gap, -r * r - 10 * r - 60, 10 * r + 60))
        return x, sum(n * float(MASS @ p**2 - (MASS @ p) ** 2) for n, p in each(x))

    def _tilted(self, r: float, R: int) -> tuple[Array, list[Bulk], Array, Array]:
        """Extreme tokens, the others, x, and what the others add to log Π(1 + e^x w)."""
        one = np.concatenate([r * r * side.signal + r * side.extreme for side in self.sides])
        many = [side for side in self.sides if side.others]
        still = [(r * r * side.signal + r * side.nodes, side.others * side.share) for side in many]
        x = _balance(one, still, R - 0.5, np.full(self.bags, self._common(r, R - 0.5)[0]))
        shaken = [side.shaken(r, x) for side in many]
        extra = sum((moved for *_, moved in shaken), np.zeros(self.bags))
        return one, [(rows, count) for rows, count, _ in shaken], x, extra

    def log_e(self, r: float, R: int) -> tuple[Array, Array]:
        """log e_{R−1} and log e_R of the weights of every bag, the factors e^{−s/2} left out."""
        one, bulk, x, log = self._tilt(r, R)
        width = _kept(one, bulk, x)[1]
        step = np.minimum(math.pi, 6.5 / np.sqrt(np.maximum(width, 0.1))) / CIRCLE
        t = step * np.arange(CIRCLE + 1)[:, None]
        turn, back, sine = np.expm1(1j * t), 2 * np.sin(t / 2) ** 2, np.sin(t)
        phi, size, angle = np.ones_like(turn), np.zeros_like(t), -(R - 0.5) * t
        for p in expit(x + one):
            phi *= 1 + p * turn
        for rows, count in bulk:
            for q, c in zip(expit(x + rows), count, strict=True):
                size += c / 2 * np.log1p(-2 * q * (1 - q) * back)
                angle += c * np.arctan2(q * sine, 1 - q * back)
            log = log - (count * log_expit(-x - rows)).sum(axis=0)
        phi *= np.exp(size + 1j * angle)
        phi[[0, -1]] /= 2
        low, high = (
            np.log(np.maximum((phi * np.exp(k * t)).real.sum(axis=0) * step / math.pi, 1e-250))
            for k in (0.5j, -0.5j)
        )
        log = log - log_expit(-x - one).sum(axis=0)
        return low + log - (R - 1) * x, high + log - R * x

    def mean(self, values: Array, r: float, R: int) -> float:
        """The mean of a function of the bags, with the number kept as control variate."""
        x, variance = self._common(r, R - 0.5)
        one, bulk, *_ = self._tilt(r, R)
        off = _kept(one, bulk, x)[0] - (R - 0.5)
        controls = np.stack([np.ones_like(off), off, off**2 - variance], axis=1)
        return float(np.linalg.lstsq(controls, values, rcond=None)[0][0])
