"""Bags of noise: the sums Σ f(g_ℓ) over many noise tokens, at a cost that does not grow with L.

The L − R noise tokens enter every statistic of `needle.oracle.separation` through sums.
`sample_noise` draws what those need: multinomial counts on narrow bins of the Gaussian, and the
extreme tokens of both tails one by one. Appendix A, alg-A-binned and prop-A-binning.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtr, ndtri

from ..kit.checks import check_choice, check_integer, check_rng

TAIL, BIN_WIDTH, STRATA, KEPT = 64, 0.05, 8, 2**24
_BLOCK = 2**18  # tokens drawn in one go
Function = Callable[[np.ndarray], np.ndarray]


def one(g: np.ndarray) -> np.ndarray:
    """f(g) = 1, for which `Noise.tilted` gives Σ e^{tilt·g}."""
    return np.ones((1, *g.shape))


@dataclass(frozen=True)
class Noise:
    """L − R noise tokens for each of many trials, and R free tokens (trials, strata, R).

    A negative and a positive sample share the bag and differ by θ on the free tokens, which are
    spread evenly: one in each of the `strata` equally likely intervals.
    """

    L: int
    R: int
    trials: int
    free: np.ndarray

    def tilted(self, tilt: float, f: Function) -> tuple[np.ndarray, np.ndarray]:
        """Σ f(g) e^{tilt·g} over each bag as a pair (log scale (trials,), sums (k, trials)).

        f maps tokens of any shape (…) to (k, …); the log scale is tilt × the largest token.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class _Direct(Noise):
    """Every token is drawn: few are kept, many are drawn again for each sum, in bounded memory."""

    seed: int

    def _blocks(self) -> Iterator[np.ndarray]:
        rng, n = np.random.default_rng(self.seed), self.L - self.R
        step = max(1, _BLOCK // n)
        for start in range(0, self.trials, step):
            yield rng.standard_normal((min(step, self.trials - start), n))

    @cached_property
    def _kept(self) -> list[np.ndarray]:
        return list(self._blocks()) if self.trials * self.L <= KEPT else []

    def tilted(self, tilt: float, f: Function) -> tuple[np.ndarray, np.ndarray]:
        scale, sums = [], []
        for g in self._kept or self._blocks():
            scale.append(tilt * g.max(axis=1))
            sums.append(np.einsum("kij,ij->ki", f(g), np.exp(tilt * g - scale[-1][:, None])))
        return np.concatenate(scale), np.concatenate(sums, axis=1)


@dataclass(frozen=True)
class _Binned(Noise):
    """Counts (trials, bins) on nodes (bins, 3), and tail tokens one after another from `start`."""

    counts: np.ndarray
    nodes: np.ndarray
    weight: np.ndarray
    tail: np.ndarray
    start: np.ndarray

    @cached_property
    def peak(self) -> np.ndarray:
        """The largest token of each bag."""
        return np.maximum.reduceat(self.tail, self.start)

    def tilted(self, tilt: float, f: Function) -> tuple[np.ndarray, np.ndarray]:
        if not len(self.tail):
            return np.full(self.trials, -np.inf), np.zeros((len(f(self.tail)), self.trials))
        scale = tilt * self.peak
        size = np.diff(self.start, append=np.intp(len(self.tail)))
        far = f(self.tail) * np.exp(tilt * self.tail - np.repeat(scale, size))
        sums = np.add.reduceat(far, self.start, axis=-1)
        if self.nodes.size:
            top = self.nodes.max()
            near = (f(self.nodes) * np.exp(tilt * (self.nodes - top)) * self.weight).sum(axis=-1)
            sums = sums + (self.counts @ near.T).T * np.exp(tilt * top - scale)
        return scale, sums


def sample_noise(
    L: int, R: int, trials: int, rng: np.random.Generator, *, method: str = "binned"
) -> Noise:
    """Draw the noise of `trials` samples; it can be reused for every θ, π, τ and kind.

    "binned" costs the same for L = 10³ and L = 10¹². About 2·TAIL extreme tokens are exact; the
    others are counted on bins of width BIN_WIDTH and enter with the mean of f over their bin. So
    means are exact, and of the variance of Σ e^{τg} a bin loses no more than a share
    (τ·BIN_WIDTH)²/12. "direct" draws all L − R tokens.

    >>> noise = sample_noise(10**12, 1, 1000, np.random.default_rng(0))
    >>> _, squares = noise.tilted(0.0, lambda g: g[None] ** 2)
    >>> bool(abs(squares.mean() / 1e12 - 1) < 1e-6)
    True
    """
    L, trials, rng = check_integer("L", L, 2), check_integer("trials", trials, 2), check_rng(rng)
    R, n = check_integer("R", R, 1, L), L - R
    strata = max(1, STRATA // R)
    level = (rng.permuted(np.tile(np.arange(strata), (trials, R, 1)), axis=2)).transpose(0, 2, 1)
    free = ndtri((level + rng.random(level.shape)) / strata)
    if check_choice("method", method, ("binned", "direct")) == "direct" and n:
        return _Direct(L, R, trials, free, int(rng.integers(2**63)))
    share = min(0.5, TAIL / max(n, 1))
    cut = -ndtri(share)
    edges = np.linspace(-cut, cut, 1 + math.ceil(2 * cut / BIN_WIDTH))
    order = np.argsort(np.abs(edges[:-1] + edges[1:]))[::-1]  # rare bins first: their p stays exact
    low, high = edges[:-1][order], edges[1:][order]
    counts = rng.multinomial(n, [share, share, *(ndtr(high) - ndtr(low))], size=trials)
    size = counts[:, :2].sum(axis=1).astype(np.intp)
    side = np.repeat(np.tile([1.0, -1.0], trials), counts[:, :2].ravel().astype(np.intp))
    tail = side * ndtri(share * rng.random(size.sum()))
    x, w = np.polynomial.legendre.leggauss(3)
    nodes = (low + high)[:, None] / 2 + (high - low)[:, None] / 2 * x
    weight = w * np.exp(-(nodes**2) / 2)
    weight /= weight.sum(axis=1, keepdims=True)
    start = np.cumsum(size) - size
    return _Binned(L, R, trials, free, counts[:, 2:].astype(float), nodes, weight, tail, start)
