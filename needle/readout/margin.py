"""The hyperplane of largest margin: where a logistic readout points as its ridge vanishes.

Below capacity the logistic loss alone has no minimiser. With a ridge it has one, whose length grows
as λ → 0 and whose direction tends to the hyperplane with the nearest sample as far away as can be.
Appendix D, prp-d-margin and eq-d-margin.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import nnls

from ..data.law import FeatureLaw
from ..kit.checks import (
    check_array,
    check_flag,
    check_integer,
    check_is,
    check_labels,
    check_real,
    check_rng,
)
from ..kit.records import ConvergenceError
from ..kit.threads import in_one_thread
from .capacity import least_repair, margin_rows, squared_repair
from .fit import error_rate
from .separable import separability

Array = np.ndarray


@dataclass(frozen=True)
class Margin:
    """The hyperplane of largest margin, predicted in the limit or measured; |w| = 1 throughout.

    Attributes
    ----------
    margin : distance of the nearest sample from the hyperplane, min y(⟨w, f⟩ + b)
    test_error : probability of a wrong label on new data
    signal : ⟨w, ξ⟩ (for the vectorized model ⟨W, 1ξᵀ⟩/√L)
    bias : b
    """

    margin: float
    test_error: float
    signal: float
    bias: float


class Hyperplane(NamedTuple):
    """A separating hyperplane with |w| = 1, and the distance of the nearest sample from it."""

    w: Array
    b: float
    margin: float


@in_one_thread
def predict_margin(law: FeatureLaw, alpha: float, *, intercept: bool = True) -> Margin:
    """The largest margin of n = αd samples and the test error of that hyperplane, for large d.

    This is the limit λ → 0 of `predict_readout` with the logistic loss, below capacity. Scaled so
    that the nearest sample has score 1, w = νq̂ + κe + v with w_⊥ = |v| is the shortest solution of

        α E[(√(w_⊥²+κ²) G + 1/r − t)₊²] ≤ w_⊥²,  t = y(θaμ + cν + b)/r,  μ = s_q ν + √(1−s_q²) κ,

    with G ~ N(0, 1): the condition of `predict_capacity` with a margin to keep. The margin is
    1/√(ν²+κ²+w_⊥²), the test error E Φ(−t/√(w_⊥²+κ²)). Appendix D, equation (eq-d-margin). A convex
    problem in at most four variables, solved by Newton's method behind a falling barrier.

    Parameters
    ----------
    law : the law of the features
    alpha : n/d with d the token dimension, below the capacity
    intercept : whether b is free, or zero

    Examples
    --------
    >>> from needle.data.classifiers import pooled
    >>> from needle.data.tokens import SparseTokens
    >>> law = pooled(SparseTokens(L=10, R=1, theta=5.0, pi=0.5))
    >>> found = predict_margin(law, 2.0)
    >>> round(found.margin, 4), round(found.test_error, 4)
    (0.0697, 0.3459)
    """
    alpha = check_real("alpha", alpha, 0, open_low=True)
    nodes = check_is("law", law, FeatureLaw).nodes
    X, κ = margin_rows(law, nodes, check_flag("intercept", intercept))
    share, size = alpha / law.copies, X.shape[1]
    J, β, settled = least_repair(X, nodes.weight, κ, np.zeros(size), 0.5 / share)
    if settled and share * J >= 1:
        raise ValueError(
            f"alpha = {alpha:g} is not allowed: alpha must be below the capacity "
            f"{law.copies / J:.4g}, above which no hyperplane separates"
        )
    length = np.ones(size + 1)  # what counts in |w|²: everything but the intercept
    length[size - 1] -= intercept
    wide, gap = np.column_stack([X, -1 / nodes.r]), 1.0

    def constraint(x: Array) -> tuple[float, Array, Array]:
        """√(α E repair²) − w_⊥ at x = (ν, κ, b, w_⊥), with the score `gap` to keep; convex in x."""
        ratio = np.append(x[:-1], gap) / x[-1]
        square, gradient, hessian = squared_repair(wide, nodes.weight, κ, ratio)
        root = math.sqrt(max(share * square, 1e-300))  # rounding may leave less than nothing
        gradient = gradient * share / (2 * root)
        hessian = hessian * share / (2 * root) - np.outer(gradient, gradient) / root
        unfold = np.vstack([np.eye(size, size + 1), -ratio])
        slope = unfold @ gradient
        slope[-1] += root - 1
        return x[-1] * (root - 1), slope, unfold @ hessian @ unfold.T / x[-1]

    x = np.append(β, 1.0)
    while constraint(x)[0] > (math.sqrt(max(share * J, 0.0)) - 1) / 2:
        gap /= 2
    x, settled = _shortest(constraint, x, length)
    norm = math.sqrt(length @ x**2)
    spread = math.hypot(x[κ], x[-1])
    overlap = law.cos * x[0] + math.sqrt(1 - law.cos**2) * x[κ] if law.query else x[κ]
    bias = x[size - 1] * math.sqrt(nodes.weight @ nodes.r**2) if intercept else 0.0
    found = Margin(
        margin=gap / norm,
        test_error=law.misread(float(overlap), float(x[0]) if law.query else 0.0, spread, bias),
        signal=float(overlap / norm),
        bias=float(bias / norm),
    )
    if not settled:
        raise ConvergenceError(
            f"alpha = {alpha:g}: the margin was not found to a relative 1e-7", found
        )
    return found


def _shortest(
    constraint: Callable[[Array], tuple[float, Array, Array]], x: Array, length: Array
) -> tuple[Array, bool]:
    """Minimise ½Σ length·x² where a convex function is ≤ 0, from x inside; and whether it did.

    Newton's method on ½Σ length·x² − barrier·log(−function) as the barrier falls, then on the
    conditions of Karush, Kuhn and Tucker themselves.
    """

    def cost(x: Array, value: float) -> float:
        return length @ x**2 / 2 - barrier * math.log(-value) if value < 0 < x[-1] else math.inf

    (value, slope, curvature), barrier = constraint(x), length @ x**2
    while barrier > 1e-6 * (length @ x**2):
        barrier /= 10
        for _ in range(100):
            force = -barrier / value
            gradient = length * x + force * slope
            hessian = np.diag(length) + force * curvature
            hessian += np.outer(slope, slope) * force**2 / barrier
            try:
                step = -np.linalg.solve(hessian, gradient)
            except np.linalg.LinAlgError:
                return x, False
            decrement, part, level = -gradient @ step, 1.0, cost(x, value)
            if decrement < 1e-3 * barrier:
                break
            while (
                cost(x + part * step, constraint(x + part * step)[0]) > level - part * decrement / 4
            ):
                part /= 2
            x = x + part * step
            value, slope, curvature = constraint(x)
    force, miss = -barrier / value, np.inf
    for _ in range(20):
        dual = length * x + force * slope
        miss = max(np.linalg.norm(dual) / math.sqrt(length @ x**2), abs(value / x[-1]))
        if miss < 1e-12 or not force > 0:
            break
        along = np.diag(length) + force * curvature
        matrix = np.block([[along, slope[:, None]], [slope, np.zeros(1)]])
        try:
            step = np.linalg.solve(matrix, -np.append(dual, value))
        except np.linalg.LinAlgError:
            break
        x, force = x + step[:-1], force + step[-1]
        value, slope, curvature = constraint(x)
    return x, bool(miss < 1e-8 and force > 0)


@in_one_thread
def fit_margin(F: ArrayLike, y: ArrayLike, *, intercept: bool = True) -> Hyperplane:
    """The hyperplane with the nearest row of F as far away as possible, its labels all right.

    The difference of the nearest points of the convex hulls of the two classes is its normal
    (without intercept: the point of the hull of the y_i f_i nearest the origin). Non-negative least
    squares finds the rows they rest on, among a growing set of rows; a linear solve makes the
    scores of these equal. `ConvergenceError` if some row is then nearer, by more than 1e-8.

    Rows that no hyperplane separates have no margin: that is proved before anything is solved, and
    is refused as bad input. `fit_readout` without ridge cannot know before it solves that a readout
    does not exist, and says so in a `ConvergenceError` that carries what it had.

    Examples
    --------
    >>> found = fit_margin([[0.0, 0.0], [2.0, 0.0], [5.0, 1.0]], [-1, 1, 1])
    >>> found.w.round(6).tolist(), round(found.b, 6), round(found.margin, 6)
    ([1.0, 0.0], -1.0, 1.0)
    """
    F, intercept = check_array("F", F, "n", "d"), check_flag("intercept", intercept)
    y = check_labels("y", y, len(F))
    if intercept and (y == y[0]).all():
        raise ValueError(f"y = {y[0]} for all rows is not allowed: y must contain both labels")
    separable, hardest = separability(F, y, intercept=intercept)
    if not separable:
        raise ValueError("F, y are not allowed: no hyperplane separates the rows by their labels")
    rows, p = F * y[:, None], F.shape[1]
    scores = rows @ hardest[:p] + y * (hardest[p] if intercept else 0.0)
    working = np.argsort(scores)[: 3 * p]
    if intercept:  # a row of either class, or the offset is not held
        working = np.union1d(working, [np.flatnonzero(y == label)[:1] for label in np.unique(y)])
    for _ in range(100):
        try:
            w, b = _rest_on(rows[working], y[working], intercept)
        except RuntimeError as error:
            w, b = hardest[:p], float(hardest[p]) if intercept else 0.0
            size = float(np.linalg.norm(w))
            raise ConvergenceError(
                f"non-negative least squares: {error}; remove nearly dependent features",
                Hyperplane(w / size, b / size, float(scores.min() / size)),
            ) from error
        scores = rows @ w + b * y
        near = np.argsort(scores)[:p]
        near = np.setdiff1d(near[scores[near] < 1 - 1e-9], working)
        if not near.size:
            break
        working = np.append(working, near)
    size = float(np.linalg.norm(w))
    found = Hyperplane(w / size, float(b / size), float(scores.min() / size))
    if not scores.min() > 1 - 1e-8:
        raise ConvergenceError("the nearest rows are not equally near; rescale the features", found)
    return found


def _rest_on(rows: Array, y: Array, intercept: bool) -> tuple[Array, float]:
    """The shortest w with ⟨w, rows⟩ + b·y ≥ 1."""
    n, p = rows.shape
    offset = 1e3 * math.sqrt(np.mean(rows**2) * p)  # the larger, the less an intercept costs
    A = np.column_stack([rows, offset * y]) if intercept else rows
    c = nnls(np.vstack([A.T, np.ones(n)]), np.eye(A.shape[1] + 1)[-1], maxiter=30 * (n + p))[0]
    on = np.flatnonzero(c > 1e-12 * c.max())
    gram = rows[on] @ rows[on].T
    if intercept:
        gram = np.block([[gram, y[on, None]], [y[None, on], np.zeros((1, 1))]])
    target = np.append(np.ones(len(on)), [0.0] * intercept)
    c = np.linalg.lstsq(gram, target, rcond=None)[0]
    return c[: len(on)] @ rows[on], float(c[-1]) if intercept else 0.0


@in_one_thread
def simulate_margin(
    law: FeatureLaw, d: int, alpha: float, rng: np.random.Generator, *, intercept: bool = True
) -> Margin:
    """Draw n = αd samples of the law, find their hyperplane of largest margin and measure it.

    Refuses data that no hyperplane separates, which near the capacity is a matter of luck.

    Examples
    --------
    >>> from needle.data.classifiers import pooled
    >>> from needle.data.tokens import SparseTokens
    >>> law = pooled(SparseTokens(L=10, R=1, theta=5.0, pi=0.5))
    >>> simulate_margin(law, 60, 1.0, np.random.default_rng(0)).margin > 0
    True
    """
    d, alpha = check_integer("d", d, 1), check_real("alpha", alpha, 0, open_low=True)
    F, y = check_is("law", law, FeatureLaw).sample(max(1, round(alpha * d)), d, check_rng(rng))
    w, b, margin = fit_margin(F, y, intercept=intercept)
    return Margin(margin, error_rate(law, w, b, rng), law.signal(w), b)
