"""Attention features the long way, from literal tokens: what the law of attention is held against.

Chapter 1, prop-1-law.
"""

from __future__ import annotations

import numpy as np
from scipy.special import softmax

from ..kit.checks import check_integer, check_real
from .law import Features
from .tokens import SparseTokens, check_model

_BLOCK = 2**22  # entries of the largest array of tokens


def dense_features(
    model: SparseTokens, n: int, d: int, rng: np.random.Generator, *, temperature: float, cos: float
) -> Features:
    """Attention features the long way: draw X (L×d a sample), take softmax(βXq), pool.

    Tokens are drawn in blocks, so memory stays bounded; the law is that of `attention(...).sample`.

    Examples
    --------
    >>> model = SparseTokens(L=10, R=1, theta=5.0, pi=0.5)
    >>> dense_features(model, 5, 20, np.random.default_rng(0), temperature=2.0, cos=0.8).F.shape
    (5, 20)
    """
    m, n, d = check_model(model), check_integer("n", n, 1), check_integer("d", d, 2)
    T, cos = check_real("temperature", temperature, 0), check_real("cos", cos, -1, 1)
    blocks = []
    step = max(1, _BLOCK // (m.L * d))
    for start in range(0, n, step):
        X, y, _ = m.sample(min(step, n - start), d, rng)
        s = softmax(T * (cos * X[:, :, 0] + np.sqrt(1 - cos**2) * X[:, :, 1]), axis=1)
        blocks.append((np.einsum("nl,nld->nd", s, X), y))
    return Features(*map(np.concatenate, zip(*blocks, strict=True)))
