"""Where are the needles, given a noisy view of every token? The channel of one positive bag.

A learner whose estimate has squared cosine m with ξ sees each token of a positive bag through its
projection, which has the signal-to-noise ratio s = θ²m. The weight that the posterior over
R-subsets puts on a token, given the fields s v_ℓ + √s g_ℓ, is softmax attention for R = 1. Two
functions of s are all that Chapter 9 needs of it:

    W(s) = E[weight on a needle],   Ψ(s) = E log(e_R(w)/C(L, R)),   Ψ' = ½ R W,

where the token weights are w_ℓ = exp(s v_ℓ + √s g_ℓ − s/2). Nothing here is random at run time:

* **R = 1 is a race.** A softmax weight is the probability to win when every log weight gets Gumbel
  noise of its own. So W = ∫ f(u − s) F(u)^{L−1} du with F, f the law of √s g + Gumbel: one
  integral at every L, good to 1e-8.
* **R > 1 by one needle against the rest.** Given all other tokens the weight on a needle is
  sigmoid(s + √s g + y), y = log(e_{R−1}/e_R)(rest), and its mean over g is one integral. The law of
  y comes from a fixed quasi-random net of bags: the largest straws exactly, the others in groups.
  W is good to 1e-4. Beyond R = 40 the net is that of `needle.learning.crowd`, where W is good to
  5e-5.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.interpolate import CubicSpline, make_interp_spline
from scipy.special import betaln, log_expit, log_ndtr, ndtr, ndtri
from scipy.stats import qmc

from ..kit.checks import check_integer
from ..kit.nodes import normal_grid
from .crowd import Crowd

Array = np.ndarray
STEP = 0.5  # of the trapezoidal rules: their error is exp(−π²/STEP) and less
COARSE, MASS = normal_grid(np.arange(-9.5, 9.51, 0.25))
TOP, GROUPS = 48, 12  # straws drawn one by one, and groups of the others
FAR = 25.0  # strengths beyond which products of weights leave the range of numbers
STRONGEST = 1e6  # beyond it nothing changes but rounding
LARGEST_R = 40  # beyond it `Crowd` instead of `Handful`
RARE = 0.02  # errors, as shares of guessing, below which needles are drawn where they are missed
FAINT = 1e-3  # strengths below which a crowd of needles is seen by its sum alone


def log_subsets(L: int, R: int) -> float:
    """log C(L, R), to full precision also where L is 10¹² and R is 1."""
    if R > 10**4:
        return float(-betaln(R + 1, L - R + 1) - math.log(L + 1))
    return float(np.log(np.arange(L, L - R, -1.0) / np.arange(1, R + 1)).sum())


def _gumbel(z: Array) -> Array:
    """Density of the standard Gumbel law."""
    with np.errstate(over="ignore"):
        return np.exp(-z - np.exp(-z))


def race(L: int, s: float) -> float:
    """W(s) for R = 1: the probability that the needle wins the race against L − 1 straws."""
    r, log_L = math.sqrt(s), math.log(L)
    u = np.arange(s - 9 * r - 5, max(log_L + s / 2, s + 9 * r) + 28, STEP)
    if r < 1:
        f = _gumbel((u - s)[:, None] - r * COARSE) @ MASS
        with np.errstate(over="ignore"):
            late = -np.expm1(-np.exp(r * COARSE - u[:, None])) @ MASS
    else:
        z = np.arange(-5, max(40, log_L - s / 2 + 30 + 6 * r), STEP)
        kernel, x = _gumbel(z) * STEP, (u[:, None] - z) / r
        late = ndtr(-x) @ kernel
        f = np.exp(-((x - r) ** 2) / 2) @ kernel / (r * math.sqrt(2 * math.pi))
    with np.errstate(divide="ignore"):
        first = np.exp((L - 1) * np.log1p(-np.minimum(late, 1)))
    return min(1.0, STEP * float(f @ first))


def _needle(r: float, t: Array) -> Array:
    """log E sigmoid(t + r g), g ~ N(0, 1)."""
    grid = np.linspace(t.min(), t.max() + 1e-9, 60 + int(5 * np.ptp(t)))
    if r < 1:
        values = np.exp(log_expit(grid[:, None] + r * COARSE)) @ MASS
    else:
        z = np.arange(-60, 40, STEP)
        kernel = np.exp(log_expit(z) + log_expit(-z)) * STEP
        values = ndtr((grid[:, None] + z) / r) @ kernel
        low = grid < -30  # there sigmoid(t) = eᵗ
        values[low] = np.exp(grid[low] + r**2 / 2 + log_ndtr(-grid[low] / r - r))
    return CubicSpline(grid, np.log(values))(t)


def _log_symmetric(rows: Array, count: Array, R: int) -> tuple[Array, Array]:
    """log e_{R−1} and log e_R of weights e^rows, whatever their range; several to a row."""
    log_e = np.full((R + 1, rows.shape[1]), -np.inf)
    log_e[0] = 0
    with np.errstate(divide="ignore", invalid="ignore"):
        for u, c in zip(rows, count, strict=True):
            ways = np.log([max(c - k, 0) / (k + 1) for k in range(R if c > 1 else 1)]).cumsum()
            for k in range(R, 0, -1):
                for j, way in enumerate(ways[:k], 1):
                    log_e[k] = np.logaddexp(log_e[k], log_e[k - j] + way + j * u)
    return log_e[R - 1], log_e[R]


class Handful:
    """A net of bags: `straws` noise tokens and `needles` signal tokens, the same at every s.

    The TOP largest straws are exact, in order; the others stand in GROUPS groups, finer towards the
    top, whose mean weights are exact, and the sum of their weights has the exact variance.
    """

    def __init__(self, straws: int, needles: int) -> None:
        self.straws, self.needles, top = straws, needles, min(straws, TOP)
        size = 12 if needles < 12 else 10  # many needles average
        net = qmc.Sobol(needles + top + 1, rng=7).random_base2(size).T
        self.g = ndtri(net[:needles])
        beyond, above = [], np.zeros(1)  # upper tail probabilities of the ordered straws
        for k, uniform in enumerate(net[needles:-1]):
            above = above - (1 - above) * np.expm1(np.log(uniform) / (straws - k))
            beyond.append(above)
        tail = np.array(beyond).reshape(top, -1)
        self.top, self.others = -ndtri(tail), straws - top
        self.spread = ndtri(net[-1])
        if self.others:
            share = min(0.5, 8 / self.others) ** (np.arange(GROUPS) / GROUPS)  # above each edge
            self.share = share - np.append(share[1:], 0)
            low = (1 - share)[:, None] * (1 - tail[-1])
            self.edges = np.concatenate([ndtri(low), self.top[-1:]])

    def log_weights(self, r: float) -> tuple[Array, Array]:
        """Log weights −s/2 left out (tokens, bags), and how many tokens each row stands for."""
        rows = [r * r + r * self.g, r * self.top]
        count = [1.0] * (self.needles + len(self.top))
        if self.others:
            mass = np.diff(ndtr(self.edges - r), axis=0) / self.share[:, None]
            mean = r * r / 2 + np.log(np.maximum(mass / ndtr(self.edges[-1]), 1e-300))
            first, second = (ndtr(self.edges[-1] - k * r) / ndtr(self.edges[-1]) for k in (1, 2))
            ratio = np.divide(second, first**2, out=np.ones_like(first), where=first > 1e-150)
            variance = np.maximum(math.exp(min(r * r, 700)) * ratio - 1, 0)
            wobble = np.log1p(variance / self.others)
            rows.append(mean + np.sqrt(wobble) * self.spread - wobble / 2)
            count += list(self.others * self.share)
        return np.concatenate(rows), np.array(count)

    def log_e(self, r: float, R: int) -> tuple[Array, Array]:
        """log e_{R−1} and log e_R of the weights of every bag (−∞ for want of tokens)."""
        rows, count = self.log_weights(r)
        straws = rows[self.needles :]  # weights in units that keep every e_k in range
        scale = straws.max(axis=0)
        scale = scale + np.log(count[self.needles :] @ np.exp(straws - scale) / R)
        if self.needles:
            scale = np.maximum(scale, rows[: self.needles].mean(axis=0))
        if r > FAR:
            low, high = _log_symmetric(rows - scale, count, R)
            return low + (R - 1) * scale, high + R * scale
        e = np.zeros((R + 1, rows.shape[1]))
        e[0] = 1
        for w, c in zip(np.exp(rows - scale), count, strict=True):
            if c == 1:
                e[1:] += w * e[:-1]
                continue
            powers = np.cumprod([(c - k) / (k + 1) * w for k in range(R)], axis=0)
            for k in range(R, 0, -1):
                e[k] += sum(powers[j - 1] * e[k - j] for j in range(1, k + 1))
        with np.errstate(divide="ignore"):
            low, high = np.log(e[R - 1 :])
        return low + (R - 1) * scale, high + R * scale


class Channel:
    """W and Ψ of bags of L tokens with R needles, tabulated once on 0 ≤ √s ≤ √(2 log L) + 11.

    Beyond the table the needles are found: W = 1 and Ψ = Rs/2 − log C(L, R), to 1e-8.
    """

    def __init__(self, L: int, R: int) -> None:
        self.L, self.R = L, R
        self.subsets = log_subsets(L, R)
        self.end = math.sqrt(2 * math.log(L)) + 11
        if R in (1, L):
            nodes = np.linspace(0, self.end, 160)
            weights = [1.0 if R == L else race(L, r * r) for r in nodes]
        else:
            bags = (Crowd if R > LARGEST_R else Handful)(L - R, R - 1)
            nodes, weights = np.linspace(0, self.end, 72), [R / L]
            for r in nodes[1:]:  # a crowd is tedious: where all are found, that is known
                found = R > LARGEST_R and weights[-1] > 1 - 1e-10
                weights.append(1.0 if found else _rest(bags, r, R))
        self._log_weight = make_interp_spline(nodes, np.log(np.minimum(weights, 1)), k=5)
        x, w = np.polynomial.legendre.leggauss(6)
        cells = np.linspace(0, self.end, 400)
        half = np.diff(cells)[:, None] / 2
        r = cells[:-1, None] + half * (1 + x)
        slope = half * w * r * R * np.exp(np.minimum(self._log_weight(r), 0))
        self._free = make_interp_spline(cells, np.append(0, np.cumsum(slope.sum(axis=1))), k=5)

    def log_weight(self, s: Array | float) -> Array:
        """log W(s)."""
        r = np.sqrt(np.asarray(s, dtype=float))
        inside = np.minimum(self._log_weight(np.minimum(r, self.end)), 0)
        return np.where(r < self.end, inside, 0.0)

    def free(self, s: Array | float) -> Array:
        """Ψ(s)."""
        s = np.asarray(s, dtype=float)
        inside = self._free(np.minimum(np.sqrt(s), self.end))
        beyond = self._free(self.end) + self.R / 2 * (s - self.end**2)
        return np.where(s < self.end**2, inside, beyond)

    def slope(self, s: Array | float) -> Array:
        """d log W/ds, for s > 0."""
        r = np.sqrt(np.asarray(s, dtype=float))
        inside = self._log_weight(np.minimum(r, self.end), 1) / (2 * r)
        return np.where(r < self.end, inside, 0.0)


def _rest(bags: Handful | Crowd, r: float, R: int) -> float:
    """W at s = r²: one needle against the rest of the bag."""
    low, high = bags.log_e(r, R)
    weights = np.exp(_needle(r, r * r + low - high))
    return bags.mean(weights, r, R) if isinstance(bags, Crowd) else float(weights.mean())


@lru_cache(maxsize=64)
def channel(L: int, R: int) -> Channel:
    """The tabulated channel of bags of L tokens with R needles."""
    return Channel(check_integer("L", L, 2), check_integer("R", R, 1, L))
