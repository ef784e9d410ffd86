"""Readouts trained on features: ridge regression in closed form, logistic regression to 1e-8.

Appendix C, def-c-readout.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, LinAlgWarning, lstsq, solve
from scipy.optimize import minimize
from scipy.sparse.linalg import LinearOperator, cg
from scipy.special import ndtr

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
from ..kit.losses import SMOOTH, get_loss
from ..kit.records import ConvergenceError, Readout
from ..kit.threads import in_one_thread_below
from .support import support_vectors

Array = np.ndarray
_GRADIENT = 1e-8
_SMALL = 2**22  # numbers, below which threads cost more than they bring


class Fit(NamedTuple):
    """A trained readout w (p,), b, with what it achieves on its own training set."""

    w: Array
    b: float
    train_loss: float
    train_error: float
    converged: bool
    iterations: int


@in_one_thread_below(_SMALL)
def _ridge(F: Array, y: Array, lam: float, intercept: bool) -> tuple[Array, float]:
    n, p = F.shape
    offset, mean = (F.mean(axis=0), y.mean()) if intercept else (np.zeros(p), 0.0)
    target = y - mean
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", LinAlgWarning)
            if p < n:
                gram = F.T @ F
                gram -= n * np.outer(offset, offset)
                gram[np.diag_indices(p)] += n * lam
                w = solve(gram, F.T @ target, assume_a="pos", overwrite_a=True)
            else:  # F Fᵀ, centered, invertible on what is orthogonal to 1, and made so along 1
                gram = F @ F.T
                if intercept:
                    along = F @ offset
                    gram -= along[:, None] + along - offset @ offset - np.trace(gram) / n**2
                gram[np.diag_indices(n)] += n * lam
                w = F.T @ solve(gram, target, assume_a="pos", overwrite_a=True)
    except (LinAlgError, LinAlgWarning):  # rank-deficient: the solution of least norm
        w = lstsq(F - offset, target, cond=max(n, p) * np.finfo(float).eps)[0]
    return w, mean - offset @ w


@in_one_thread_below(_SMALL)
def _logistic(F: Array, y: Array, lam: float, intercept: bool) -> tuple[Array, float, int]:
    """L-BFGS to a gradient near 1e-6, then Newton steps by conjugate gradients to 1e-8.

    The last stretch cannot be walked by comparing losses, which agree to rounding by then. All but
    the gradients between Newton steps is done in single precision, at half the traffic of memory;
    if that is not enough the same is repeated in double.
    """
    (n, p), extra = F.shape, int(intercept)
    loss = get_loss("logistic")
    if intercept and np.all(y == y[0]):
        raise ValueError(
            f"y = {y[0]} for all {n} samples is not allowed: with an intercept the logistic loss "
            "has no minimiser, y must contain both labels"
        )

    def score(v: Array, F: Array = F) -> Array:
        return F @ v[:p].astype(F.dtype) + v[p:].sum()

    def pull_back(x: Array, v: Array, F: Array = F) -> Array:
        pull = x.astype(F.dtype) @ F + lam * v[:p]
        return np.concatenate([pull, x.sum(keepdims=True)[:extra]])

    def objective(v: Array, F: Array = F) -> tuple[float, Array]:
        z = score(v, F)
        value = loss.value(z, y).mean() + lam / 2 * (v[:p] @ v[:p])
        return value, pull_back(loss.first(z, y) / n, v, F)

    def refuse_if_separating(v: Array) -> None:
        if lam == 0 and np.all(y * score(v) > 0):
            raise ConvergenceError(
                "lam = 0: no minimiser exists, the data are separable; take a larger lam",
                _finish(F, y, v[:p], float(v[p:].sum()), "logistic", iterations, False),
            )

    goal = min(_GRADIENT, max(1e-2 * lam, 1e-14)) if lam else _GRADIENT  # |w − w*| ≤ goal/lam
    v, iterations = np.zeros(p + extra), 0
    for data, tolerance in (F.astype(np.float32), 3e-6), (F, goal / 10):
        best = minimize(
            objective, v, (data,), jac=True, method="L-BFGS-B", callback=refuse_if_separating,
            options={"gtol": tolerance, "ftol": 0, "maxiter": 20_000, "maxfun": 40_000},
        )  # fmt: skip
        v, iterations = best.x, iterations + best.nit
        gradient = objective(v)[1]
        for _ in range(10):
            size = np.linalg.norm(gradient)
            if size <= goal:
                refuse_if_separating(v)
                return v[:p], float(v[p:].sum()), iterations
            curvature = loss.second(score(v), y) / n
            hessian = LinearOperator(
                (p + extra,) * 2, dtype=float,
                matvec=lambda u, c=curvature, F=data: pull_back(c * score(u, F), u, F),
            )  # fmt: skip
            rtol = max(goal / size / 2, 1e-3)
            step = cg(hessian, gradient, rtol=rtol, maxiter=1000)[0]
            gradient = objective(v - step)[1]
            iterations += 1
            if not np.linalg.norm(gradient) < size:
                break
            v = v - step
    raise ConvergenceError(
        f"lam = {lam:g}: the logistic readout stopped at gradient norm {size:.1e} > {goal:.1e}; "
        "take a larger lam",
        _finish(F, y, v[:p], float(v[p:].sum()), "logistic", iterations, False),
    )


def _finish(
    F: Array, y: Array, w: Array, b: float, loss: str, iterations: int, converged: bool = True
) -> Fit:
    z = F @ w + b
    value, wrong = get_loss(loss).value(z, y).mean(), np.mean(y * z <= 0)
    return Fit(w, float(b), float(value), float(wrong), converged, int(iterations))


def fit_readout(
    F: Array, y: Array, lam: float, *, loss: str = "logistic", intercept: bool = True
) -> Fit:
    """Minimise (1/n) Σᵢ ℓ(⟨w, Fᵢ⟩ + b; yᵢ) + (λ/2)|w|² over w, and b if `intercept`.

    Appendix C, def-c-readout.

    Square loss: in closed form from the smaller of FᵀF and FFᵀ; λ = 0 gives the least-squares
    solution of least norm. Logistic loss: to gradient norm 1e-8; where λ = 0 and the data are
    separable no minimiser exists: `ConvergenceError`, its `estimate` separates them. Hinge loss
    (a linear support vector machine, λ > 0): until objective and dual agree to 1e-9.

    Parameters
    ----------
    F : features (n, p);  y : labels in {−1, +1} (n,);  lam : λ ≥ 0

    Examples
    --------
    >>> F, y = np.array([[1.0], [-1.0], [2.0]]), np.array([1, -1, -1])
    >>> fit = fit_readout(F, y, 0.0, loss="square", intercept=False)
    >>> fit.w.tolist(), round(fit.train_loss, 6)
    ([0.0], 0.5)
    >>> fit_readout(F[:2], y[:2], 0.0)
    Traceback (most recent call last):
    ...
    needle.kit.records.ConvergenceError: lam = 0: no minimiser exists, the data are separable; take
    a ...
    """
    kind = get_loss(loss, (*SMOOTH, "hinge"))
    lam = check_real("lam", lam, 0, open_low=loss == "hinge")
    F, intercept = check_array("F", F, "n", "p"), check_flag("intercept", intercept)
    y = check_labels("y", y, len(F))
    if kind.name == "square":
        w, b = _ridge(F, y, lam, intercept)
        iterations = 1
    elif kind.name == "hinge":
        w, b, iterations, settled = support_vectors(F, y, lam, intercept)
        if not settled:
            raise ConvergenceError(
                f"lam = {lam:g}: the hinge readout stopped short of its dual; take a larger lam",
                _finish(F, y, w, b, loss, iterations, False),
            )
    else:
        w, b, iterations = _logistic(F, y, lam, intercept)
    return _finish(F, y, w, b, loss, iterations)


def error_rate(
    law: FeatureLaw, w: Array, b: float, rng: np.random.Generator | None = None
) -> float:
    """P(y(⟨w, f⟩ + b) ≤ 0) on a new sample of the law, by conditioning: E Φ(−y·mean/sd).

    Exact where each class has one (a, c, r), and for the vectorized law. For attention it is an
    average over `law.draws` fresh coefficients of each class, for which `rng` is needed. It is
    unbiased and adds a variance (π²V₊ + (1−π)²V₋)/draws, where V± ≤ e±(1 − e±) is the variance of
    Φ(−y·mean/sd) within a class of error e±.

    Examples
    --------
    >>> from needle.data.classifiers import gaussian_mixture
    >>> law = gaussian_mixture(var_pos=1.0, var_neg=1.0)
    >>> round(error_rate(law, np.array([1.0, 0.0]), 0.0), 4)
    0.1587
    """
    y, mean, sd, weight = check_is("law", law, FeatureLaw).scores(w, b, rng)
    with np.errstate(divide="ignore", invalid="ignore"):
        margin = np.nan_to_num(y * mean / sd, nan=-np.inf)  # a score of exactly 0 is an error
    return float(weight @ ndtr(-margin))


def simulate_readout(
    law: FeatureLaw,
    d: int,
    alpha: float,
    lam: float,
    rng: np.random.Generator,
    *,
    loss: str = "logistic",
    intercept: bool = True,
) -> Readout:
    """Train a readout on n = αd samples of the law at token dimension d, and measure it.

    The result is the record `needle.predict_readout` predicts for d → ∞; its test error
    is that of this very readout, by `error_rate` on fresh coefficients.

    Examples
    --------
    >>> from needle.data.classifiers import pooled
    >>> from needle.data.tokens import SparseTokens
    >>> law = pooled(SparseTokens(L=10, R=1, theta=5.0, pi=0.5))
    >>> simulate_readout(law, 200, 2.0, 0.01, np.random.default_rng(0)).converged
    True
    """
    d, alpha = check_integer("d", d, 1), check_real("alpha", alpha, 0, open_low=True)
    law = check_is("law", law, FeatureLaw)
    F, y = law.sample(max(1, round(alpha * d)), d, rng := check_rng(rng))
    fit = fit_readout(F, y, lam, loss=loss, intercept=intercept)
    return Readout(
        test_error=error_rate(law, fit.w, fit.b, rng),
        train_loss=fit.train_loss,
        train_error=fit.train_error,
        signal=law.signal(fit.w),
        norm=float(np.linalg.norm(fit.w)),
        bias=fit.b,
        converged=fit.converged,
        iterations=fit.iterations,
    )
