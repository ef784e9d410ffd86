"""Do gradient steps learn two hops? Three of them, each on fresh bags.

Two layers f = Σ_ℓ softmax(⟨x_ℓ^B, Mp⟩) x_ℓ^V with p = Σ_ℓ softmax(⟨x_ℓ, q⟩) x_ℓ^A start at q = 0,
M = 0 with the value read: a saddle, since both class means of the average token agree. At a saddle
the first step on M collects c p̄ᵀ with c = y Cov_ℓ(x^V, x^B), whose mean is a multiple of I; the
step on q then collects Cov_ℓ(x, x^A)Mᵀc, along the marker; and a second step on M, with p = the x^A
of the largest token along q, is clean. (`needle.oracle.hops` has the task.) Chapter 11,
prop-11-relay.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..kit.checks import check_integer, check_rng
from ..oracle.hops import _checked, sample_hops, two_hop_error, two_layers

Array = np.ndarray


@dataclass(frozen=True)
class Relay:
    """Two hops learned by three gradient steps.

    Attributes
    ----------
    first_match, query, match : cosines of M after one step with the identity, of q with e₀, and of
        M after its second step
    test_error : of two layers with hard maxima at what was learned
    """

    first_match: float
    query: float
    match: float
    test_error: float


def predict_relay(L: int, m: int, n: int, *, theta: Sequence[float], kappa: float) -> Relay:
    """Cosines after three steps on n bags each, for large n and L.

    With s = θ₂θ₃/L, σ² = (1 + 2θ₃²/L + 2θ₂²/(mL))/L and |c|² = mσ² + 2s², the noise of M₁ is
    ζ² = |c|²m(1 + κ²/(mL))L/(nκ²s²) in units of its signal, and 1/cos² = 1 + mζ². Those of q and
    of the second M are computed alike.

    Examples
    --------
    >>> found = predict_relay(30, 40, 3000, theta=(6, 6, 3), kappa=8)
    >>> round(found.first_match, 2), round(found.query, 3), round(found.match, 3)
    (0.57, 0.992, 0.924)
    """
    (L, m, strength, kappa), n = _checked(L, m, theta, kappa), check_integer("n", n, 1)
    one, two, three = strength
    s = two * three / L
    if s * kappa == 0:
        return Relay(0.0, 0.0, 0.0, 0.5)
    noise = (1 - 1 / L) * (1 + 2 * three**2 / L + 2 * two**2 / (m * L)) / L
    pull = m * noise + 2 * s * s
    zeta = pull * m * L * (1 + kappa**2 / (m * L)) / (n * (kappa * s) ** 2)
    length = (1 + m * zeta) * pull  # E|Mᵀc|²
    along = s * s * (1 + 2 * zeta) + (1 + m * zeta) * noise  # E⟨u, Mᵀc⟩²
    width, loud = 2 * m + 2, one**2 + kappa**2
    total = length * (1 + (width + 1) / L + (loud + 2 * two**2 + 2 * three**2) / L**2)
    total += kappa**2 * along * ((loud + width) / L**2 + 2 / L)
    signal = (one * kappa * s / L) ** 2
    query = 1 / math.sqrt(1 + (total / signal - 1) / n) if signal else 0.0
    again = pull * m * (1 + kappa**2 / m) / (n * (kappa * s) ** 2)
    match = 1 / math.sqrt(1 + m * again)
    error = two_hop_error(L, m, theta=theta, kappa=kappa, query_cos=query, match_cos=match)
    return Relay(1 / math.sqrt(1 + m * zeta), query, match, error)


def _collected(X: Array, y: Array) -> Array:
    """c = y Cov_ℓ(x^V, x^B) of each bag, (n, m)."""
    m, L = (X.shape[2] - 2) // 2, X.shape[1]
    value = X[:, :, -1] - X[:, :, -1].mean(axis=1, keepdims=True)
    return np.asarray(np.einsum("nl,nlm->nm", value * y[:, None], X[:, :, m + 1 : -1]) / L)


def simulate_relay(
    L: int,
    m: int,
    n: int,
    rng: np.random.Generator,
    *,
    theta: Sequence[float],
    kappa: float,
    fresh: int = 4000,
) -> Relay:
    """The same on literal tokens: three gradient steps on n bags each, errors on fresh bags.

    Examples
    --------
    >>> found = simulate_relay(
    ...     20, 10, 2000, np.random.default_rng(0), theta=(5, 5, 3), kappa=5, fresh=500
    ... )
    >>> found.query > 0.95, found.test_error < 0.15
    (True, True)
    """
    (L, m, _, _), n = _checked(L, m, theta, kappa), check_integer("n", n, 1)
    fresh, rng = check_integer("fresh", fresh, 1), check_rng(rng)
    draw = lambda size: sample_hops(L, m, size, rng, theta=theta, kappa=kappa)[:2]  # noqa: E731
    X, y = draw(n)
    first = _collected(X, y).T @ X[:, :, 1 : m + 1].mean(axis=1) / n
    X, y = draw(n)
    A = X[:, :, 1 : m + 1] - X[:, :, 1 : m + 1].mean(axis=1, keepdims=True)
    pull = np.einsum("nlm,nm->nl", A, _collected(X, y) @ first) / L
    query = np.einsum("nl,nlk->k", pull, X) / n
    X, y = draw(n)
    p = X[np.arange(n), (X @ query).argmax(axis=1), 1 : m + 1]
    match = _collected(X, y).T @ p / n
    X, y = draw(fresh)
    wrong = float(np.mean(two_layers(X, query, match) * y < 0))
    cosine = lambda M: float(np.trace(M) / math.sqrt(m) / np.linalg.norm(M))  # noqa: E731
    return Relay(cosine(first), float(query[0] / np.linalg.norm(query)), cosine(match), wrong)
