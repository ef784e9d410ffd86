"""Tokens whose noise is not white: correlated coordinates, heavy tails, and other needles.

A token is x = θ v ξ_k + σ Σ^{1/2} z. Coordinates are those in which Σ is diagonal, with eigenvalues
of mean 1, and ξ = 1/√d is spread over all of them, so that ξᵀΣᵏξ = φ_k = tr Σᵏ/d. Tails are heavy
in one of two ways: every token has a size σ of its own, or every coordinate is Student's t.
Chapter 11, prop-11-noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Unpack

import numpy as np
from scipy import stats
from scipy.special import log_ndtr, ndtr

from ..data.tokens import SparseTokens, Tokens, check_model
from ..kit.checks import (
    check_array,
    check_choice,
    check_integer,
    check_is,
    check_labels,
    check_real,
    check_rng,
)
from ..kit.records import Alignment
from .rule import StepOptions, mean_pulls, step_rule

Array = np.ndarray


@dataclass(frozen=True)
class TokenNoise:
    """The law of the noise in a token, of unit variance in a direction on average.

    Parameters
    ----------
    decay : eigenvalues of Σ are a power law, (k+½)^{−decay} for k < d, scaled to mean 1
    freedom : degrees of freedom of Student's t > 2, scaled to variance 1; ∞ is Gaussian
    heavy : "token" (one size σ for all coordinates of a token) or "coordinate"
    """

    decay: float = 0.0
    freedom: float = math.inf
    heavy: str = "token"

    def __post_init__(self) -> None:
        check_real("decay", self.decay, 0, 1)
        if self.freedom != math.inf:
            check_real("freedom", self.freedom, 2, open_low=True)
        check_choice("heavy", self.heavy, ("token", "coordinate"))

    def spectrum(self, d: int) -> Array:
        """The eigenvalues of Σ, (d,), of mean 1."""
        power = (np.arange(check_integer("d", d, 1)) + 0.5) ** -self.decay
        return power / power.mean()

    def phi(self, d: int, k: int) -> float:
        """φ_k = tr Σᵏ/d."""
        return float((self.spectrum(d) ** k).mean())

    @property
    def fourth(self) -> float:
        """E σ⁴ of a token's size: (f−2)/(f−4) at f degrees of freedom, ∞ for f ≤ 4."""
        f = self.freedom
        if f == math.inf or self.heavy == "coordinate":
            return 1.0
        return (f - 2) / (f - 4) if f > 4 else math.inf

    def sample(self, n: int, L: int, d: int, rng: np.random.Generator) -> Array:
        """Noise tokens (n, L, d)."""
        shape = (n, L, d) if self.heavy == "coordinate" else (n, L, 1)
        Z = check_rng(rng).standard_normal((n, L, d))
        if self.freedom != math.inf:
            Z *= np.sqrt((self.freedom - 2) / rng.chisquare(self.freedom, shape))
        Z *= np.sqrt(self.spectrum(d))
        return Z


def _checked(noise: TokenNoise | None) -> TokenNoise:
    return TokenNoise() if noise is None else check_is("noise", noise, TokenNoise)


def _needles(model: SparseTokens, counts: Array | None) -> Array:
    """The equally likely numbers of needles."""
    if counts is None:
        return np.array([model.R])
    wanted = check_array("counts", counts, "k").tolist()
    return np.array([check_integer("counts", count, 0, model.L) for count in wanted])


def sample_bags(
    model: SparseTokens,
    n: int,
    d: int,
    rng: np.random.Generator,
    *,
    noise: TokenNoise | None = None,
    directions: int = 1,
    counts: Array | None = None,
) -> Tokens:
    """Bags of tokens with signal directions spread over all coordinates.

    Parameters
    ----------
    model : L, R, θ, π
    noise : the law of the noise (default: white and Gaussian)
    directions : K; each needle points along one of K orthonormal directions at random, whose sum is
        √K ξ with ξ = 1/√d
    counts : numbers of needles in [0, L]; each positive bag draws its R from them (default:
        `model.R`)

    Examples
    --------
    >>> model, rng = SparseTokens(L=10, R=1, theta=5.0, pi=0.5), np.random.default_rng(0)
    >>> X, y, where = sample_bags(model, 6, 8, rng, noise=TokenNoise(freedom=3.0), directions=2)
    >>> X.shape, where.sum(axis=1).tolist() == (y > 0).tolist()
    ((6, 10, 8), True)
    """
    m, noise = check_model(model), _checked(noise)
    n, d = check_integer("n", n, 1), check_integer("d", d, 1)
    K = check_integer("directions", directions, 1, d)
    needles = _needles(m, counts)
    y = m.sample_labels(n, rng)
    R = np.full(n, m.R) if counts is None else rng.choice(needles, size=n)
    rank = np.argsort(np.argsort(rng.random((n, m.L)), axis=1), axis=1)
    where = (rank < R[:, None]) & (y > 0)[:, None]
    X = noise.sample(n, m.L, d, rng)
    basis = signal_directions(d, K)
    X[where] += m.theta * basis[rng.integers(K, size=int(where.sum()))]
    return Tokens(X, y, where)


