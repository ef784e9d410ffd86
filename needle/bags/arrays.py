"""Bags of unequal length: one flat array of tokens and where each bag ends.

A bag is a set of tokens with one label. Sums over the tokens of a bag are `reduceat` over the flat
array, or products with weights: no bag is padded, nothing of the size of the tokens is made, and
tokens may be sparse themselves (CSR). Tokens of single precision are multiplied in single precision
as well, a piece at a time, and the pieces added in doubles.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse, vstack

Array = np.ndarray
_BLOCK = 2**18  # numbers looked at in one go, and again while they are near
_LONG = 24  # tokens of a bag on average, from which on each bag is a product of its own


@dataclass(frozen=True)
class Bags:
    """Tokens (N, d) of n bags, one after the other; bag i is tokens[starts[i] : starts[i + 1]].

    Tokens are an array, or a sparse one by rows (`csr_array`). No bag is empty: `reduceat` would
    give it a token of the next.

    >>> Bags(np.zeros((3, 2)), np.array([0, 1, 1, 3]))
    Traceback (most recent call last):
    ...
    ValueError: starts = [0, 1, 1, 3] is not allowed: starts must be integers rising from 0 to 3
    """

    tokens: Array
    starts: Array

    def __post_init__(self) -> None:
        starts, N = np.asarray(self.starts), np.shape(self.tokens)[0]
        whole = starts.ndim == 1 and len(starts) > 0 and starts.dtype.kind in "iu"
        if not (whole and starts[0] == 0 and starts[-1] == N and (starts[1:] > starts[:-1]).all()):
            raise ValueError(
                f"starts = {np.array2string(starts, threshold=9, separator=', ')} is not allowed: "
                f"starts must be integers rising from 0 to {N}"
            )

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, place: Any) -> Any:
        """The tokens of one bag; or, for a slice, a mask or several numbers, these bags."""
        if isinstance(place, int | np.integer):
            k = int(place) + len(self) * (place < 0)
            if not 0 <= k < len(self):
                raise IndexError(f"bag {place} of {len(self)}")
            return self.tokens[self.starts[k] : self.starts[k + 1]]
        return self.take(place)

    @property
    def sizes(self) -> Array:
        """The number of tokens of each bag."""
        return np.diff(self.starts)

    @property
    def owner(self) -> Array:
        """For each token the number of its bag."""
        return np.repeat(np.arange(len(self)), self.sizes)

    def sums(self, values: Array) -> Array:
        """Sums over each bag of one value (N,) or row (N, p) a token."""
        return np.add.reduceat(values, self.starts[:-1], axis=0)

    def means(self) -> Array:
        """The mean token of each bag (n, d)."""
        return self.weighted(np.repeat(1 / self.sizes, self.sizes))

    def weighted(self, weights: Array) -> Array:
        """Sums of the tokens of each bag with one weight a token (n, d), dense."""
        shape = len(self), len(weights)
        if issparse(self.tokens):
            rows = csr_array((weights, np.arange(shape[1]), self.starts), shape)
            return (rows @ self.tokens).toarray()
        found, weights = np.zeros((len(self), self.tokens.shape[1])), self._like(weights)
        if shape[1] >= _LONG * shape[0]:
            for k, (a, b) in enumerate(zip(self.starts[:-1], self.starts[1:], strict=True)):
                found[k] = weights[a:b] @ self.tokens[a:b]
            return found
        for first, last in self.blocks():
            a, b = self.starts[first], self.starts[last]
            rows = csr_array(
                (weights[a:b], np.arange(b - a), self.starts[first : last + 1] - a),
                (last - first, b - a),
            )
            found[first:last] = rows @ self.tokens[a:b]
        return found

    def _like(self, numbers: Array) -> Array:
        """Numbers in the precision of the tokens."""
        return numbers.astype(np.float32) if self.tokens.dtype == np.float32 else numbers

    def along(self, direction: Array) -> Array:
        """⟨direction, x⟩ of every token (N,), or (N, p) for directions (d, p), in doubles."""
        if issparse(self.tokens) or self.tokens.dtype == float:
            return self.tokens @ direction
        return (self.tokens @ self._like(direction)).astype(float)

    def gathered(self, weights: Array) -> Array:
        """The sum of all tokens with one weight each (d,), or (d, p) for weights (N, p)."""
        if issparse(self.tokens) or self.tokens.dtype == float:
            return self.tokens.T @ weights
        weights = self._like(weights)
        parts = (self.tokens[part].T @ weights[part] for part in self.pieces())
        return sum(parts, np.zeros((self.tokens.shape[1], *weights.shape[1:])))

    def returned(self, direction: Array, scale: Array, shift: Array) -> Array:
        """Σ scale·(⟨direction, x⟩ − shift)·x over all tokens (d,), each looked at once.

        >>> Bags(np.eye(2), np.array([0, 2])).returned(np.ones(2), np.ones(2), np.full(2, 0.5))
        array([0.5, 0.5])
        """
        if issparse(self.tokens):
            return self.tokens.T @ (scale * (self.tokens @ direction - shift))
        direction, total = self._like(direction), np.zeros(self.tokens.shape[1])
        for part in self.pieces():
            x = self.tokens[part]
            total += x.T @ self._like(scale[part] * (x @ direction - shift[part]))
        return total

    def pieces(self) -> Iterator[slice]:
        """The tokens in pieces of about a quarter of a million numbers."""
        N, step = self.tokens.shape[0], max(1, _BLOCK // self.tokens.shape[1])
        for first in range(0, N, step):
            yield slice(first, min(first + step, N))

    def blocks(self) -> Iterator[tuple[int, int]]:
        """First and last + 1 of runs of bags of such pieces."""
        step, first = max(1, _BLOCK // self.tokens.shape[1]), 0
        while first < len(self):
            reach = np.searchsorted(self.starts, self.starts[first] + step, "right") - 1
            last = max(first + 1, int(reach))
            yield first, last
            first = last

    def largest(self, values: Array) -> Array:
        """The largest value over each bag."""
        return np.maximum.reduceat(values, self.starts[:-1], axis=0)

    def weights(self, heights: Array) -> Array:
        """The softmax of heights (N,) within each bag."""
        weight = np.exp(heights - self.largest(heights)[self.owner])
        return weight / self.sums(weight)[self.owner]

    def attended(self, heights: Array) -> Array:
        """The softmax average of the tokens of each bag (n, d)."""
        return self.weighted(self.weights(heights))

    def mapped(self, tokens: Array) -> Bags:
        """The same bags with other tokens."""
        return Bags(tokens, self.starts)

    def take(self, chosen: Array) -> Bags:
        """Some of the bags, by number or by a mask."""
        numbers = np.arange(len(self))[chosen]
        places = [np.arange(self.starts[k], self.starts[k + 1]) for k in numbers]
        sizes = self.sizes[numbers]
        return Bags(self.tokens[np.concatenate(places)], np.concatenate([[0], np.cumsum(sizes)]))


def as_bags(X: Any, name: str = "X") -> Bags:
    """Bags from whatever holds one table of tokens (L_i, d) a bag.

    That is a list, a tuple, an array of objects or a pandas Series of arrays, DataFrames or sparse
    arrays; an array (n, L, d); a table (n, d) of lone tokens; or `Bags`. Sparse bags stay sparse,
    and single precision stays single.

    >>> as_bags([np.zeros((2, 3)), np.zeros((5, 3))]).sizes.tolist()
    [2, 5]
    >>> as_bags(np.zeros((4, 3))).sizes.tolist()
    [1, 1, 1, 1]
    >>> as_bags([np.zeros((2, 3)), np.zeros((0, 3))])
    Traceback (most recent call last):
    ...
    ValueError: X[1] of shape (0, 3) is not allowed: a bag must hold at least one token
    """
    if isinstance(X, Bags):
        return X
    if isinstance(X, np.ndarray) and X.ndim == 3 and X.dtype != object and X.size:
        n, L, d = X.shape
        return Bags(_numbers(name, X.reshape(n * L, d), L), np.arange(n + 1) * L)
    if isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype != object and X.size:
        return Bags(_numbers(name, X, 1), np.arange(len(X) + 1))
    if isinstance(X, str | bytes | dict) or not hasattr(X, "__len__") or issparse(X) or not len(X):
        raise ValueError(
            f"{name} of type {type(X).__name__} is not allowed: {name} must be a list of arrays "
            "(L_i, d), an array (n, L, d) or a table (n, d)"
        )
    bags = list(X.to_numpy() if hasattr(X, "to_numpy") else X)
    _check_order(bags, name)
    if all(issparse(bag) for bag in bags):
        parts = [_sparse(f"{name}[{i}]", bag) for i, bag in enumerate(bags)]
        tokens = csr_array(vstack(_of_one_width(parts, name), format="csr"), dtype=float)
    else:
        parts = [_one(f"{name}[{i}]", bag) for i, bag in enumerate(bags)]
        tokens = np.concatenate(_of_one_width(parts, name))
    return Bags(tokens, np.concatenate([[0], np.cumsum([bag.shape[0] for bag in parts])]))


def _check_order(bags: list, name: str = "X") -> None:
    """Refuse DataFrames of other columns, or in another order: entries go by their place."""
    orders = [list(bag.columns) for bag in bags if hasattr(bag, "columns")]
    for i, order in enumerate(orders):
        if order != orders[0]:
            raise ValueError(
                f"{name}[{i}] with other columns than {name}[0], or in another order, is not "
                f"allowed: {order[:4]}, and not {orders[0][:4]}"
            )


def _one(name: str, bag: Any) -> Array:
    try:
        tokens = np.asarray(bag.toarray() if issparse(bag) else bag)
    except (TypeError, ValueError):  # ragged, or of no array kind
        tokens = np.empty(0, dtype=object)
    if tokens.ndim != 2 or tokens.dtype.kind not in "iufb":
        what = f"shape {tokens.shape}" if tokens.dtype != object else f"type {type(bag).__name__}"
        raise ValueError(f"{name} of {what} is not allowed: a bag must be numbers (L, d)")
    if 0 in tokens.shape:
        raise ValueError(
            f"{name} of shape {tokens.shape} is not allowed: a bag must hold at least one token"
        )
    return _numbers(name, tokens)


def _numbers(name: str, tokens: Array, length: int = 0) -> Array:
    """Finite floats of single or double precision; a bag is named where all have one `length`."""
    if tokens.dtype.kind not in "iufb":
        raise ValueError(f"{name} of {tokens.dtype} is not allowed: {name} must hold numbers")
    if tokens.dtype not in (np.float32, np.float64):
        tokens = tokens.astype(np.float32 if tokens.dtype == np.float16 else float)
    if not np.isfinite([tokens.min(), tokens.max()]).all():
        row, entry = np.argwhere(~np.isfinite(tokens))[0].tolist()
        if length:
            name, row = f"{name}[{row // length}]", row % length
        found = tokens[~np.isfinite(tokens)][0]
        raise ValueError(
            f"{name} with {found} at token {row}, entry {entry}, is not allowed: tokens must be "
            "finite"
        )
    return tokens


def _sparse(name: str, bag: Any) -> Any:
    if bag.ndim != 2 or bag.shape[0] == 0:
        raise ValueError(
            f"{name} of shape {bag.shape} is not allowed: a bag must hold at least one token"
        )
    if not np.isfinite(bag.tocsr().data).all():
        raise ValueError(f"{name} is not allowed: tokens must be finite")
    return bag


def _of_one_width(bags: list, name: str) -> list:
    for i, bag in enumerate(bags):
        if bag.shape[1] != bags[0].shape[1]:
            raise ValueError(
                f"{name}[{i}] with tokens of {bag.shape[1]} entries is not allowed: all tokens "
                f"must have the same number, as {name}[0] has {bags[0].shape[1]}"
            )
    return bags
