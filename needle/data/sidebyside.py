"""The vectorized classifier: all tokens of a bag side by side, Ld features.

Its law has the shape of all others (`needle.data.classifiers`); drawn bags keep their tokens.
Chapter 1, prop-1-law.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np

from ..kit.checks import check_array, check_real
from .law import FeatureLaw, Features, Scores, TwoGaussians
from .tokens import SparseTokens, check_model

Array = np.ndarray


@dataclass(frozen=True, eq=False, kw_only=True)
class _Vectorized(TwoGaussians):
    """All tokens side by side: theory sees two Gaussians, simulations the tokens themselves."""

    model: SparseTokens

    def sample(self, n: int, d: int, rng: np.random.Generator) -> Features:
        """Draw n samples of L tokens and lay each out as one vector of Ld entries."""
        tokens = self.model.sample(n, d, rng)
        return Features(tokens.X.reshape(len(tokens.y), -1), tokens.y)

    def scores(self, w: Array, b: float, rng: np.random.Generator | None = None) -> Scores:
        """The law of ⟨W, X⟩ + b: positives have mean θΣ_{ℓ∈S}⟨W_ℓ, ξ⟩ + b over R-subsets S.

        All subsets where there are at most 20,000; otherwise 20,000 (rounded up) drawn with a fixed
        seed as consecutive pieces of random orderings, so that each position is met equally often.
        """
        L, R, b = self.model.L, self.model.R, check_real("b", b)
        w = check_array("w", w, "Ld")
        if len(w) % L:
            raise ValueError(
                f"w of shape {w.shape} is not allowed: w must have Ld entries, L = {L}"
            )
        along = w.reshape(L, -1)[:, 0]
        if comb(L, R) <= 20_000:
            gain = along[list(combinations(range(L), R))].sum(axis=1)
        else:
            pieces = L // R
            orders = np.tile(along, (-(-20_000 // pieces), 1))
            orders = np.random.default_rng(0).permuted(orders, axis=1)
            gain = orders[:, : pieces * R].reshape(-1, R).sum(axis=1)
        y = np.append(np.ones(len(gain), dtype=int), -1)
        weight = np.append(np.full(len(gain), self.pi / len(gain)), 1 - self.pi)
        mean = np.append(self.theta * gain, 0.0) + b
        return Scores(y, mean, np.full(len(y), np.sqrt(w @ w)), weight)

    def signal(self, w: Array) -> float:
        """⟨W, 1ξᵀ⟩/√L."""
        L = self.model.L
        return float(w.reshape(L, -1)[:, 0].sum() / np.sqrt(L))


def vectorized(model: SparseTokens) -> FeatureLaw:
    """All Ld entries of X as features.

    By exchangeability of positions its trained readout tends to a multiple of 1ξᵀ plus noise, so
    `nodes` are two unit Gaussians at distance δ = θR/√L in Ld dimensions, while `sample` and
    `scores` treat the tokens themselves.

    Examples
    --------
    >>> law = vectorized(SparseTokens(L=16, R=2, theta=3.0, pi=0.5))
    >>> law.nodes.a.tolist(), law.copies
    ([0.5, 0.0], 16)
    >>> F, y = law.sample(5, 20, np.random.default_rng(0))
    >>> F.shape, law.scores(F[0], 0.0).mean.shape
    ((5, 320), (121,))
    """
    m = check_model(model)
    a = m.R / m.L**0.5
    return _Vectorized(
        name="vectorized", theta=m.theta, pi=m.pi, copies=m.L, model=m,
        positive=(a, 1.0), negative=(0.0, 1.0),
    )  # fmt: skip
