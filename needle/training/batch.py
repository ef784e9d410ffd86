"""Everything at once, the same data again: full-batch descent on query, readout and intercept.

The objective on n = αd bags is the mean loss of the scores t_i = ⟨s_i, X_i w⟩ + b, with
s_i = softmax(X_i q). A step moves q, w and b together against its gradient; with decay λ

    q ← (1 − η_q λ) q − η_q ∂_q,   w ← (1 − η_w λ) w − η_w ∂_w,   b ← b − η_b ∂_b,

    ∂_w = (1/n) Σ g_i X_iᵀ s_i,   ∂_q = (1/n) Σ g_i X_iᵀ (s_i∘(X_i w − ⟨s_i, X_i w⟩)),
    ∂_b = (1/n) Σ g_i,            g_i = ℓ'(t_i; y_i).

The steps are those of `needle.training.descent`. Chapter 8, thm-8-worlds.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from ..data.classifiers import attention
from ..data.tokens import SparseTokens, check_model
from ..kit.checks import check_array, check_flag, check_integer, check_labels, check_real, check_rng
from ..kit.losses import Loss, get_loss
from ..kit.records import ConvergenceError, Descent
from ..kit.threads import in_one_thread
from ..readout.fit import error_rate
from .accidents import moved_by_accident, with_accidents
from .descent import (
    Rule,
    State,
    check_rule,
    check_steps,
    descend,
    draw_tokens,
    in_populations,
    means_of,
    scores,
    slope,
)
from .worlds import Limit, TokenWorld, World

Array = np.ndarray
_APART = {"query_cos": 0.15, "test_error": 0.05}  # spreads at which populations are said to part


class Gradient(NamedTuple):
    """Mean loss and share of wrong labels, and the derivatives of loss and decay."""

    loss: float
    error: float
    q: Array
    w: Array
    b: float


def gradient(
    X: Array, y: Array, q: Array, w: Array, b: float, *, loss: str = "logistic", decay: float = 0.0
) -> Gradient:
    """The gradient at (q, w, b) of the mean loss and ½·decay·(|q|² + |w|²).

    Parameters
    ----------
    X, y : tokens (n, L, d) in single or double precision, and labels ±1 (n,)
    q, w, b : query and readout (d,), intercept

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
    y, d, decay = check_labels("y", y, len(X)), X.shape[2], check_real("decay", decay, 0)
    q, w, b = check_array("q", q, d), check_array("w", w, d), check_real("b", b)
    world, kind = TokenWorld(X, y), get_loss(loss)
    seen = scores(world, State(q[None], w[None], b))
    along = slope(world, seen, kind)
    value, wrong = kind.value(seen.t, y).mean(), np.mean(y * seen.t <= 0)
    q, w = along.q[0] + decay * q, along.w[0] + decay * w
    return Gradient(float(value), float(wrong), q, w, along.b)


