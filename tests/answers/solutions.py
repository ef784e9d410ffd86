"""For each exercise an answer that is right, and some that readers give and that are not.

The solutions are written out once more here: a test must not share them with what it tests.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import integrate, optimize, special, stats

from needle import (
    SparseTokens,
    attention,
    gaussian_mixture,
    pooled,
    predict_alignment,
    predict_capacity,
    predict_readout,
    predict_transfer,
)
from needle import learning_thresholds as thresholds

Φ, q = special.ndtr, special.ndtri


def look(τ: float) -> Any:
    return lambda h: (special.softmax(τ * h, axis=1) * h).sum(axis=1)


def two_heads(h: Any) -> Any:
    return look(3.0)(h) - look(-3.0)(h)


def threshold_error(t: Any) -> Any:
    return lambda δ, π: π * Φ(t(δ, π) - δ) + (1 - π) * Φ(-t(δ, π))


def highest(L: float) -> float:
    return integrate.quad(
        lambda x: x * L * stats.norm.pdf(x) * Φ(x) ** (L - 1), -9, 12, points=[0, 2, 4]
    )[0]


def bet(k: int, n: int = 12) -> Any:
    return np.repeat([1.0, 0.0], [k, n - k])


def mean_cos(δ: float, α: float, noise: float = 4.0) -> float:
    return (1 + noise / (α * δ**2)) ** -0.5


def strength(A: float, α: float, noise: float = 4.0) -> float:
    x = np.sqrt(2) * q(A)
    return np.sqrt((x**2 + np.sqrt(x**4 + 4 * noise * x**2 / α)) / 2)


def gap(k: float) -> float:
    law = pooled(SparseTokens(4, 1, 5.0, 0.5))
    return (
        predict_readout(law, 2.0, 0.025).test_error - predict_readout(law, 8 / k, 0.025).test_error
    )


def tall(L: float) -> float:
    return np.sqrt(2 * np.log(L))


def cut_moments(L: float, θ: float) -> Any:
    p, second = Φ(tall(L) - θ), np.exp(θ**2) * Φ(tall(L) - 2 * θ)
    return p, (second - p * p) / L


def sharpest(θ: float) -> float:
    return optimize.brentq(lambda t: t + t / (1 + t * t) - θ, 0, 10)


def corrected(L: float, ε: float) -> float:
    x = q(1 - 2 * ε)
    return tall(L) + x + (1 + x * x / 2 + np.log(Φ(x))) / tall(L)


def shares(L: float, R: float, θ: float) -> float:
    return (L - 1) / (θ**2 * R * (1 - R / L) + 2 * L - 2)


def tuned() -> float:
    def loss(rate: float) -> float:
        return -predict_alignment(SparseTokens(10, 1, 3.0, 0.2), 1.0, lr_b=rate).query_cos

    return optimize.minimize_scalar(loss, bounds=(2, 30), method="bounded").x


def quotient(L: float, R: float, θ: float) -> float:
    bar = R * (1 - R / L)
    return (L - 1 + θ**2 * bar / 2) / (θ**4 * bar**2 / 2) / (2 * L / (θ * R) ** 2)


def waiting(L: float, θ: float) -> float:
    x = optimize.brentq(lambda x: x**2 + x / θ - 1, 0, 1)
    return L / (x * 0.25 * θ**3)


FIRST = SparseTokens(10, 1, 5.0, 0.5)


def seen(cos: float, T: float = 2.0, α: float = np.inf, λ: float = 0.0) -> float:
    return predict_readout(attention(FIRST, temperature=T, cos=cos), α, λ).test_error


def coin(n: int, p: int) -> float:
    return sum(special.comb(n - 1, k) for k in range(p)) / 2 ** (n - 1)


def gordon(n: int, d: int) -> float:
    k = np.arange(1, n + 1)
    return 2 * (stats.binom.pmf(k, n, 0.5) @ stats.f.cdf(d / k, k, d) + 0.5**n)


def apart(distance: float) -> float:
    return predict_capacity(gaussian_mixture(mean=distance / 2, var_pos=1.0, var_neg=1.0))


ANSWERS: dict[str, tuple[Any, ...]] = {
    "model longest-straw": (highest, tall, lambda L: q(1 - 1 / L), lambda L: tall(L) - 0.5),
    "model places": (
        lambda L: bet(L // 4, L),
        np.ones,
        lambda L: bet(L // 4, L)[::-1],
        lambda L: bet(L // 2, L),
    ),
    "model many-needles": (0.2, 2.0, 0.0, 0.6),
    "model rare": (
        threshold_error(lambda δ, π: δ / 2 + special.logit(1 - π) / δ),
        threshold_error(lambda δ, π: δ / 2),
        threshold_error(lambda δ, π: δ / 2 + special.logit(1 - π)),
        lambda δ, π: min(π, 1 - π),
    ),
    "model two-signs": (two_heads, look(3.0), lambda h: h.mean(axis=1), lambda h: -two_heads(h)),
    "model correlated": (
        lambda θ, R, L, ρ: θ * R / np.sqrt(L + L * (L - 1) * ρ),
        lambda θ, R, L, ρ: θ * R / L**0.5,
        lambda θ, R, L, ρ: θ * R / L / np.sqrt(ρ + 1 / L),
    ),
    "model missed": (lambda z, p: z + q(p), lambda z, p: z, lambda z, p: z - q(p)),
    "linear only-equal": (bet(4), bet(12), bet(8), bet(1)),
    "linear infinite-ridge": (
        lambda δ, α: Φ(-δ / 2 * mean_cos(δ, α)),
        lambda δ, α: Φ(-δ / 2),
        lambda δ, α: Φ(-δ / 2 * mean_cos(δ, α, 1)),
        lambda δ, α: Φ(-δ / 2 * mean_cos(δ, α, 2)),
    ),
    "linear ridgeless": (
        lambda δ, α: np.sqrt((α - 1) / (α + 4 / δ**2)),
        lambda δ, α: (α - 1) / (α + 4 / δ**2),
        mean_cos,
        lambda δ, α: np.sqrt((α - 1) / (α + 1 / δ**2)),
    ),
    "linear equal-places": (-0.5, 0.5, -1.0),
    "linear label-noise": (
        lambda ρ: (1 - 2 * ρ) ** -2,
        lambda ρ: 1 / (1 - 2 * ρ),
        lambda ρ: (1 - ρ) ** -2,
    ),
    "linear unknown-strength": (
        strength,
        lambda A, α: np.sqrt(2) * q(A),
        lambda A, α: strength(A, α, 1),
        lambda A, α: strength(A, α, 2),
    ),
    "linear power": (gap(3), -gap(3), gap(3.5)),
    "separation truncated": (
        cut_moments,
        lambda L, θ: (1.0, np.expm1(θ * θ) / L),
        lambda L, θ: cut_moments(L, 1.1 * θ),
    ),
    "separation crowd-sharpness": (sharpest, lambda θ: θ, lambda θ: θ / 2, lambda θ: θ - 1 / θ),
    "separation coarse-threshold": (
        lambda L, τ: (np.log(L) / (2 * τ) + τ, np.log(L) / τ + τ / 2),
        lambda L, τ: (np.log(L) / τ + τ / 2, np.log(L) / (2 * τ) + τ),
        lambda L, τ: (np.log(L) / (2 * τ), np.log(L) / τ),
    ),
    "separation frozen-straws": (
        lambda τ: np.exp(τ * τ),
        lambda τ: np.exp(2 * τ * τ),
        lambda τ: np.exp(τ * τ / 2),
        lambda τ: 1 + τ * τ,
    ),
    "separation catching-up": (
        lambda L: 3.2897 / 0.29289 / tall(L),
        lambda L: 3.2897 / tall(L),
        lambda L: 1.645 / 0.29289 / tall(L),
    ),
    "separation offsets": (
        look(2.0),
        lambda h: (h * np.exp(2 * h)).sum(axis=1),
        lambda h: h.mean(axis=1),
    ),
    "separation disguise": (0.5, 0.25, 0.232096, 0.45),
    "separation less-error": (
        corrected,
        lambda L, ε: tall(L) + q(1 - 2 * ε),
        lambda L, ε: tall(L) + q(1 - ε),
    ),
    "alignment critical-share": (
        shares,
        lambda L, R, θ: (L - 1) / (θ**2 * R + 2 * L - 2),
        lambda L, R, θ: 0.5,
    ),
    "alignment stein": (
        lambda w, A, C: 1.8 * A * np.eye(3)[0] - C * w / 10,
        lambda w, A, C: 1.8 * A * np.eye(3)[0] + C * w / 10,
        lambda w, A, C: 6.0 * A * np.eye(3)[0] - C * w / 10,
    ),
    "alignment second-step": (
        quotient,
        lambda L, R, θ: θ**-2,
        lambda L, R, θ: 1 / quotient(L, R, θ),
    ),
    "alignment best-bias": (tuned(), 4.6210, 0.5),
    "alignment fresh": (
        lambda η, γ, α, L: η * γ / α / L,
        lambda η, γ, α, L: η * γ / α,
        lambda η, γ, α, L: η * γ / L,
    ),
    "alignment many-needles": ([-2 / 3, -1, -0.5], [-1, -1, -1], [-2 / 3, -0.5, -1]),
    "alignment small": (0.167, 0.0, 0.5, 0.25),
    "alignment patience": (waiting, lambda L, θ: 4 * L / θ**3, lambda L, θ: 4 * L / θ**2),
    "readout eight-digits": (0.01 / 3, 0.01, 0.03, 0.005),
    "readout nothing": ([0.5, 2.0], [0.5, 1.0], [0.0, 2.0]),
    "readout one-line": (
        lambda Ω, χ, y: (Ω + χ * y) / (1 + χ),
        lambda Ω, χ, y: Ω + χ * (y - Ω),
        lambda Ω, χ, y: Ω + χ * y,
    ),
    "readout temperature": ([2.0, 5.0], [5.0, 2.0], [0.5, 5.0]),
    "readout own": (
        lambda α, L, η, β: η * β**2 / α / L,
        lambda α, L, η, β: η * β / α / L,
        lambda α, L, η, β: η * β**2 / α,
    ),
    "readout luck": (
        lambda n, L, d: (L * d) ** 0.5 / n,
        lambda n, L, d: (L * d / n) ** 0.5,
        lambda n, L, d: n**-0.5,
    ),
    "readout other-way": (seen(-0.5), seen(0.5), seen(0.0), 1 - seen(0.5)),
    "readout peak": (-0.5, -1.0, 0.5),
    "capacity cover": (coin, lambda n, p: coin(n + 1, p), lambda n, p: coin(n, p + 1)),
    "capacity gordon": (gordon, lambda n, d: gordon(n, d) / 2, coin),
    "capacity support": (lambda d: d + 2, lambda d: d + 1, lambda d: d),
    "capacity intercept": (
        predict_capacity(pooled(FIRST), intercept=False),
        predict_capacity(pooled(FIRST)),
        2.0,
    ),
    "capacity fixed": (
        lambda L, θ: L * apart(θ),
        lambda L, θ: L * apart(θ / L**0.5),
        lambda L, θ: apart(θ),
    ),
    "capacity length": (
        lambda L, θ: 2 + θ**2 / np.pi / L,
        lambda L, θ: 2.0,
        lambda L, θ: 2 + θ**2 / 2 / np.pi / L,
        lambda L, θ: 2 + θ / np.pi / L**0.5,
    ),
    "capacity missed": (
        lambda z, n: stats.t.isf(stats.norm.sf(z), n - 1),
        lambda z, n: z,
        lambda z, n: stats.t.isf(stats.norm.sf(z), n),
    ),
}


def wins(L: float, x: float) -> float:
    rng = np.random.default_rng(5)
    fields = np.sqrt(x) * rng.standard_normal((60_000, L))
    fields[:, 0] += x
    return special.softmax(fields, axis=1)[:, 0].mean()


def fold(L: float, R: float, θ: float, end: float = 1.0) -> float:
    x = np.linspace(1e-3, min(θ**2 / 2, 3) * end, 200_001)
    return float((L / (R * θ) ** 2 * x * np.exp(-x) / (θ**2 - x)).max())


def subsets(L: int, R: int) -> float:
    return np.log(special.comb(L, R))


def rounds(centered: bool, unit: bool = True) -> Any:
    def once(X: Any, y: Any, q: Any) -> Any:
        pull = (y > 0) - centered * np.mean(y > 0)
        s = special.softmax(X @ q, axis=1)
        w = sum(p * x.T @ t for p, x, t in zip(pull, X, s, strict=True))
        return w / np.linalg.norm(w) if unit else w

    return once


def bracket(L: float, R: float, θ: float, π: float, echo: float = 1.0) -> float:
    return π * θ**2 * R * (1 - R / L) + echo * (2 * π - 1) * (L - 1)


def ends(L: float, θ: float, η: float, small: float | None = None) -> float:
    if η >= 2 * L:
        return np.inf
    η, m1, m2 = small or η, θ / L / 2, (θ / L) ** 2 / 2
    a = m1 / (1 / L + m2)
    return (η * (η / L - 2) * m2 * a**2 + 2 * η * m1 * (1 - η / L) * a + η**2 / L) / (
        η / L * (2 - η / L)
    )


def misread(L: float, θ: float, α: float) -> Any:
    m, own = θ / (2 * L), 1 / (α * L)
    σ = np.sqrt((m * m + own) / L)
    means = np.array([own + m * θ / L, own]), np.array([m * θ / L, 0.0])
    return np.array([Φ(-mean / σ).mean() for mean in means])


def chance(π: float) -> float:
    return 1 - π * (1 - π) * special.logit(π) / (π - 0.5)


def moved() -> tuple[float, float]:
    law, test = (
        attention(SparseTokens(L, 1, 6.0, 0.5), temperature=2.0, cos=0.9) for L in (2000, 20)
    )
    found = predict_transfer(law, test, 4.0, 0.01)
    return found.misses, found.false_alarms


def long_cos(L: float, R: float, θ: float, π: float, α: float, power: float = 1.5) -> float:
    x = L / (α * π**power * (1 - π) ** 0.5 * θ**3 * R**2)
    return 1 / np.sqrt(1 + x * x)


def from_auc(A: float, d: float, m: float, k: float) -> float:
    D2, ν = 2 * q(A) ** 2, 1 / m + 1 / k
    return np.sqrt((D2 + np.sqrt(D2**2 + 4 * D2 * d * ν)) / 2)


def power(M: Any, p: float) -> Any:
    v, U = np.linalg.eigh(M)
    return U @ np.diag(v**p) @ U.T


ANSWERS |= {
    "readout labels": (
        lambda loss: {"logistic": np.log(2), "square": 0.5, "hinge": 1.0}[loss],
        lambda loss: {"logistic": 2 * np.log(2), "square": 1.0, "hinge": 2.0}[loss],
        lambda loss: 1.0,
    ),
    "again share": (
        misread,
        lambda L, θ, α: misread(L, θ, α)[::-1],
        lambda L, θ, α: misread(L, θ, 1e9),
    ),
    "again populations": (2.0, 4.0, 1.0),
    "length height": (
        lambda L, α: (4 * L / α) ** (1 / 12) * (2 * np.log(L)) ** (-1 / 8),
        lambda L, α: (4 * L / α) ** (1 / 12),
        lambda L, α: (L / α) ** (1 / 12) * (2 * np.log(L)) ** (-1 / 8),
    ),
    "length one-or-two": (
        lambda L, π: (2 * np.log(L) * (1 / π - 1)) ** 0.125,
        lambda L, π: (2 * np.log(L)) ** 0.125,
        lambda L, π: (2 * np.log(L) * (1 / π - 1)) ** 0.5,
    ),
    "length longest-token": (
        lambda L, d: (4 * d * np.log(L)) ** 0.25,
        lambda L, d: tall(L),
        lambda L, d: (2 * d * np.log(L)) ** 0.25,
    ),
    "learning negatives": (
        lambda π, π0, α: π0 * α / π,
        lambda π, π0, α: α,
        lambda π, π0, α: π * α / π0,
    ),
    "learning race": (
        wins,
        lambda L, x: 1 / (1 + (L - 1) * np.exp(-x)),
        lambda L, x: 1 / (1 + (L - 1) * np.exp(-x / 2)),
    ),
    "learning spinodal": (
        fold,
        lambda L, R, θ: L / np.e / θ**4 / R**2,
        lambda L, R, θ: fold(L, 1, θ) / R,
    ),
    "learning area": (lambda L, R: 2 / R * subsets(L, R), lambda L, R: 2 * np.log(L), subsets),
    "learning many": ([-2, 2], [-2, -2], [-2, 0], [-1, 1]),
    "learning rare": ([1, 1.5], [1, 2], [1.5, 1], [1, 1]),
    "learning em": (
        lambda v, h: (v * h).sum() / v.sum(),
        lambda v, h: (v * h).sum() / (v * v).sum(),
        lambda v, h: h.mean(),
    ),
    "learning more-steps": (rounds(True), rounds(False), rounds(True, unit=False)),
    "training ramp": (
        bracket,
        lambda *p: bracket(*p, echo=0),
        lambda L, R, θ, π: π * θ**2 * R + (2 * π - 1) * (L - 1),
    ),
    "training intercept": (
        lambda π, loss: special.logit(π) if loss == "logistic" else 2 * π - 1,
        lambda π, loss: special.logit(π),
        lambda π, loss: 2 * π - 1,
    ),
    "training shake": (
        ends,
        lambda L, θ, η: ends(L, θ, η, 1e-9),
        lambda L, θ, η: 1.1 * ends(L, θ, η),
    ),
    "training rates": (0.5, 0.06, 0.0),
    "training sharpness": (0.92, 1.0, 0.6),
    "beyond imbalance": (chance, lambda π: 1.0, lambda π: 1 - chance(π)),
    "beyond directions": (lambda θ, K: θ / K**0.5, lambda θ, K: θ / K, lambda θ, K: θ),
    "beyond whitening": (
        lambda λ: np.mean(1 / λ) ** 0.5,
        lambda λ: np.mean(λ**-0.5),
        lambda λ: np.mean(1 / λ),
    ),
    "beyond random-start": (0.931, 0.965, 1.0),
    "beyond normalized": (
        lambda k: (
            (2 / (k - 2)) ** 0.5 * special.gamma((k + 1) / 2) / special.gamma(k / 2) * k / (k - 2)
        ),
        lambda k: (k / (k - 2)) ** 1.5,
        lambda k: k / (k - 2),
    ),
    "beyond below-freezing": (moved(), moved()[::-1], (0.02, 0.02)),
    "planning best-constant": (
        lambda π: special.logit(π) / (π - 0.5),
        lambda π: 4.0,
        special.logit,
    ),
    "planning long": (
        long_cos,
        lambda *p: long_cos(*p, power=2),
        lambda L, R, θ, π, α: long_cos(L, R, θ, π, α / R),
    ),
    "planning own-share": (
        lambda π, n: chance(π) * (π * (1 - π) / n) ** 0.5,
        lambda π, n: (π * (1 - π) / n) ** 0.5,
        lambda π, n: 0.0,
    ),
    "planning your-own": (
        lambda π: 0.25 / (π**1.5 * (1 - π) ** 0.5),
        lambda π: 0.5 / π,
        lambda π: 0.25 / π**2,
    ),
    "planning auc": (
        from_auc,
        lambda A, d, m, k: 2**0.5 * q(A),
        lambda A, d, m, k: from_auc(A, d, m + k, m + k),
    ),
    "planning break": (
        lambda X: X / np.linalg.norm(X, axis=2, keepdims=True) * X.shape[2] ** 0.5,
        lambda X: X,
        lambda X: X / np.linalg.norm(X, axis=(1, 2), keepdims=True),
    ),
    "real rotation": (
        lambda A, S: power(A @ S @ A.T, -0.5) @ A @ power(S, 0.5),
        lambda A, S: A @ power(S, 0.5),
        lambda A, S: np.eye(len(A)),
    ),
    "real unequal": (lambda L: L, np.ones_like, lambda L: 1 / L),
    "real digit": ([9, 4], [4, 9], [1, 0]),
    "real many-directions": (0.8, 1.0, 0.64),
    "real shuffled": (lambda n, t: 0.5 / t**0.5, lambda n, t: 0.5 / n**0.5, lambda n, t: 0.25 / t),
    "real dependent-folds": (
        lambda J, ρ: 1 / J + ρ / (1 - ρ),
        lambda J, ρ: 1 / J,
        lambda J, ρ: ρ + (1 - ρ) / J,
    ),
    "bets bet-boundary": (
        lambda π: (-2 * np.log(π)) ** 0.5,
        lambda π: -np.log(π),
        lambda π: (-np.log(π)) ** 0.5,
    ),
    "bets exponent": (
        lambda a, e: 0.5 if a < 1 else 0 if a > 1 else 0.5 - e,
        lambda a, e: 0.5 - e,
        lambda a, e: 0.5,
    ),
    "bets learning-places": (lambda p: p, np.ones_like, np.sqrt),
}

NOTES = thresholds(SparseTokens(1000, 1, 6.0, 0.5))  # the facade's names load here, once
