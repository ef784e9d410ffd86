"""One pass by literal steps: a fresh bag each, in R^d or by what a step depends on alone.

`needle.training.onepass` is the limit. The exact draw keeps q in a plane and w in a space of three
dimensions: the first axis is ξ, and what a bag adds across the frame is a 2×2 Wishart matrix.
Chapter 10, thm-10-flow.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy.special import softmax

from ..data.classifiers import attention
from ..data.tokens import SparseTokens
from ..kit.checks import check_choice, check_integer, check_is, check_rng
from ..kit.losses import SMOOTH, get_loss
from ..kit.records import ConvergenceError, Training
from ..kit.threads import in_one_thread
from ..readout.fit import error_rate
from .flow import Rates, State
from .onepass import _FAR, _check_rates, _check_samples, _check_start, _record

Array = np.ndarray
Path = Iterator[tuple[Array, Array, float]]
_BLOCK, _EXACT_BLOCK = 2**20, 2**18  # numbers, and tokens of three numbers, drawn in one go


@in_one_thread
def simulate_training(
    model: SparseTokens,
    d: int,
    samples: Sequence[float],
    rng: np.random.Generator,
    *,
    loss: str = "logistic",
    lr_q: float,
    lr_w: float,
    lr_b: float,
    start: tuple[float, float] = (0.1, 0.1),
    method: str = "dense",
) -> list[Training]:
    """One run of one-pass descent in R^d: round(samples·d) steps of rates η/d, a fresh bag each.

    Parameters
    ----------
    model, samples, loss, lr_q, lr_w, lr_b : as in `predict_training`
    d : token dimension, at least 5
    start : lengths of q and w, whose directions are drawn
    method : "dense" draws all Ld numbers of each bag; "exact" has the same law at every d and draws
        only what a step depends on: three coordinates of the tokens, and the lengths and the angle
        of what it adds across them (a 2×2 Wishart matrix)

    Returns
    -------
    one record for each of `samples`; the test error is that of this very (q, w, b), over fresh
    draws of what the softmax sees

    Examples
    --------
    >>> model, rng = SparseTokens(L=10, R=1, theta=4.0, pi=0.5), np.random.default_rng(0)
    >>> options = {"lr_q": 3.0, "lr_w": 3.0, "lr_b": 3.0, "method": "exact"}
    >>> (run,) = simulate_training(model, 300, [4.0], rng, **options)
    >>> print(f"{run.query_cos:.1f} {run.test_error:.2f}")
    0.7 0.15
    """
    model, d, rng = check_is("model", model, SparseTokens), check_integer("d", d, 5), check_rng(rng)
    times, rates = _check_samples(samples), _check_rates(lr_q, lr_w, lr_b)
    state = _check_start(check_is("start", start, tuple | list | np.ndarray, "(|q|, |w|)"))
    steps = {"dense": _dense, "exact": _exact}[check_choice("method", method, ("dense", "exact"))]
    q, w = rng.standard_normal((2, d))
    q *= math.sqrt(state.query_square) / np.linalg.norm(q)
    w *= math.sqrt(state.readout_square) / np.linalg.norm(w)
    until = np.rint(times * d).astype(int)
    records = list[Training]()
    path = steps(model, d, int(until[-1]), rng, loss, rates, q, w)
    for count, (q, w, b) in enumerate(path):
        for time in times[until == count]:
            if not (q @ q + w @ w < _FAR**2 and math.isfinite(b)):
                raise ConvergenceError(
                    f"descent diverges before samples = {time:.3g}; take smaller rates", records
                )
            records.append(_measured(model, float(time), q, w, b, rng))
    return records


def _pull(gradient: Any, s: Array, v: Array, b: float, y: int) -> tuple[float, Array]:
    """ℓ' of the score of one bag, and k = s∘(v − ⟨s, v⟩)."""
    score = s @ v
    return float(gradient(score + b, y)), s * (v - score)


def _dense(
    model: SparseTokens, d: int, steps: int, rng: np.random.Generator, loss: str, rates: Rates,
    q: Array, w: Array,
) -> Path:  # fmt: skip
    gradient, b = get_loss(loss, SMOOTH).first, 0.0
    yield q, w, b
    size = max(1, _BLOCK // (model.L * d))
    for done in range(0, steps, size):
        bags = model.sample(min(size, steps - done), d, rng)
        for X, y in zip(bags.X, bags.y, strict=True):
            s = softmax(X @ q)
            g, k = _pull(gradient, s, X @ w, b, y)
            q = q - rates.q / d * g * (X.T @ k)
            w = w - rates.w / d * g * (X.T @ s)
            b -= rates.b / d * g
            yield q, w, b


def _exact(
    model: SparseTokens, d: int, steps: int, rng: np.random.Generator, loss: str, rates: Rates,
    q: Array, w: Array,
) -> Path:  # fmt: skip
    """The first axis is ξ; q lies in the plane of the first two, w in the space of three."""
    gradient, b = get_loss(loss, SMOOTH).first, 0.0
    q, w = _framed(q[0], q[1:] @ q[1:], w[0], w[1:] @ w[1:], q[1:] @ w[1:])
    yield q, w, b
    size = max(1, _EXACT_BLOCK // model.L)
    for done in range(0, steps, size):
        bags = model.sample(min(size, steps - done), 3, rng)
        lengths = np.sqrt(rng.chisquare([d - 3, d - 4], (len(bags.y), 2)))
        crosses = rng.standard_normal(len(bags.y))
        for X, y, (far, near), cross in zip(bags.X, bags.y, lengths, crosses, strict=True):
            s = softmax(X @ q)
            g, k = _pull(gradient, s, X @ w, b, y)
            q = q - rates.q / d * g * (k @ X)
            w = w - rates.w / d * g * (s @ X)
            b -= rates.b / d * g
            # noise across the frame: along an axis ∝ |s|, and what k adds to it
            r, lean = math.sqrt(s @ s), s @ k
            other = math.sqrt(max(k @ k - (lean / r) ** 2, 0.0))
            across_w = -rates.w / d * g * r * np.array([far, 0.0])
            across_q = -rates.q / d * g * np.array([lean / r * far + other * cross, other * near])
            q_rest, w_rest = np.append(q[1:], across_q), np.append(w[1:], across_w)
            q, w = _framed(q[0], q_rest @ q_rest, w[0], w_rest @ w_rest, q_rest @ w_rest)
            yield q, w, b


def _framed(
    q_along: float, q_square: float, w_along: float, w_square: float, product: float
) -> tuple[Array, Array]:
    """q and w in the frame, from their parts along ξ and the products of the rest."""
    size = math.sqrt(q_square)
    second = product / size if size else 0.0
    third = math.sqrt(max(w_square - second**2, 0.0))
    return np.array([q_along, size, 0.0]), np.array([w_along, second, third])


def _measured(
    model: SparseTokens, time: float, q: Array, w: Array, b: float, rng: np.random.Generator
) -> Training:
    product = float(q @ w)
    q, w = _framed(q[0], q[1:] @ q[1:], w[0], w[1:] @ w[1:], q[1:] @ w[1:])
    state = State(q[0], w[0], q @ q, w @ w, product, float(b))
    size = math.sqrt(state.query_square)
    cos = min(1.0, max(-1.0, q[0] / size)) if size else 0.0
    law = attention(model, temperature=size, cos=cos)
    return _record(time, state, error_rate(law, w, state.bias, rng))
