"""Tokens in units of the noise: whitening by the negatives, with shrinkage, without copies.

Σ and m are covariance and mean of the tokens of negative bags, which hold noise alone. Σ is shrunk,

    Σ_ϱ = (1 − ϱ) Σ + ϱ v̄ I   (units "common"),      D((1 − ϱ) D⁻¹ΣD⁻¹ + ϱI)D   (units "own"),

towards equal variances v̄, or towards D² = diag Σ where every entry has units of its own; ϱ = 1 is
then what practitioners call standardizing. The ϱ of Ledoit and Wolf (2004) costs no second look at
the data but takes tokens as independent; one that cross-validation chose does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from ..kit.checks import check_choice, check_real
from .arrays import Array, Bags

_BLOCK = 2**20  # numbers looked at in one go
FLOOR, ROUNDING = 1e-10, 1e-8


class Whitening(NamedTuple):
    """x → (x − mean)·root: the tokens of negative bags have mean 0 and covariance about 1.

    `shrinkage` is the ϱ that was used; `trace` the mean of |z|² over the negatives' tokens.
    """

    mean: Array
    root: Array
    shrinkage: float
    trace: float

    def __call__(self, bags: Bags) -> Bags:
        """The whitened tokens, dense."""
        return bags.mapped((_dense(bags.tokens) - self.mean) @ self.root)

    def rows(self, averages: Array) -> Array:
        """Averages of tokens (n, d), weights adding to one, whitened."""
        return (averages - self.mean) @ self.root

    def heights(self, bags: Bags, q: Array) -> Array:
        """The heights ⟨q, z⟩ (N,) of the whitened tokens, without making these."""
        along = self.root @ q
        return bags.tokens @ along - self.mean @ along


class Moments(NamedTuple):
    """Mean, covariance and spread of tokens in chosen units, and the ϱ of Ledoit and Wolf."""

    mean: Array
    spread: Array
    value: Array
    vector: Array
    ledoit_wolf: float

    def whitening(self, shrinkage: float | None = None) -> Whitening:
        """The map for one ϱ (None: that of Ledoit and Wolf)."""
        rho = self.ledoit_wolf if shrinkage is None else check_real("shrinkage", shrinkage, 0, 1)
        shrunk = (1 - rho) * self.value + rho * self.value.mean()
        if not shrunk.max() > 0:
            return Whitening(self.mean, np.diag(1 / self.spread), float(rho), 0.0)
        flat = shrunk <= FLOOR * shrunk.max()  # what never varied is not blown up without bound
        shrunk = np.where(flat, self.value.mean(), shrunk)
        root = (self.vector / np.sqrt(shrunk)) @ self.vector.T / self.spread[:, None]
        return Whitening(self.mean, root, float(rho), float((self.value / shrunk).sum()))


def moments(bags: Bags, y: Array, units: str = "common") -> Moments:
    """Of the tokens of negative bags, in blocks of rows: memory d² and a block.

    >>> rng = np.random.default_rng(0)
    >>> tokens = rng.normal(size=(400, 3)) * [1.0, 10.0, 0.1]
    >>> bags = Bags(tokens, np.arange(0, 401, 4))
    >>> found = moments(bags, -np.ones(100), "own").whitening(1.0)
    >>> bool(np.allclose(found(bags).tokens.std(axis=0), 1))
    True
    """
    check_choice("units", units, ("common", "own"))
    silent = bags.take(y < 0).tokens
    N, d = silent.shape
    mean = np.asarray(silent.mean(axis=0)).ravel()
    gram = np.zeros((d, d))
    for block in _blocks(silent):
        block = block - mean
        gram += block.T @ block
    covariance, spread = gram / N, np.ones(d)
    if units == "own":
        spread = np.sqrt(np.diag(covariance))
        spread = np.where(spread > ROUNDING * np.abs(mean), spread, 1.0)  # 1 where all are equal
        covariance = covariance / spread / spread[:, None]
    fourth = sum(
        float(((((block - mean) / spread) ** 2).sum(axis=1) ** 2).sum())
        for block in _blocks(silent)
    )
    value, vector = np.linalg.eigh(covariance)
    value = np.maximum(value, 0)
    level, square = float(value.mean()), float((value**2).sum())
    beta, delta = (fourth / N - square) / (d * N), (square - d * level**2) / d
    share = min(max(beta, 0.0), delta) / delta if delta > 0 else 0.0
    return Moments(mean, spread, value, vector, share)


def whitening(
    bags: Bags, y: Array, shrinkage: float | None = None, units: str = "common"
) -> Whitening:
    """By the tokens of the negative bags; directions in which they do not vary keep the scale
    of an average one."""
    return moments(bags, y, units).whitening(shrinkage)


def _blocks(tokens: Array) -> Iterator[Array]:
    step = max(1, _BLOCK // tokens.shape[1])
    for start in range(0, tokens.shape[0], step):
        yield _dense(tokens[start : start + step])


def _dense(tokens: Any) -> Array:
    return tokens.toarray() if issparse(tokens) else tokens
