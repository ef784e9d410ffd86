"""The data: a weak signal hidden in a few of many tokens."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..kit.checks import check_integer, check_is, check_real, check_rng


class Tokens(NamedTuple):
    """A batch: tokens X (n, L, d), labels y ∈ {−1, +1} (n,), signal positions `where` (n, L)."""

    X: np.ndarray
    y: np.ndarray
    where: np.ndarray


@dataclass(frozen=True)
class SparseTokens:
    """Sparse-token classification: X = θ v ξᵀ 1[y = +1] + Z, with v a random R-subset of L tokens.

    Parameters
    ----------
    L : tokens in a sample (≥ 2)
    R : signal tokens in a positive sample (1 ≤ R ≤ L)
    theta : signal strength θ ≥ 0, in units of the noise on one coordinate
    pi : probability π of a positive sample, 0 < π < 1

    Examples
    --------
    >>> model = SparseTokens(L=100, R=2, theta=3.0, pi=0.5)
    >>> model.snr
    0.6
    >>> X, y, where = model.sample(5, 20, np.random.default_rng(0))
    >>> X.shape, int(where[y > 0].sum(axis=1).max())
    ((5, 100, 20), 2)
    """

    L: int
    R: int
    theta: float
    pi: float

    def __post_init__(self) -> None:
        L = check_integer("L", self.L, 2)
        object.__setattr__(self, "L", L)
        object.__setattr__(self, "R", check_integer("R", self.R, 1, L))
        object.__setattr__(self, "theta", check_real("theta", self.theta, 0))
        pi = check_real("pi", self.pi, 0, 1, open_low=True, open_high=True)
        object.__setattr__(self, "pi", pi)

    @property
    def snr(self) -> float:
        """δ = θR/√L, the distance between the classes after averaging all tokens."""
        return self.theta * self.R / math.sqrt(self.L)

    def sample_labels(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draw n labels in {−1, +1} with P(+1) = π."""
        n, rng = check_integer("n", n, 1), check_rng(rng)
        return np.where(rng.random(n) < self.pi, 1, -1)

    def sample(self, n: int, d: int, rng: np.random.Generator) -> Tokens:
        """Draw n samples of L tokens in R^d; the signal direction ξ is the first basis vector.

        Any other ξ is a rotation away, and every learner in the book commutes with rotations.
        """
        d, y = check_integer("d", d, 1), self.sample_labels(n, rng)
        where, rows = np.zeros((len(y), self.L), dtype=bool), np.arange(len(y))
        for last in range(self.L - self.R, self.L):  # Floyd: all R-subsets are equally likely
            place = rng.integers(last + 1, size=len(y))
            place[where[rows, place]] = last
            where[rows, place] = True
        where &= y[:, None] > 0
        X = rng.standard_normal((len(y), self.L, d))
        X[:, :, 0] += self.theta * where
        return Tokens(X, y, where)


def check_model(model: object) -> SparseTokens:
    """Return `model` if it is a SparseTokens, or raise."""
    return check_is("model", model, SparseTokens)
