"""Keys, values and several queries: where they are more than names.

* The label is the value: every bag holds one needle θ_k ξ_k + y θ_v ξ_v. Two gradient steps from
  zero leave the readout along ξ_v and the query along ξ_k (prop-11-values).
* Needles along one of K orthonormal directions: the positives' second moment finds their span, and
  H queries see of a needle at most the share H/K of its squared strength, on average over the
  directions (prop-11-queries).

Chapter 11.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import log_ndtr, ndtr

from ..data.tokens import SparseTokens, check_model
from ..kit.checks import check_integer, check_real, check_rng
from .rules import OracleError, minimum

Array = np.ndarray


def value_cosine(L: int, theta_k: float, theta_v: float, alpha0: float) -> float:
    """Cosine of the two-step query with the key where the label is the value, d → ∞, small η_w.

    With ω = θ_v/(2L), ρ² = ω² + 1/(4α₀L), S = θ_kθ_vω(1−1/L) and N = ((L−1)ρ² + θ_v²ω²)/α₀ it is
    (1 + N/S²)^{−1/2}; y = ±1 with equal chance, α₀d bags.

    Examples
    --------
    >>> [round(value_cosine(L, 4.0, 4.0, 2.0), 3) for L in (20, 50, 200)]
    [0.953, 0.881, 0.508]
    """
    L, alpha0 = check_integer("L", L, 2), check_real("alpha0", alpha0, 0, open_low=True)
    theta_k, theta_v = check_real("theta_k", theta_k, 0), check_real("theta_v", theta_v, 0)
    omega = theta_v / (2 * L)
    rho2 = omega**2 + 1 / (4 * alpha0 * L)
    signal = theta_k * theta_v * omega * (1 - 1 / L)
    noise = ((L - 1) * rho2 + (theta_v * omega) ** 2) / alpha0
    return signal / math.hypot(signal, math.sqrt(noise))


def sample_values(
    L: int, theta_k: float, theta_v: float, n: int, d: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """n literal bags (n, L, d) whose label is the value, ξ_k and ξ_v the first basis vectors.

    >>> X, y = sample_values(3, 50.0, 40.0, 4, 5, np.random.default_rng(0))
    >>> bool((X[:, 0, 0] > 40).all() and (np.sign(X[:, 0, 1]) == y).all())
    True
    """
    L, n, d = check_integer("L", L, 2), check_integer("n", n, 1), check_integer("d", d, 2)
    theta_k, theta_v = check_real("theta_k", theta_k, 0), check_real("theta_v", theta_v, 0)
    y = check_rng(rng).choice([-1, 1], n)
    X = rng.standard_normal((n, L, d))
    X[:, 0, 0] += theta_k
    X[:, 0, 1] += y * theta_v
    return X, y


def span_cosine2(model: SparseTokens, directions: int, alpha: float) -> float:
    """Mean squared cosine of K needle directions with the positives' K leading eigenvectors.

    One needle a bag, along one of K = `directions` orthonormal ξ_k with equal chance; αd bags. With
    ℓ = θ²/(LK) and γ = 1/(παL) it is (1 − γ/ℓ²)/(1 + γ/ℓ), 0 below πα = LK²/θ⁴, as d → ∞.

    Examples
    --------
    >>> model = SparseTokens(L=30, R=1, theta=5.0, pi=0.5)
    >>> [round(span_cosine2(model, K, 8.0), 3) for K in (1, 2, 4)]
    [0.978, 0.933, 0.777]
    """
    m, K = check_model(model), check_integer("directions", directions, 1)
    if m.R > 1:
        raise ValueError(f"R = {m.R} is not allowed: for a span, R must be 1")
    spike = m.theta**2 / (m.L * K)
    shape = 1 / (m.pi * check_real("alpha", alpha, 0, open_low=True) * m.L)
    if spike**2 <= shape:
        return 0.0
    return (1 - shape / spike**2) / (1 + shape / spike)


def queries_error(
    L: int, theta: float, directions: int, queries: int, pi: float = 0.5
) -> OracleError:
    """Least error of comparing the largest of HL projections with a threshold.

    A needle takes one of K = `directions` orthonormal directions, each query the normalized sum of
    its share of them, as even as can be: a needle stands at θ/√(directions of its query), so H
    queries need θ√(H/K) ≳ √(2 log HL), and one query serves while K < θ²/(2 log L).

    Examples
    --------
    >>> [round(float(queries_error(1000, 10.0, 8, H)), 4) for H in (1, 2, 4, 8)]
    [0.2961, 0.1051, 0.007, 0.0]
    """
    L, theta = check_integer("L", L, 2), check_real("theta", theta, 0)
    K = check_integer("directions", directions, 1)
    H = check_integer("queries", queries, 1, K)
    pi = check_real("pi", pi, 0, 1, open_low=True, open_high=True)
    size = np.full(H, K // H) + (np.arange(H) < K % H)

    def error(t: Array) -> Array:
        t = np.atleast_1d(t)
        below = ndtr(t[:, None] - theta / np.sqrt(size)) @ (size / K)
        quiet = log_ndtr(t)
        found = pi * np.exp((H * L - 1) * quiet) * below - (1 - pi) * np.expm1(H * L * quiet)
        return np.asarray(found if len(found) > 1 else found[0])

    high = 14 + theta + math.sqrt(2 * math.log(H * L))
    t, least = minimum(error, -9, high)
    return OracleError(min(least, pi, 1 - pi), threshold=t)
