"""Ways in which a validation can be too good: bag size, tokens in several bags."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from scipy.sparse import issparse

from .arrays import Array, Bags

MUCH = 0.02  # share of shared tokens from which on folds are not independent


def size_rows(bags: Bags) -> Array:
    """What the size of a bag alone offers a readout: L and log L, in units of their spread."""
    rows = np.column_stack([bags.sizes, np.log(bags.sizes)]).astype(float)
    spread = rows.std(axis=0)
    return (rows - rows.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


def shared_tokens(bags: Bags, groups: Array | None = None) -> float:
    """The share of tokens that stand, number by number, in another bag (or group) as well.

    Tokens of zeros only are padding, and do not count.

    >>> one = np.arange(6.0).reshape(3, 2)
    >>> round(shared_tokens(Bags(np.vstack([one, one[1:]]), np.array([0, 3, 5]))), 2)
    0.8
    """
    of = bags.owner if groups is None else groups[bags.owner]
    keys = _keys(bags.tokens)
    kept = np.flatnonzero(keys != b"")
    if not len(kept):
        return 0.0
    _, name = np.unique(keys[kept], return_inverse=True)
    low, high = np.full(name.max() + 1, of.max() + 1), np.full(name.max() + 1, -1)
    np.minimum.at(low, name, of[kept])
    np.maximum.at(high, name, of[kept])
    return float((low != high)[name].mean())


def _keys(tokens: Any) -> Array:
    """A fingerprint of each token, empty where all entries are 0."""
    if issparse(tokens):
        rows = tokens.tocsr()
        parts = [
            (rows.indices[a:b][rows.data[a:b] != 0], rows.data[a:b][rows.data[a:b] != 0])
            for a, b in zip(rows.indptr[:-1], rows.indptr[1:], strict=True)
        ]
        raw = [i.astype("<i8").tobytes() + x.tobytes() if len(x) else b"" for i, x in parts]
    else:
        raw = [row.tobytes() if row.any() else b"" for row in tokens]
    return np.array([hashlib.blake2b(x, digest_size=12).digest() if x else b"" for x in raw])
