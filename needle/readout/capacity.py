"""The capacity of a feature law: how many samples a hyperplane separates, drawn and predicted.

A data set is drawn until it is no longer separable (`needle.readout.separable`); in the limit of
large d the threshold and its width follow from one minimum. Appendix D, thm-d-capacity, with eq-d-J
in closed form.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr

from ..data.law import FeatureLaw, Nodes
from ..kit.checks import check_flag, check_integer, check_is, check_rng
from ..kit.records import ConvergenceError
from ..kit.threads import in_one_thread
from .separable import Separability as Separability
from .separable import prepared, signed_rows
from .separable import separability as separability


@in_one_thread
def simulate_capacity(
    law: FeatureLaw, d: int, rng: np.random.Generator, *, intercept: bool = True
) -> float:
    """Draw samples one after the other; return n/d for the last n at which all are separable.

    More samples are harder to separate, so n is found by bisection, each step certified. The share
    of data sets of n = αd samples that are separable is the share of results that are ≥ α.

    Examples
    --------
    >>> from needle.data.classifiers import gaussian_mixture
    >>> law = gaussian_mixture(mean=0.0, var_pos=1.0, var_neg=1.0)  # labels by tossing a coin
    >>> 1.2 < simulate_capacity(law, 40, np.random.default_rng(0)) < 2.8
    True
    """
    law, d = check_is("law", law, FeatureLaw), check_integer("d", d, 2)
    A = signed_rows(*law.sample(4 * law.copies * d, d, check_rng(rng)), intercept)
    rows = prepared(A)
    low, high = 0, math.inf  # the first `low` samples are separable, the first `high` are not
    while high - low > 1:
        n = len(A) if high == math.inf else int(low + high) // 2
        separable, certificate = rows.first(n).decide()
        if not separable:
            high = int(np.flatnonzero(certificate)[-1]) + 1
            continue
        wrong = np.flatnonzero(A[n:] @ certificate <= 0)
        low = n + int(wrong[0]) if wrong.size else len(A)
        if low == len(A):
            A = np.concatenate([A, signed_rows(*law.sample(len(A), d, rng), intercept)])
            rows = prepared(A)
    return low / d


@in_one_thread
def predict_capacity(law: FeatureLaw, *, intercept: bool = True) -> float:
    """The largest α = n/d at which data of this law are separable, in the limit of large d.

    1/α* = min over (ν, κ, b) of E[(−y(θaμ + cν + b)/r − √(1+κ²) G)₊²],  μ = s_q ν + √(1−s_q²) κ,

    with G ~ N(0, 1) integrated in closed form: E[(sG − m)₊²] = (m²+s²)Φ(−m/s) − msφ(m/s). Above
    α* separation is impossible by Gordon's inequality; below it, convexity makes the bound exact.
    The square root of the expectation is convex (it is a norm of a convex function), and Newton's
    method is applied to it. Exact for two Gaussians; for attention the points of the law leave a
    relative error of about 1e-3 (1e-2 at capacities in the thousands). The answer is infinite if
    these points can themselves be separated along q̂: the true capacity is then astronomical.

    Parameters
    ----------
    law : any feature law; for the vectorized model n/d counts tokens' dimension d, so that its
        capacity is L times that of its two Gaussians
    intercept : whether b is free, or zero

    Examples
    --------
    >>> from needle.data.classifiers import gaussian_mixture, pooled
    >>> from needle.data.tokens import SparseTokens
    >>> round(predict_capacity(pooled(SparseTokens(L=10, R=1, theta=5.0, pi=0.5))), 4)
    2.9501
    >>> round(predict_capacity(gaussian_mixture(var_pos=1, var_neg=1), intercept=False), 6)
    3.700033
    """
    points = check_is("law", law, FeatureLaw).points
    return _optimum(law, points, check_flag("intercept", intercept))[0]


@in_one_thread
def predict_capacity_width(law: FeatureLaw, *, intercept: bool = True) -> float:
    """The σ of P(n = αd samples are separable) ≃ Φ((α* − α)√d/σ), in the limit of large d.

    With Q = (√(1+κ²) G − y(θaμ + cν + b)/r)₊, the repair of a sample at the minimum of
    `predict_capacity`, where E Q² = 1/α*,

        σ² = α*³ Var(Q²) − 2α*²,

    and G integrated in closed form: E[(sG − m)₊⁴] = s⁴((u⁴+6u²+3)Φ(−u) − (u³+5u)φ(u)), u = m/s.
    σ²/d is the variance of `simulate_capacity` for large d. Proved from the conic Steiner formula:
    Appendix D, equation (eq-d-width). For coin labels σ = √2; for the vectorized model √L times
    the σ of its two Gaussians.

    Raises
    ------
    ConvergenceError : where the capacity is infinite, so that no transition is within reach.

    Examples
    --------
    >>> from needle.data.classifiers import gaussian_mixture, pooled
    >>> from needle.data.tokens import SparseTokens
    >>> coin = gaussian_mixture(mean=0.0, var_pos=1.0, var_neg=1.0)
    >>> round(predict_capacity_width(coin) ** 2, 9)
    2.0
    >>> round(predict_capacity_width(pooled(SparseTokens(L=10, R=1, theta=5.0, pi=0.5))), 3)
    2.935
    """
    points = check_is("law", law, FeatureLaw).points
    capacity, β = _optimum(law, points, check_flag("intercept", intercept))
    if capacity == math.inf:
        raise ConvergenceError(
            "the capacity is infinite to the accuracy of the law's points, and so is its width",
            math.inf,
        )
    X, κ = margin_rows(law, points, len(β) > 1 + law.query)
    each = capacity / law.copies
    s = math.hypot(1, β[κ])
    u = X @ β / s
    density = np.exp(-(u**2) / 2) / math.sqrt(2 * math.pi)
    fourth = s**4 * ((u**4 + 6 * u**2 + 3) * ndtr(-u) - (u**3 + 5 * u) * density)
    variance = each * float(points.weight @ fourth) - 1 / each - 2  # over the square of `each`
    if not 0 < variance < math.inf:
        raise ConvergenceError(
            f"the capacity {capacity:.0e} is too large for its width to be told", math.inf
        )
    return each * math.sqrt(law.copies * variance)


def simulate_repair(law: FeatureLaw, n: int, rng: np.random.Generator) -> float:
    """One draw of M_n, the least sum of squared repairs of n samples: what a width is made of.

    M_n = min over β of Σ_i (h_i + κg_i − t_i(β))₊² with fresh h, g ~ N(0, 1): a problem in three
    variables for each draw, with no hyperplane to be found. Var(M_n)/n → Var(Q²), so at n = α*d

        σ² = α*³ Var(M_n)/n − 2α*²

    checks `predict_capacity_width` far more sharply than separable shares do: thousands of draws
    cost seconds. Appendix D, eq-d-steiner. Not for the vectorized law.

    Examples
    --------
    >>> from needle.data.classifiers import gaussian_mixture
    >>> coin, rng = gaussian_mixture(mean=0.0, var_pos=1.0, var_neg=1.0), np.random.default_rng(0)
    >>> repairs = [simulate_repair(coin, 400, rng) for _ in range(500)]
    >>> bool(0.45 < np.mean(repairs) / 400 < 0.55)
    True
    """
    law, n = check_is("law", law, FeatureLaw), check_integer("n", n, 1)
    if law.copies > 1:
        raise ValueError("law = vectorized is not allowed: law must have one copy of the features")
    y = np.where(check_rng(rng).random(n) < law.pi, 1, -1)
    a, c, r = law.coefficients(y, rng)
    X, κ = margin_rows(law, Nodes(y, a, c, r, np.full(n, 1 / n)), True)
    h, g = rng.standard_normal((2, n))
    X[:, κ] -= g
    β, left = np.zeros(X.shape[1]), h
    for _ in range(200):  # Newton on a convex piecewise quadratic: exact once the pieces are right
        pulled = X[left > 0]
        gradient = pulled.T @ left[left > 0]
        step = np.linalg.lstsq(pulled.T @ pulled, gradient, rcond=None)[0]
        total = float(np.square(left[left > 0]).sum())
        if gradient @ step <= 1e-12 * (total + 1e-300):
            break
        while True:
            left = h - X @ (β + step)
            if np.square(left[left > 0]).sum() <= total - 0.1 * (gradient @ step):
                break
            step /= 2
        β = β + step
    return float(np.square(left[left > 0]).sum())


def margin_rows(law: FeatureLaw, points: Nodes, intercept: bool) -> tuple[np.ndarray, int]:
    """Rows X with Xβ = y(θaμ + cν + b)/r at β = (ν, κ, b), b in units of the noise; κ's column."""
    y, a, c, r, weight = points
    signal = law.theta * a
    columns = [signal]
    if law.query:  # ν along q̂, κ across it
        columns = [law.cos * signal + c, math.sqrt(1 - law.cos**2) * signal]
    κ = len(columns) - 1
    if intercept:
        columns.append(np.full_like(r, math.sqrt(weight @ r**2)))
    return np.column_stack(columns) * (y / r)[:, None], κ


