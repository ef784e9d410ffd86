"""Everything at once, the same data again: full-batch descent on query, readout and intercept.

The objective on n bags is the mean loss of the scores t_i = ⟨s_i, X_i w⟩ + b, s_i = softmax(X_i q),
plus the decay ½λ(|q|² + |w|²). With g_i = ℓ'(t_i; y_i) and k_i = s_i∘(X_i w − ⟨s_i, X_i w⟩),

    ∇_w = (1/n) Σ g_i X_iᵀ s_i + λw,   ∇_q = (1/n) Σ g_i X_iᵀ k_i + λq,   ∂_b = (1/n) Σ g_i.

Tokens are read block by block, twice a step; beside them nothing larger than a block is held. With
a fresh bag in each step it is the descent of Chapter 8, thm-8-flow.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.special import softmax

from ..data.classifiers import attention
from ..data.tokens import SparseTokens, check_model
from ..kit.checks import (
    check_array,
    check_choice,
    check_integer,
    check_labels,
    check_real,
    check_rng,
)
from ..kit.losses import get_loss
from ..kit.records import ConvergenceError, Descent
from ..readout.fit import error_rate

__all__ = ["Descent", "Gradient", "gradient", "simulate_descent"]

Array = np.ndarray
_BLOCK = 2**22  # entries of the largest block of tokens
_SINGLE = 2**21  # above as many numbers the tokens of a simulation are kept in single precision


class Gradient(NamedTuple):
    """Mean loss and share of wrong labels, and the derivatives of the objective."""

    loss: float
    error: float
    q: Array
    w: Array
    b: float


def gradient(
    X: Array, y: Array, q: Array, w: Array, b: float, *, loss: str = "logistic", decay: float = 0.0
) -> Gradient:
    """The objective's gradient at (q, w, b).

    Parameters
    ----------
    X, y : tokens (n, L, d) in single or double precision, and labels ±1 (n,)
    q, w : query and readout (d,)
    b : intercept
    loss, decay : "logistic" or "square"; λ ≥ 0 of the decay ½λ(|q|² + |w|²)

    Examples
    --------
    >>> model = SparseTokens(L=10, R=1, theta=4.0, pi=0.5)
    >>> X, y, _ = model.sample(50, 20, np.random.default_rng(0))
    >>> at_zero = gradient(X, y, np.zeros(20), np.zeros(20), 0.0)
    >>> f"{at_zero.loss:.4f}", float(np.abs(at_zero.q).max())
    ('0.6931', 0.0)
    """
    X = np.asarray(X)
    if X.ndim != 3 or X.dtype.kind != "f" or 0 in X.shape:
        raise ValueError(f"X of shape {X.shape} is not allowed: X must be floats (n, L, d)")
    n, L, d = X.shape
    y, decay = check_labels("y", y, n), check_real("decay", decay, 0)
    q, w, b = check_array("q", q, d), check_array("w", w, d), check_real("b", b)
    both, kind = np.stack([q, w], axis=1).astype(X.dtype), get_loss(loss)
    total, pulls, lost, wrong = np.zeros((2, d)), 0.0, 0.0, 0
    size = max(1, _BLOCK // (L * d))
    for first in range(0, n, size):
        tokens = X[first : first + size].reshape(-1, d)
        u, v = np.moveaxis((tokens @ both).reshape(-1, L, 2).astype(float), 2, 0)
        s = softmax(u, axis=1)
        score = np.einsum("nl,nl->n", s, v)
        label, t = y[first : first + size], score + b
        g = kind.first(t, label)
        marks = np.stack([g[:, None] * s * (v - score[:, None]), g[:, None] * s])
        total += marks.reshape(2, -1).astype(X.dtype) @ tokens
        pulls += float(g.sum())
        lost += float(kind.value(t, label).sum())
        wrong += int((label * t <= 0).sum())
    along_q, along_w = total / n
    return Gradient(lost / n, wrong / n, along_q + decay * q, along_w + decay * w, pulls / n)


def simulate_descent(
    model: SparseTokens,
    d: int,
    alpha: float,
    steps: Sequence[int],
    rng: np.random.Generator,
    *,
    loss: str = "logistic",
    lr_q: float,
    lr_w: float,
    lr_b: float,
    decay: float = 0.0,
    start: tuple[float, float] = (0.1, 0.1),
) -> list[Descent]:
    """Descent on all three from random directions, on n = alpha·d bags that are used in each step.

    Parameters
    ----------
    model, d, alpha : the tokens, their dimension, and n/d
    steps : rising numbers of steps at which to look
    loss, decay : as in `gradient`
    lr_q, lr_w, lr_b : rates ≥ 0 (not divided by d: the gradient is that of the mean)
    start : lengths of q and w, whose directions are drawn; b = 0

    Returns
    -------
    one record for each of `steps`; the test error is that of this very (q, w, b), over fresh draws
    of what the softmax sees

    Examples
    --------
    >>> model, rates = SparseTokens(L=10, R=1, theta=5.0, pi=0.5), {"lr_q": 1.0, "lr_w": 1.0}
    >>> rng = np.random.default_rng(0)
    >>> for one in simulate_descent(model, 100, 4.0, [0, 20], rng, lr_b=1.0, **rates):
    ...     print(f"{one.train_loss:.2f} {one.query_cos:.1f}")
    0.70 0.1
    0.11 0.7
    """
    model, d, rng = check_model(model), check_integer("d", d, 3), check_rng(rng)
    n = max(2, round(check_real("alpha", alpha, 0, open_low=True) * d))
    given = check_array("steps", steps, "m")
    counts = [check_integer("steps", count, 0) for count in given.tolist()]
    if any(b <= a for a, b in pairwise(counts)):
        raise ValueError(f"steps = {steps!r} is not allowed: steps must rise")
    named = {"lr_q": lr_q, "lr_w": lr_w, "lr_b": lr_b}
    rate_q, rate_w, rate_b = (check_real(name, value, 0) for name, value in named.items())
    lengths = [check_real("start", x, 0) for x in check_array("start", start, 2)]
    check_choice("loss", loss, ("logistic", "square"))
    X, y = _tokens(model, n, d, rng)
    q, w = rng.normal(size=(2, d))
    q, w = lengths[0] / np.linalg.norm(q) * q, lengths[1] / np.linalg.norm(w) * w
    b, records = 0.0, list[Descent]()
    for count in range(counts[-1] + 1):
        if not (abs(b) < 1e6 and q @ q < 1e12 and w @ w < 1e12):
            raise ConvergenceError(f"descent diverges at step {count}; take smaller rates", records)
        slope = gradient(X, y, q, w, b, loss=loss, decay=decay)
        if count in counts:
            records.append(_record(model, n / d, count, slope, q, w, b, rng))
        q, w, b = q - rate_q * slope.q, w - rate_w * slope.w, b - rate_b * slope.b
    return records


def _tokens(model: SparseTokens, n: int, d: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """n bags, drawn in blocks; in single precision where they are many."""
    single = n * model.L * d > _SINGLE
    X = np.empty((n, model.L, d), dtype=np.float32 if single else float)
    y, size = np.empty(n), max(1, _BLOCK // (model.L * d))
    for first in range(0, n, size):
        block = model.sample(min(size, n - first), d, rng)
        X[first : first + size], y[first : first + size] = block.X, block.y
    return X, y


def _record(
    model: SparseTokens, samples: float, steps: int, slope: Gradient, q: Array, w: Array, b: float,
    rng: np.random.Generator,
) -> Descent:  # fmt: skip
    size, norm = math.sqrt(q @ q), math.sqrt(w @ w)
    cos = min(1.0, max(-1.0, q[0] / size)) if size else 0.0
    across = math.sqrt(q[1:] @ q[1:])
    second = float(w[1:] @ q[1:]) / across if across else 0.0
    third = math.sqrt(max(norm**2 - w[0] ** 2 - second**2, 0.0))
    law = attention(model, temperature=size, cos=cos)
    return Descent(
        samples=samples,
        steps=steps,
        train_loss=slope.loss,
        train_error=slope.error,
        query_cos=cos,
        readout_cos=float(w[0]) / norm if norm else 0.0,
        query_norm=size,
        readout_norm=norm,
        overlap=float(q @ w),
        bias=float(b),
        test_error=error_rate(law, np.array([w[0], second, third]), float(b), rng),
    )
