"""Tokens in units of the noise: whitening by the negatives, with shrinkage, without copies.

Σ and m are covariance and mean of the tokens of negative bags, which hold noise alone. Σ is shrunk,

    Σ_ϱ = (1 − ϱ) Σ + ϱ v̄ I   (units "common"),      D((1 − ϱ) D⁻¹ΣD⁻¹ + ϱI)D   (units "own"),

towards equal variances v̄, or towards D² = diag Σ where every entry has units of its own; ϱ = 1 is
then what practitioners call standardizing. The ϱ of Ledoit and Wolf (2004) costs no second look at
the data but takes tokens as independent; one that cross-validation chose does not.

Where the tokens are fewer than their entries nothing of size d × d is made: N directions carry all
that varies, the others keep one variance.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import issparse

from ..kit.checks import check_choice, check_real
from .arrays import Array, Bags

FLOOR, ROUNDING = 1e-10, 1e-8
ENOUGH, EACH = 2**15, 256  # tokens for a covariance: in all, and for each of their entries


@dataclass(frozen=True, eq=False)
class Whitening:
    """x → (x − mean)·root: the tokens of negative bags have mean 0 and covariance about 1.

    root = D⁻¹(c I + U diag(s − c) Uᵀ) with D = diag `spread`, U = `basis` (d, r), s = `inside` and
    c = `outside`; it is a matrix only where somebody asks for it. `shrinkage` is the ϱ that was
    used; `trace` the mean of |z|² over the negatives' tokens.
    """

    mean: Array
    spread: Array
    basis: Array
    inside: Array
    outside: float
    shrinkage: float
    trace: float

    @classmethod
    def identity(cls, d: int) -> Whitening:
        """Tokens stay as they are."""
        return cls(np.zeros(d), np.ones(d), np.zeros((d, 0)), np.zeros(0), 1.0, 0.0, float(d))

    @cached_property
    def _square(self) -> Array | None:
        d, r = self.basis.shape
        return (self.basis * self.inside) @ self.basis.T if 0 < d <= r else None

    def _turned(self, rows: Array) -> Array:
        """rows @ (c I + U diag(s − c) Uᵀ)."""
        if self._square is not None:
            return rows @ self._square
        return self.outside * rows + ((rows @ self.basis) * (self.inside - self.outside)) @ (
            self.basis.T
        )

    @property
    def root(self) -> Array:
        """The matrix (d, d)."""
        return self._turned(np.eye(len(self.mean))) / self.spread[:, None]

    def __call__(self, bags: Bags) -> Bags:
        """The whitened tokens, dense."""
        return bags.mapped(self.rows(_dense(bags.tokens)))

    def rows(self, averages: Array) -> Array:
        """Averages of tokens (n, d), weights adding to one, whitened."""
        return self.turned(averages - self.mean)

    def turned(self, rows: Array) -> Array:
        """rows · root, for differences of averages."""
        return self._turned(rows / self.spread)

    def pulled(self, q: Array) -> Array:
        """root · q, along which ⟨q, z⟩ = ⟨root·q, x − mean⟩; q is (d,) or (d, p)."""
        return (self._turned(q.T) / self.spread).T

    def heights(self, bags: Bags, q: Array) -> Array:
        """The heights ⟨q, z⟩ (N,) of the whitened tokens, without making these."""
        along = self.pulled(q)
        return bags.along(along) - self.mean @ along


@dataclass(frozen=True, eq=False)
class Moments:
    """Mean, spread and covariance of tokens in chosen units, and the ϱ of Ledoit and Wolf.

    `rows` are the centered tokens (N, d), where they are fewer than their entries, and None where
    the `gram` is their covariance (d, d); with rows it is (N, N).
    """

    mean: Array
    spread: Array
    level: float
    gram: Array
    rows: Array | None
    ledoit_wolf: float

    @cached_property
    def _eigen(self) -> tuple[Array, Array]:
        value, vector = np.linalg.eigh(self.gram)
        if self.rows is None:
            return np.maximum(value, 0), vector
        kept = value > FLOOR * max(value[-1], 0)
        value, vector = value[kept], vector[:, kept]
        return value, (self.rows.T @ vector) / np.sqrt(len(self.rows) * value)

    @property
    def value(self) -> Array:
        """Eigenvalues of the covariance; the smallest, all 0, may be left out."""
        return self._eigen[0]

    @property
    def vector(self) -> Array:
        """The directions of these eigenvalues, as columns."""
        return self._eigen[1]

    def whitening(self, shrinkage: float | None = None) -> Whitening:
        """The map for one ϱ (None: that of Ledoit and Wolf)."""
        rho = self.ledoit_wolf if shrinkage is None else check_real("shrinkage", shrinkage, 0, 1)
        d = len(self.mean)
        if not self.level > 0:
            nothing = np.zeros((d, 0)), np.zeros(0), 1.0
            return Whitening(self.mean, self.spread, *nothing, float(rho), 0.0)
        outside = self.level**-0.5  # what never varied is not blown up without bound
        if rho == 1:
            nothing = np.zeros((d, 0)), np.zeros(0), outside
            return Whitening(self.mean, self.spread, *nothing, 1.0, float(d))
        value, vector = self._eigen
        shrunk = (1 - rho) * value + rho * self.level
        if rho > 0:
            outside = (rho * self.level) ** -0.5
        shrunk = np.where(shrunk <= FLOOR * shrunk.max(), self.level, shrunk)
        trace = float((value / shrunk).sum())
        return Whitening(self.mean, self.spread, vector, shrunk**-0.5, outside, float(rho), trace)


def moments(bags: Bags, y: Array, units: str = "common", *, weight: Array | None = None) -> Moments:
    """Of the tokens of negative bags, in blocks of rows: memory d² and a block.

    With `weight` (n,) bags count that often, and those of weight 0 are not looked at. Fewer tokens
    than entries cost their square instead of d². Of more than 2¹⁵ tokens and 256 for each entry one
    in so many is looked at, from all bags alike: a covariance of m tokens in d dimensions takes the
    share d/m from the squared signal-to-noise ratio, here at most 1/256.

    >>> rng = np.random.default_rng(0)
    >>> tokens = rng.normal(size=(400, 3)) * [1.0, 10.0, 0.1]
    >>> bags = Bags(tokens, np.arange(0, 401, 4))
    >>> found = moments(bags, -np.ones(100), "own").whitening(1.0)
    >>> bool(np.allclose(found(bags).tokens.std(axis=0), 1))
    True
    """
    check_choice("units", units, ("common", "own"))
    d = bags.tokens.shape[1]
    count = np.where(y < 0, 1.0 if weight is None else weight, 0.0)[bags.owner]
    bags, count = _thinned(bags, count)
    total, seen = float(count.sum()), int((count > 0).sum())
    mean = np.zeros(d)
    for part, c in _blocks(bags, count):
        mean += c @ part / total
    square = np.zeros(d)
    for part, c in _blocks(bags, count):
        with np.errstate(over="ignore"):
            square += c @ (part - mean) ** 2 / total
    spread = np.ones(d)
    if units == "own":
        spread = np.sqrt(square)
        spread = np.where(spread > ROUNDING * np.abs(mean), spread, 1.0)  # 1 where all are equal
    if not np.isfinite(square).all():
        raise ValueError("bags are not allowed: squares of the tokens overflow; rescale the tokens")
    level = float((square / spread**2).mean())
    fourth, gram, rows = 0.0, np.zeros((d, d)) if seen >= d else None, []
    for part, c in _blocks(bags, count):
        part = (part - mean) / spread
        fourth += float(c @ (part**2).sum(axis=1) ** 2)
        weighted = part * np.sqrt(c / total)[:, None]
        if gram is None:
            rows.append(weighted * np.sqrt(seen))
        else:
            gram += weighted.T @ weighted
    kept = None
    if gram is None:
        kept = np.concatenate(rows)
        gram = kept @ kept.T / seen
    frobenius = float((gram**2).sum())
    beta, delta = (fourth / total - frobenius) / (d * total), (frobenius - d * level**2) / d
    share = min(max(beta, 0.0), delta) / delta if delta > 0 else 0.0
    return Moments(mean, spread, level, gram, kept, share)


def whitening(
    bags: Bags, y: Array, shrinkage: float | None = None, units: str = "common"
) -> Whitening:
    """By the tokens of the negative bags; directions in which they do not vary keep the scale
    of an average one."""
    return moments(bags, y, units).whitening(shrinkage)


def _thinned(bags: Bags, count: Array) -> tuple[Bags, Array]:
    """The tokens and their weights, or one of each so many where they are more than enough."""
    seen = np.flatnonzero(count)
    if (step := len(seen) // max(ENOUGH, EACH * bags.tokens.shape[1])) < 2:
        return bags, count
    first = np.arange(0, len(seen) - step + 1, step)
    kept = seen[first + np.random.default_rng(0).integers(step, size=len(first))]
    return Bags(bags.tokens[kept], np.arange(len(kept) + 1)), count[kept]


def _blocks(bags: Bags, count: Array) -> Iterator[tuple[Array, Array]]:
    """The tokens that count, dense and in doubles, a block at a time, with their weights."""
    for part in bags.pieces():
        kept = count[part] > 0
        if kept.any():
            whole = bool(kept.all())
            tokens = bags.tokens[part] if whole else bags.tokens[part][kept]
            yield _dense(tokens).astype(float, copy=False), count[part][kept]


def _dense(tokens: Any) -> Array:
    return tokens.toarray() if issparse(tokens) else tokens