def signal_directions(d: int, K: int = 1) -> Array:
    """K orthonormal directions (K, d) whose sum is √K·1/√d: interleaved combs of equal entries.

    >>> signal_directions(4, 2).round(3).tolist()
    [[0.707, 0.0, 0.707, 0.0], [0.0, 0.707, 0.0, 0.707]]
    """
    d = check_integer("d", d, 1)
    K = check_integer("K", K, 1, d)
    comb = (np.arange(d) % K == np.arange(K)[:, None]).astype(float)
    return comb / np.sqrt(comb.sum(axis=1, keepdims=True))


def whiten(X: Array, y: Array) -> tuple[Array, Array]:
    """Tokens after Σ̂^{−1/2}, with Σ̂ the second moment of the negative bags' tokens; and Σ̂^{−1/2}.

    >>> X = TokenNoise(decay=0.8).sample(200, 10, 5, np.random.default_rng(0))
    >>> white, root = whiten(X, -np.ones(200))
    >>> tokens = white.reshape(-1, 5)
    >>> np.allclose(tokens.T @ tokens / len(tokens), np.eye(5))
    True
    """
    X = check_array("X", X, "n", "L", "d")
    d, y = X.shape[2], check_labels("y", y, len(X))
    quiet = X[y < 0].reshape(-1, d)
    if len(quiet) <= d:
        raise ValueError(
            f"y with {len(quiet)} negative tokens is not allowed: y must leave more than {d} "
            "negative tokens"
        )
    value, vector = np.linalg.eigh(quiet.T @ quiet / len(quiet))
    if not value[0] > 1e-12 * value[-1]:
        raise ValueError("X is not allowed: negative tokens must vary in every direction")
    root = (vector / np.sqrt(value)) @ vector.T
    return X @ root, root


def heavy_error(
    L: int, theta: float, freedom: float, *, pi: float = 0.5, normalized: bool = False
) -> float:
    """Least error of comparing the largest ⟨x_ℓ, ξ⟩ with a threshold; sizes σ are heavy-tailed.

    Projections are Student's t of unit variance, P(miss) = F(t)^{L−1}F(t − θ). Divided by its size
    (for wide tokens its norm over √d) a token is Gaussian and the needle stands at θ/σ, with
    1/σ² = χ²_f/(f−2) at f degrees of freedom. One needle.

    Examples
    --------
    >>> [round(heavy_error(1000, 6.0, 3.0, normalized=flag), 3) for flag in (False, True)]
    [0.386, 0.05]
    """
    L, theta = check_integer("L", L, 2), check_real("theta", theta, 0)
    f = check_real("freedom", freedom, 2, open_low=True)
    pi = check_real("pi", pi, 0, 1, open_low=True, open_high=True)
    t = np.concatenate([np.linspace(0.5, 8, 300), np.geomspace(8.02, 1e3 + 2 * theta, 300)])
    if normalized:
        node, weight = np.polynomial.legendre.leggauss(64)
        inverse = np.sqrt(stats.chi2.ppf((1 + node) / 2, f) / (f - 2))
        log_quiet, low = log_ndtr(t), ndtr(t[:, None] - theta * inverse) @ weight / 2
    else:
        unit = math.sqrt(f / (f - 2))
        log_quiet, low = np.log1p(-stats.t.sf(t * unit, f)), stats.t.cdf((t - theta) * unit, f)
    errors = pi * np.exp((L - 1) * log_quiet) * low - (1 - pi) * np.expm1(L * log_quiet)
    return float(min(errors.min(), pi, 1 - pi))