@in_one_thread
def predict_descent(
    model: SparseTokens,
    alpha: float,
    steps: Sequence[int],
    *,
    loss: str = "logistic",
    lr_q: float = 1.0,
    lr_w: float = 1.0,
    lr_b: float = 1.0,
    decay: float | tuple[float, float] = 0.0,
    start: tuple[float, float] = (0.1, 0.1),
    lean: tuple[float, float] = (0.0, 0.0),
    bags: int | None = None,
    populations: int = 4,
    seed: int = 0,
    response: bool = True,
    d: int | None = None,
) -> list[Descent]:
    """The limit d → ∞ of full-batch descent on n = alpha·d bags that are used in every step.

    The same steps as `simulate_descent`, run on populations of bags in the limit (`Limit`). Each
    number is the mean over the populations and carries its `standard_error`; what a population's
    size biases falls like 1/bags.

    Parameters
    ----------
    model, alpha : the tokens, and n/d
    steps : rising numbers of steps at which to look
    loss, lr_q, lr_w, lr_b : of the descent, any loss of `get_loss` (the theorem wants ℓ' Lipschitz
        and of polynomial growth: "hinge" and "exponential" go beyond it); rates are not divided by
        d, the gradient is that of the mean
    decay : λ ≥ 0 of q and w, or a pair of them; the intercept does not decay
    start : lengths of q and w, whose directions are random; b = 0
    lean : cosines of the two starts with ξ; in R^d a random direction has one of size 1/√d
    bags, populations, seed : bags of a population (None: 40 000 tokens, at least 2000 bags), how
        many populations (≥ 2), their randomness
    response : False leaves out what a bag sees of its own share in past steps, to see what it does
    d : the dimension of the tokens that the limit is meant for, if it is to be doubted
        (`needle.training.accidents`); it does not change the answer

    Returns
    -------
    one record for each of `steps`

    Raises
    ------
    ConvergenceError : with the records before, where the rates are so large that descent diverges.

    Warns
    -----
    UserWarning : where the populations part, because needles are found by chance, or because steps
        overshoot (a cycle has no phase of its own): their mean then is no limit. With d: where what
        happens to a data set in R^d by accident changes the answer.

    Examples
    --------
    >>> model = SparseTokens(L=10, R=1, theta=5.0, pi=0.5)
    >>> for one in predict_descent(model, 4.0, [0, 20], bags=500):
    ...     print(f"{one.train_loss:.1f} {one.query_cos:.1f}")
    0.7 0.0
    0.1 0.7
    """
    model, alpha = check_model(model), check_real("alpha", alpha, 0, open_low=True)
    rule, counts = check_rule(loss, lr_q, lr_w, lr_b, decay), check_steps(steps)
    lengths, cosines = _check_start(start), _check_lean(lean)
    bags = check_integer("bags", max(2000, 40_000 // model.L) if bags is None else bags, 50)
    response, seed = check_flag("response", response), check_integer("seed", seed, 0)
    d = None if d is None else check_integer("d", d, 3)

    def run(rng: np.random.Generator, law: SparseTokens, leaning: Array) -> list[Descent]:
        world = Limit(law, alpha, bags, rng, 3 + 2 * counts[-1], response=response)
        return _run(world, world.start(lengths, leaning), rule, counts, model, None)

    runs = in_populations(lambda rng: run(rng, model, cosines), populations, seed)
    for name, most in _APART.items():
        values = np.array([[getattr(one, name) for one in run] for run in runs])
        if np.std(values, axis=0, ddof=1).max() > most:
            warnings.warn(
                f"populations of bags = {bags} part in {name}: their mean is no limit. Take more "
                "bags where needles are found by chance, smaller rates where steps overshoot",
                stacklevel=2,
            )
            break
    if d is not None:
        others = with_accidents(model, alpha, d, cosines)
        again = [run(np.random.default_rng([seed, 0]), *other) for other in others]
        if doubted := moved_by_accident(runs[0], again):
            warnings.warn(f"at d = {d} {doubted}", stacklevel=2)
    return means_of(runs)


@in_one_thread
def simulate_descent(
    model: SparseTokens,
    d: int,
    alpha: float,
    steps: Sequence[int],
    rng: np.random.Generator,
    *,
    loss: str = "logistic",
    lr_q: float = 1.0,
    lr_w: float = 1.0,
    lr_b: float = 1.0,
    decay: float | tuple[float, float] = 0.0,
    start: tuple[float, float] = (0.1, 0.1),
    lean: tuple[float, float] | None = None,
) -> list[Descent]:
    """Descent on all three from random directions, on round(alpha·d) bags used in each step.

    Parameters
    ----------
    d, rng : the dimension of the tokens, and the source of randomness
    model, alpha, steps, loss, lr_q, lr_w, lr_b, decay, start, lean : as in `predict_descent`;
        without `lean` the directions are random

    Returns
    -------
    one record for each of `steps`; the test error is that of this very (q, w, b), over fresh draws
    of what the softmax sees

    Examples
    --------
    >>> model, rng = SparseTokens(L=10, R=1, theta=5.0, pi=0.5), np.random.default_rng(0)
    >>> for one in simulate_descent(model, 100, 4.0, [0, 20], rng):
    ...     print(f"{one.train_loss:.2f} {one.query_cos:.1f}")
    0.70 0.1
    0.11 0.7
    """
    model, d, rng = check_model(model), check_integer("d", d, 3), check_rng(rng)
    n = max(2, round(check_real("alpha", alpha, 0, open_low=True) * d))
    rule, counts = check_rule(loss, lr_q, lr_w, lr_b, decay), check_steps(steps)
    world = TokenWorld(*draw_tokens(model, n, d, rng), rng)
    cosines = None if lean is None else _check_lean(lean)
    begin = world.start(_check_start(start), cosines)
    return _run(world, begin, rule, counts, model, rng)


def _check_start(start: tuple[float, float]) -> list[float]:
    return [check_real("start", x, 0) for x in check_array("start", start, 2).tolist()]


def _check_lean(lean: tuple[float, float]) -> Array:
    cosines = check_array("lean", lean, 2)
    for cos in cosines:
        check_real("lean", cos, -1, 1)
    return cosines[:, None]


def _run(
    world: World, start: Array, rule: Rule, counts: list[int], model: SparseTokens,
    rng: np.random.Generator | None,
) -> list[Descent]:  # fmt: skip
    records = list[Descent]()
    states = descend(world, State(start[:1], start[1:], 0.0), rule)
    for step in range(counts[-1] + 1):
        state, seen = next(states)
        q, w = state.q[0], state.w[0]
        if not (abs(state.b) < 1e6 and q @ q < 1e12 and w @ w < 1e12):
            raise ConvergenceError(f"descent diverges at step {step}; take smaller rates", records)
        if step in counts:
            records.append(_record(model, step, world, state, seen.t, rule.loss, rng))
    return records


def _record(
    model: SparseTokens, step: int, world: World, state: State, t: Array, loss: Loss,
    rng: np.random.Generator | None,
) -> Descent:  # fmt: skip
    q, w, b = state.q[0], state.w[0], state.b
    size, norm = math.sqrt(q @ q), math.sqrt(w @ w)
    cos = min(1.0, max(-1.0, float(q[0]) / size)) if size else 0.0
    return Descent(
        step=step,
        train_loss=float(world.weight @ loss.value(t, world.y)),
        train_error=float(world.weight @ (world.y * t <= 0)),
        test_error=fresh_error(model, q, w, b, rng),
        query_cos=cos,
        query_norm=size,
        readout_cos=float(w[0]) / norm if norm else 0.0,
        readout_norm=norm,
        bias=b,
        overlap=float(q @ w),
    )


def fresh_error(
    model: SparseTokens, q: Array, w: Array, b: float, rng: np.random.Generator | None = None
) -> float:
    """P(wrong label) of (q, w, b) on a fresh bag: at the nodes of the law, or at draws from rng."""
    size = math.sqrt(q @ q)
    cos = min(1.0, max(-1.0, float(q[0]) / size)) if size else 0.0
    along = float(q @ w) / size if size else 0.0
    rest = math.sqrt(max(w @ w - along**2, 0.0))
    law = attention(model, temperature=size, cos=cos, bits=13)
    if rng is not None:
        across = math.sqrt(q[1:] @ q[1:])
        second = float(w[1:] @ q[1:]) / across if across else 0.0
        third = math.sqrt(max(w[1:] @ w[1:] - second**2, 0.0))
        return error_rate(law, np.array([w[0], second, third]), b, rng)
    y, mean, sd, weight = law.limit_scores(float(w[0]), along, rest, b, fine=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        margin = np.nan_to_num(y * mean / sd, nan=-np.inf)
    return float(weight @ ndtr(-margin))
