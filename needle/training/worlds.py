"""Two worlds in which a first-order method can run: the tokens themselves, and their limit.

Such a method sees the data only through **field**, A ↦ X_i A, and **pull**, F ↦ (1/n) Σ X_iᵀ F_i.
Written with these two it runs on literal tokens and, unchanged, in the limit n = αd, d → ∞.

There a vector is its coordinates in an orthonormal basis: the needle directions, the starts, then
one new direction for each pull. The projections of a bag's tokens on the direction e_j are

    H_j = z_j + f_j/α   (+ θ on the needles of that direction),   z_j ~ N(0, I_L) fresh,

where f_j, the bag's own share in e_j, is 0 for needle directions and starts. With
⟨⟨f, h⟩⟩ = (1/α) E Σ_ℓ f_ℓ h_ℓ the pull of F has the coordinate E⟨H_j, F⟩ on each e_j there is;
what ⟨⟨·,·⟩⟩ leaves of F across all f_j makes a new direction, whose coordinate is the length of
that rest and whose own f is the rest at length 1. Chapter 8, thm-8-worlds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from scipy.special import softmax

from ..data.tokens import SparseTokens
from ..kit.records import ConvergenceError
from ..kit.threads import in_one_thread
from ..readout.seen import Seen

Array = np.ndarray
_ROWS, _MEMORY = 64, 2**28  # rows of a block; numbers in single precision that all blocks may hold


class World(Protocol):
    """Labels y (n,), their weights (n,), and the three things a first-order method may ask for."""

    y: Array
    weight: Array

    def start(self, lengths: Sequence[float], lean: Array | None = None) -> Array:
        """Vectors (k, D) of these lengths in random directions; of cosines (k, kinds) if given."""

    def origin(self, count: int) -> Array:
        """Vectors of length 0, (count, D)."""

    def field(self, A: Array) -> Array:
        """X_i a for each bag and each of k vectors: (k, n, L) from (k, D)."""

    def pull(self, F: Array) -> Array:
        """(1/n) Σ X_iᵀ F_i: (k, D) from (k, n, L)."""


class TokenWorld:
    """Tokens (n, L, d) as they are; the needle direction is the first axis.

    >>> world = TokenWorld(np.ones((2, 3, 4)), np.array([1.0, -1.0]))
    >>> world.pull(world.field(np.eye(4)[:1])).tolist()
    [[3.0, 3.0, 3.0, 3.0]]
    """

    def __init__(self, X: Array, y: Array, rng: np.random.Generator | None = None) -> None:
        self.y, self.weight = y, np.full(len(y), 1 / len(y))
        self._X, self._shape, self._rng = X.reshape(-1, X.shape[2]), X.shape, rng

    def origin(self, count: int) -> Array:
        return np.zeros((count, self._shape[2]))

    def start(self, lengths: Sequence[float], lean: Array | None = None) -> Array:
        assert self._rng is not None
        A = self._rng.normal(size=(len(lengths), self._shape[2]))
        if lean is not None:
            kinds = lean.shape[1]
            A[:, :kinds] = 0
            A *= (np.sqrt(1 - (lean**2).sum(axis=1)) / np.linalg.norm(A, axis=1))[:, None]
            A[:, :kinds] = lean
        return A * (np.asarray(lengths) / np.linalg.norm(A, axis=1))[:, None]

    @in_one_thread
    def field(self, A: Array) -> Array:
        out = self._X @ A.T.astype(self._X.dtype)
        return np.ascontiguousarray(out.T).reshape(len(A), *self._shape[:2])

    @in_one_thread
    def pull(self, F: Array) -> Array:
        out = F.reshape(len(F), -1).astype(self._X.dtype) @ self._X
        return np.asarray(out, dtype=float) / self._shape[0]


class Limit:
    """The limit d → ∞ on a population of bags, all of whose fields are kept.

    Expectations are means over the population. Every z_j, and every F, is written in one
    orthonormal set of functions of (bag, token): the needles, the straws of either class, the z_j
    and what is new in each F. So each z_j has exactly the mean, the length and the angles to all
    that came before it which it has in expectation, and a step costs three readings of the set.
    A pull whose rest is below `tolerance` of its square makes no new direction.

    Parameters
    ----------
    model, alpha : the tokens, and n/d
    bags, rng : size of the population, and its randomness
    room : the largest number of directions
    kinds : kinds of needles; a positive bag has one kind, each as often
    response : False leaves f_j/α out of the fields: no bag then sees its own share
    """

    def __init__(
        self, model: SparseTokens, alpha: float, bags: int, rng: np.random.Generator, room: int,
        *, kinds: int = 1, response: bool = True, tolerance: float = 1e-5,
    ) -> None:  # fmt: skip
        L, most = model.L, bags - kinds
        each = min(max(1, round(model.pi * bags / kinds)), most // kinds)
        kind = np.arange(bags) // each  # from `kinds` on: negatives
        positive = kind < kinds
        self.y = np.where(positive, 1.0, -1.0)
        share = model.pi / (kinds * each), (1 - model.pi) / (bags - kinds * each)
        self.weight = np.where(positive, *share)
        self._root = np.sqrt(self.weight).astype(np.float32)[:, None]
        self._alpha, self._L, self._rng = alpha, L, rng
        self._response, self._tolerance = response, tolerance
        self._blocks, self._rows, self._directions = list[Array](), 0, 0
        self._H = np.zeros((room, kinds + 2 + 2 * room))  # coordinates of H_j and of f_j/√α
        self._f = np.zeros_like(self._H)
        needle = np.arange(L) < model.R
        height = model.theta * math.sqrt(model.pi * model.R / kinds)
        marks = [(kind == k)[:, None] & needle for k in range(kinds)]
        for mark in (*marks, positive[:, None] & ~needle, np.outer(~positive, np.ones(L, bool))):
            if mark.any():
                self._append((mark * self._root).ravel())
        for k in range(kinds):
            self._direction()
            self._H[k, k] = height

    @property
    def directions(self) -> int:
        """How many there are so far."""
        return self._directions

    def origin(self, count: int) -> Array:
        return np.zeros((count, len(self._H)))

    def start(self, lengths: Sequence[float], lean: Array | None = None) -> Array:
        A = self.origin(len(lengths))
        cosines = np.zeros((len(lengths), 1)) if lean is None else lean
        for a, length, known in zip(A, lengths, cosines, strict=True):
            a[: len(known)] = length * known
            a[self._directions] = length * math.sqrt(1 - known @ known)
            self._direction()
        return A

    @in_one_thread
    def field(self, A: Array) -> Array:
        seen = A @ self._H
        if not self._response:
            seen -= A @ self._f / math.sqrt(self._alpha)
        fields = self._expand(seen).reshape(len(A), -1, self._L)
        fields /= self._root
        return fields

    @in_one_thread
    def pull(self, F: Array) -> Array:
        G = (F * self._root).reshape(len(F), -1).astype(np.float32)
        least = self._tolerance * np.einsum("kn,kn->k", G, G, dtype=float)
        C = self._project(G)
        new = np.flatnonzero(least / self._tolerance - ((C @ self._f.T) ** 2).sum(axis=1) > least)
        if new.size:
            C = self._extended(G, C, new)
        for k in new:
            rest = C[k]
            for _ in range(2):  # the first time leaves rounding, which would grow
                rest = rest - (self._f @ rest) @ self._f
            if (square := rest @ rest) > least[k]:
                self._direction(rest / math.sqrt(square))
        return C @ self._H.T

    def seen(self, q: Array) -> Seen:
        """The features of the bags behind softmax(Xq), a row of means for each direction."""
        s = softmax(self.field(q[None])[0], axis=-1)
        shape, D = s.shape, self._directions
        along = [
            np.einsum("nl,nl->n", s, (self._expand(h[None]).reshape(shape)) / self._root)
            for h in self._H[:D]
        ]
        taken = [
            np.einsum("nl,nl->n", s, (self._expand(f[None]).reshape(shape)) / self._root)
            for f in self._f[:D]
            if f.any()
        ]
        G = self._rng.standard_normal(len(s))
        r = np.sqrt(np.einsum("nl,nl->n", s, s, dtype=float))
        still = np.zeros(len(s))  # `Seen` wants a last direction whose noise is in G
        means = np.array([*along, still], dtype=float)
        return Seen(self.y, means, r, np.array(taken, dtype=float), G, self.weight)

    def _extended(self, G: Array, C: Array, new: Array) -> Array:
        """Coordinates of G once what is new in it has rows of its own."""
        G = G - self._expand(C)
        again = self._project(G)
        C, G = C + again, G - self._expand(again)
        first = self._rows
        for k in new:
            for row in range(first, self._rows):
                C[k, row] = G[k] @ self._row(row)
                G[k] -= np.float32(C[k, row]) * self._row(row)
            size = float(np.linalg.norm(G[k]))
            if size > 1e-6 * float(np.linalg.norm(C[k])):
                C[k, self._rows] = size
                self._append(G[k])
        return C

    def _direction(self, f: Array | None = None) -> None:
        """One more direction, with noise of its own across all there is."""
        g = self._rng.standard_normal((1, self.y.size * self._L), dtype=np.float32)
        g -= self._expand(self._project(g))
        self._append(g[0])
        H = self._H[self._directions]
        H[self._rows - 1] = math.sqrt(self._L)
        if f is not None:
            self._f[self._directions] = f
            H += f / math.sqrt(self._alpha)
        self._directions += 1

    def _append(self, row: Array) -> None:
        if self._rows % _ROWS == 0:
            if (self._rows + _ROWS) * row.size > _MEMORY:
                raise ConvergenceError(
                    f"{self._rows} functions of {row.size} tokens fill the memory: take fewer bags"
                )
            self._blocks.append(np.empty((_ROWS, row.size), dtype=np.float32))
        self._blocks[-1][self._rows % _ROWS] = row / np.linalg.norm(row)
        self._rows += 1

    def _row(self, row: int) -> Array:
        return self._blocks[row // _ROWS][row % _ROWS]

    def _project(self, G: Array) -> Array:
        C = np.zeros((len(G), self._H.shape[1]))
        for k, block in enumerate(self._blocks):
            filled = block[: self._rows - k * _ROWS]
            C[:, k * _ROWS : k * _ROWS + len(filled)] = G @ filled.T
        return C

    def _expand(self, C: Array) -> Array:
        C = C.astype(np.float32)
        out = np.zeros((len(C), self._blocks[0].shape[1]), dtype=np.float32)
        for k, block in enumerate(self._blocks):
            filled = block[: self._rows - k * _ROWS]
            out += C[:, k * _ROWS : k * _ROWS + len(filled)] @ filled
        return out