def _optimum(law: FeatureLaw, points: Nodes, intercept: bool) -> tuple[float, np.ndarray]:
    """The capacity and the β at which it is reached."""
    X, κ = margin_rows(law, points, intercept)
    J, β = np.inf, np.zeros(X.shape[1])
    for every in (17, 1) if len(X) > 1000 else (1,):  # few points first; 17 is prime to Sobol's 2
        part = slice(None, None, every)
        J, β, settled = least_repair(X[part], points.weight[part], κ, β)
    capacity = law.copies / J if J else math.inf
    if not settled:
        raise ConvergenceError(
            f"{law.name}, theta = {law.theta:g}, pi = {law.pi:g}: Newton's method did not settle "
            "on the capacity; take a law with less extreme theta, pi or nodes",
            capacity,
        )
    return capacity, β


def least_repair(
    X: np.ndarray, weight: np.ndarray, κ: int, β: np.ndarray, enough: float = 0.0
) -> tuple[float, np.ndarray, bool]:
    """The least expected square, where it is taken (the origin if it is 0), and whether it is.

    Any value below `enough` will do.
    """
    J, gradient, hessian = squared_repair(X, weight, κ, β)
    for _ in range(2000):
        if not math.isfinite(J):
            break
        if enough > J:
            return J, β, True
        if J < 1e-250:
            return 0.0, 0 * β, True
        curvature = hessian - np.outer(gradient, gradient) / (2 * J)
        step = -np.linalg.pinv(curvature, rcond=1e-14, hermitian=True) @ gradient
        decrement = -gradient @ step
        if decrement <= 1e-13 * J:
            return J, β, True
        while (trial := squared_repair(X, weight, κ, β + step))[0] > J - 0.1 * decrement:
            step, decrement = step / 2, decrement / 2
            if decrement <= 1e-13 * J:
                break
        β = β + step
        J, gradient, hessian = trial
    return J, β, False


def squared_repair(
    X: np.ndarray, weight: np.ndarray, κ: int, β: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray]:
    """E[(sG − t)₊²] with t = Xβ and s = √(1 + β_κ²), its gradient and its Hessian in β."""
    t, s = X @ β, math.hypot(1, β[κ])
    u = t / s
    below, density = ndtr(-u), np.exp(-(u**2) / 2) / math.sqrt(2 * math.pi)
    slope = β[κ] / s  # ds/dβ_κ; d²s/dβ_κ² = 1/s³
    value = weight @ (s**2 * ((1 + u**2) * below - u * density))
    gradient = X.T @ (weight * 2 * s * (u * below - density))
    gradient[κ] += weight @ (2 * s * below) * slope
    hessian = X.T @ (X * (2 * weight * below)[:, None])
    cross = X.T @ (weight * -2 * density) * slope
    hessian[κ] += cross
    hessian[:, κ] += cross
    hessian[κ, κ] += weight @ (2 * (below + u * density) * slope**2 + 2 * below / s**2)
    return float(value), gradient, hessian
