"""More heads: needles of both signs, which no average sees and the second moment does.

If a needle is +θξ or −θξ with equal chance, the mean of a bag holds nothing and the first of two
gradient steps learns nothing. The matrix that the second step applies to w,

    M = (1/n) Σ γ_i X_iᵀ P X_i,   γ_i = −ℓ'(0; y_i),   P = I − 11ᵀ/L,

holds θ²ξξᵀ whatever the signs. Its leading eigenvector is the query of two heads, +q and −q. For
every loss γ_i ∝ y_i, so that the loss does not matter; here γ_i = y_i/2, the logistic one's.
Chapter 11, thm-11-second.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize_scalar
from scipy.sparse.linalg import LinearOperator, eigsh
from scipy.special import log_ndtr, ndtr

from ..data.tokens import SparseTokens, Tokens, check_model
from ..kit.checks import check_array, check_flag, check_integer, check_labels, check_real, check_rng

Array = np.ndarray


def sample_signed(model: SparseTokens, n: int, d: int, rng: np.random.Generator) -> Tokens:
    """Bags in which every needle has a sign of its own: X = θ ε∘v ξᵀ + Z, ξ the first basis vector.

    >>> model, rng = SparseTokens(L=10, R=1, theta=50.0, pi=0.5), np.random.default_rng(0)
    >>> X, y, where = sample_signed(model, 100, 5, rng)
    >>> sorted(set(np.sign(X[where][:, 0]).tolist()))
    [-1.0, 1.0]
    """
    X, y, where = check_model(model).sample(n, d, check_rng(rng))
    signs = rng.choice([-1.0, 1.0], size=where.shape)
    X[:, :, 0] += model.theta * where * (signs - 1)
    return Tokens(X, y, where)


def second_moment_cos(model: SparseTokens, alpha0: float, *, positives: bool = False) -> float:
    """|⟨ξ, leading eigenvector of M⟩| as d → ∞ with n/d = α₀, for needles of any signs.

    With S = γ₊(πθ²R̄ + 1/α₀), R(g) = (L−1) E_y γ_y/(1 − γ_y g/α₀) and m₊ = πα₀θ²R̄,

        cos² = m₊/(1 + m₊) · (1 − R′(1/S)/S²)₊,

    R̄ = R(L−R)/L for equal signs and, on average, R for independent ones (equal to order R/L).
    For large L it tends to 1 − LΓ̄₂/(α₀(πγ₊θ²R)²), so it is above 0 from θ ≃ (L/(α₀π²R²))^{1/4}
    on. The echo adds a multiple of I to M and turns no eigenvector. With `positives` alone M has
    the same signal in less noise: above 0 from θ ≃ (L/(πα₀R²))^{1/4} on, whatever the loss.

    Examples
    --------
    >>> model = SparseTokens(L=100, R=1, theta=5.0, pi=0.5)
    >>> [round(second_moment_cos(model, alpha0), 3) for alpha0 in (0.2, 0.7, 2.0)]
    [0.0, 0.457, 0.82]
    """
    m, alpha0 = check_model(model), check_real("alpha0", alpha0, 0, open_low=True)
    pull = {1: 0.5, -1: -0.5}
    strength = m.pi * m.theta**2 * m.R * (m.L - m.R) / m.L
    S = pull[1] * (strength + 1 / alpha0)
    shares = ((1, m.pi),) if check_flag("positives", positives) else ((1, m.pi), (-1, 1 - m.pi))
    slope = sum(
        share * (m.L - 1) * pull[y] ** 2 / alpha0 / (1 - pull[y] / (S * alpha0)) ** 2
        for y, share in shares
        if strength > 0
    )
    if strength == 0 or slope >= S**2:
        return 0.0
    seen = alpha0 * strength
    return math.sqrt(seen / (1 + seen) * (1 - slope / S**2))


def second_moment_query(X: ArrayLike, y: ArrayLike, *, positives: bool = False) -> Array:
    """The leading unit eigenvector of M on given tokens (n, L, d); its sign means nothing.

    With `positives` the bags of label −1, pure noise, are left out.

    >>> model, rng = SparseTokens(L=10, R=1, theta=6.0, pi=0.5), np.random.default_rng(0)
    >>> X, y, _ = sample_signed(model, 400, 40, rng)
    >>> bool(abs(second_moment_query(X, y)[0]) > 0.95)
    True
    """
    tokens = check_array("X", X, "n", "L", "d")
    labels = check_labels("y", y, len(tokens))
    if check_flag("positives", positives):
        tokens, labels = tokens[labels > 0], labels[labels > 0]
    centered = tokens - tokens.mean(axis=1, keepdims=True)
    n, L, d = tokens.shape
    rows = centered.reshape(-1, d)
    weights = np.repeat(labels / 2, L) / n

    def apply(w: Array) -> Array:
        return (weights * (rows @ w.ravel())) @ rows

    if d < 3:
        return np.asarray(np.linalg.eigh((rows.T * weights) @ rows)[1][:, -1])
    start = np.random.default_rng(0).standard_normal(d)
    operator = LinearOperator((d, d), matvec=apply, dtype=float)
    return np.asarray(eigsh(operator, k=1, which="LA", v0=start, tol=1e-6)[1][:, 0])


def signed_error(L: int, theta: float, pi: float = 0.5, *, heads: int = 2) -> float:
    """Least error of comparing max h (one head) or max |h| (two) with a threshold; one needle ±θ.

    With p = Φ(t) for one head and 2Φ(t)−1 for two, P(no false alarm) = p^L; a needle of strength
    +θ or −θ stays below t with probability Φ(t∓θ), or Φ(t−θ) − Φ(−t−θ).

    Examples
    --------
    >>> [round(signed_error(1000, 6.0, heads=heads), 3) for heads in (1, 2)]
    [0.262, 0.03]
    """
    L, heads = check_integer("L", L, 2), check_integer("heads", heads, 1, 2)
    theta = check_real("theta", theta, 0)
    pi = check_real("pi", pi, 0, 1, open_low=True, open_high=True)

    def error(t: float) -> float:
        if heads == 1:
            log_quiet, low = log_ndtr(t), (ndtr(t - theta) + ndtr(t + theta)) / 2
        else:
            log_quiet, low = math.log1p(-2 * ndtr(-t)), ndtr(t - theta) - ndtr(-t - theta)
        miss = math.exp((L - 1) * log_quiet) * low
        return float(pi * miss - (1 - pi) * math.expm1(L * log_quiet))

    grid = np.linspace(1e-3, 14 + theta, 400)
    k = int(np.argmin([error(t) for t in grid]))
    bounds = grid[max(k - 1, 0)], grid[min(k + 1, 399)]
    best = minimize_scalar(error, bounds=bounds, method="bounded", options={"xatol": 1e-9})
    return min(float(best.fun), pi, 1 - pi)