def predict_noisy_alignment(
    model: SparseTokens,
    d: int,
    alpha0: float,
    *,
    noise: TokenNoise | None = None,
    directions: int = 1,
    counts: Array | None = None,
    fourth: float | None = None,
    **steps: Unpack[StepOptions],
) -> Alignment:
    """The alignment of two steps with ξ (the mean direction, if there are several).

    As in `needle.predict_alignment`, with ω̂² = wᵀΣw = ω²φ₁ + (ρ²−ω²)φ₂ in place of ρ² in
    the noise of scores and query, the echo (B/L) Σw in place of (B/L) w, and

        |noise|² = ((L−1)M ω̂²Γ₂ + θ²R̄ω²Γ₂₊)/(α₀L²),   M = ((L−1)Eσ⁴ + 1)/L.

    In the record `signal` is the coefficient of ξ; `echo` = Bω̂²/(Lρ) what the echo has along ŵ,
    with its sign; `noise` the length of the rest, the noise and what the echo has across ŵ.
    K directions act as θ/√K; a random R enters through E R and E R̄. Chapter 11, prop-11-noise.

    Parameters
    ----------
    d : token dimension, which only fixes the spectrum of Σ and the number of tokens
    fourth : E σ⁴ in place of the noise's own, for example its sample mean where it is infinite

    Examples
    --------
    >>> from needle.steps.alignment import predict_alignment
    >>> model = SparseTokens(L=100, R=1, theta=8.0, pi=0.5)
    >>> white = predict_noisy_alignment(model, 100, 2.0).query_cos
    >>> bool(abs(white - predict_alignment(model, 2.0).query_cos) < 1e-12)
    True
    >>> heavy = predict_noisy_alignment(model, 100, 2.0, noise=TokenNoise(freedom=6.0)).query_cos
    >>> print(f"{white:.3f} {heavy:.3f}")
    0.906 0.839
    """
    m, noise = check_model(model), _checked(noise)
    alpha0, rule = check_real("alpha0", alpha0, 0, open_low=True), step_rule(**steps)
    L, theta = m.L, m.theta / math.sqrt(check_integer("directions", directions, 1))
    needles = _needles(m, counts)
    size = noise.fourth if fourth is None else check_real("fourth", fourth, 1)
    phi = {k: noise.phi(d, k) for k in (1, 2, 3)}
    share = {1: m.pi, -1: 1 - m.pi}
    balance = sum(share[y] * rule.start[y] for y in share)
    along = rule.lr_w * m.pi * rule.start[1] * theta * needles.mean() / L
    across2 = rule.lr_w**2 * sum(share[y] * rule.start[y] ** 2 for y in share) / (alpha0 * L)
    seen2 = along**2 * phi[1] + across2 * phi[2]
    groups, excess = [], []
    for y in share:
        for R in needles:
            centre = rule.lr_w * rule.start[y] / (alpha0 * L) + rule.lr_b * balance
            centre += (y > 0) * theta * R * along / L
            groups.append((y, share[y] / len(needles), centre))
            excess.append((y > 0) * theta**2 * R * (L - R) / L)
    pulls = mean_pulls(rule, groups, balance, math.sqrt(seen2 / L))
    second = A = power = 0.0
    for (_, part, _), lift, g1, g2 in zip(groups, excess, *pulls[:2], strict=True):
        second += part * g2
        A += part * lift * g1
        power += part * lift * along**2 * g2
    B = (L - 1) * pulls.mean
    spread = math.sqrt(((L - 1) * ((L - 1) * size + 1) / L * seen2 * second + power) / alpha0)
    overlap = (A + B * phi[1]) * along / L
    echo2 = B**2 * (along**2 * phi[2] + across2 * phi[3])
    norm2 = (A * along) ** 2 + 2 * A * B * along**2 * phi[1] + echo2 + spread**2
    readout2 = along**2 + across2
    # |Σw|²|w|² − (wᵀΣw)², without a difference of large numbers
    stray = along**4 * (phi[2] - phi[1] ** 2) + across2**2 * (phi[3] - phi[2] ** 2)
    stray += along**2 * across2 * (phi[2] + phi[3] - 2 * phi[1] * phi[2])
    rest = math.hypot(spread, B * math.sqrt(max(stray, 0.0) / readout2))
    return Alignment.of(
        along, math.sqrt(across2), overlap, math.sqrt(norm2) / L,
        A / L * along, B * seen2 / (L * math.sqrt(readout2)), rest / L,
    )  # fmt: skip
