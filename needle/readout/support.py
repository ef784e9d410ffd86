"""The hinge loss on data and in rare classes: support vector machines.

A fit minimises C Σ(1 − A_i v)₊ + ½|w|² over v = (w, b), A_i = y_i(f_i, 1), C = 1/(nλ), by augmented
Lagrangians: with multipliers a (the pulls) and a stiffness k, v minimises a smooth function with
pulls clip(a + k(1 − A v), 0, C), by Newton steps whose matrix is made of the rows on the margin;
those pulls are the next a. Appendix C, prp-c-hinge and prp-c-collapse.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.optimize import brentq, minimize_scalar
from scipy.special import log_ndtr, logsumexp, ndtr, ndtri

from ..data.law import FeatureLaw, TwoGaussians
from ..kit.checks import check_is

Array = np.ndarray
_X, _W = np.polynomial.legendre.leggauss(60)
_KNEE = (1 + _X) / 2, _W / 2  # places on the knee of D, and weights
GAP = 1e-9  # between the objective and its dual, relative


def support_vectors(
    F: Array, y: Array, lam: float, intercept: bool
) -> tuple[Array, float, int, bool]:
    """w, b, Newton steps, and whether objective and dual agree to a relative 1e-9."""
    (n, p), extra = F.shape, int(intercept)
    A = np.column_stack([F, np.ones((n, extra))]) * y[:, None]
    C, length = 1 / (n * lam), np.append(np.ones(p), np.zeros(extra))
    scale = float(np.einsum("ij,ij->", F, F)) / n + 1e-300
    # at the start every row is on the margin, or b would have nothing to hold on to
    v, a, stiff, steps = np.zeros(p + extra), np.zeros(n), min(10 / scale, C / 2), 0
    for _ in range(60):
        v, a, taken = _inner(A, v, a, stiff, C, length)
        steps += taken
        w, short = (a @ A)[:p], np.maximum(1 - A @ v, 0).sum()
        primal = C * short + v[:p] @ v[:p] / 2
        if primal - (a.sum() - w @ w / 2) <= GAP * primal and abs(a @ y) * extra <= GAP * a.sum():
            return v[:p], float(v[p:].sum()), steps, True
        stiff *= 4
    return v[:p], float(v[p:].sum()), steps, False


def _inner(
    A: Array, v: Array, a: Array, stiff: float, C: float, length: Array
) -> tuple[Array, Array, int]:
    """Newton's method at fixed multipliers: v, the new multipliers, and the steps taken."""

    def cost(v: Array) -> tuple[float, Array]:
        z = a + stiff * (1 - A @ v)
        rise = np.where(z > C, C * z - C * C / 2, np.maximum(z, 0) ** 2 / 2)
        return float(length @ v**2 / 2 + rise.sum() / stiff), z

    value, z = cost(v)
    size = math.sqrt(np.einsum("ij,ij->", A, A) / len(A))
    steps = 0
    while steps < 100:
        pull = np.clip(z, 0, C)
        gradient = length * v - pull @ A
        reach = np.linalg.norm(length * v) + size * np.linalg.norm(pull)
        if np.linalg.norm(gradient) <= 1e-10 * reach:
            break
        on = A[(z > 0) & (z < C)]
        H = stiff * (on.T @ on)
        hold = 1e-10 * len(A) if len(on) else 1.0  # of b, which no ridge holds
        H[np.diag_indices(len(v))] += length + hold * stiff * (length == 0)
        try:
            move = -cho_solve(cho_factor(H), gradient)
        except LinAlgError:
            break
        slope, part = gradient @ move, 1.0
        slack = 1e-13 * value  # below it costs cannot be compared, and full steps are taken
        while (trial := cost(v + part * move))[0] > value + 1e-4 * part * slope + slack:
            part /= 2
            if part < 1e-9:
                return v, pull, steps
        v, (value, z) = v + part * move, trial
        steps += 1
    return v, np.clip(z, 0, C), steps


def full_pulls(
    y: Array, A: Array, r: Array, weight: Array, alpha: float, lam: float
) -> tuple[Array, float] | None:
    """Order parameters where nearly every sample pulls its full share, and the share that does not.

    At a large ridge and equal classes λν = E yA₀, λκ = E yA₁, ζ² = αE r² and w_⊥ = ζ/(αλ). The few
    margins that come near 1 decide about b: both classes must spare the same share of their pulls,
    E₊(1 − D) = E₋(1 − D) with D = clip((1 − v)/χr², 0, 1), however small. None where classes differ
    or more than 1e-8 is spared. A holds the derivatives of the mean score in (ν, κ, b).
    """
    if abs(float(weight @ y)) > 1e-12 or not lam > 0:
        return None
    nu, kappa, _ = (weight * y) @ A / lam
    zeta = math.sqrt(alpha * float(weight @ r**2))
    rest = zeta / (alpha * lam)
    mean, sd, knee = y * (A[:, 0] * nu + A[:, 1] * kappa), r * math.hypot(kappa, rest), r**2
    knee = knee / (alpha * lam)

    def spared(b: float, label: int) -> float:
        """log E(1 − D) of a class."""
        one = y == label
        z = (1 - knee[one, None] * _KNEE[0] - mean[one, None] - label * b) / sd[one, None]
        return float(logsumexp(log_ndtr(-z), b=weight[one, None] * _KNEE[1]))

    reach = 1 + float(np.abs(mean).max() + knee.max())
    b = brentq(lambda b: spared(b, 1) - spared(b, -1), -reach, reach, xtol=1e-14)
    share = math.exp(spared(b, 1)) + math.exp(spared(b, -1))
    return (np.array([nu, kappa, rest, b, zeta]), share) if share < 1e-8 else None


def _above(k: float) -> tuple[float, float]:
    """E(G − k)₊ and E(G − k)₊²."""
    density, tail = math.exp(-k * k / 2) / math.sqrt(2 * math.pi), float(ndtr(-k))
    return density - k * tail, (1 + k * k) * tail - k * density


def collapse_alpha(law: FeatureLaw) -> float:
    """Samples per dimension beyond which the hinge loss gives up: ŵ = 0 at every ridge.

    Let π < ½ (otherwise exchange the classes). At w = 0, b = −1 every negative lies on the margin
    and may pull with any 0 ≤ D ≤ 1. Nothing moves if the pulls can balance, which they can once

        α > α_c = min_D (πr₊² + (1−π)r₋² E D²) / ((1−π)²r₋² E[DG]² − π²Δ²),   E D = π/(1−π),

    with Δ the distance of the class means; the best D is clip((G − t)/s, 0, 1). Infinite if Δ is
    large. Only for laws with one Gaussian a class. Appendix C, prp-c-collapse.

    Examples
    --------
    >>> from needle.data.classifiers import pooled
    >>> from needle.data.tokens import SparseTokens
    >>> rare = pooled(SparseTokens(L=10, R=3, theta=1.0, pi=0.15))
    >>> round(collapse_alpha(rare), 2)
    10.33
    """
    two: TwoGaussians = check_is("law", law, TwoGaussians, "a law with one Gaussian a class")
    few, many, share = two.positive, two.negative, law.pi
    if share > 0.5:
        few, many, share = many, few, 1 - share
    wanted, pull = share / (1 - share), share * law.theta * (few[0] - many[0])
    if wanted >= 1:
        return math.inf
    # 1 − D is such a function of −G: what is the smaller of the two keeps its digits
    spared = wanted > 0.5
    part = (1 - 2 * share) / (1 - share) if spared else wanted
    middle = -float(ndtri(part))

    def ratio(log_s: float) -> float:
        """−1/α for the best D of this slope, so that it is finite where no α will do."""
        s = math.exp(log_s)
        mean = lambda t: (_above(t)[0] - _above(t + s)[0]) / s - part  # noqa: E731
        t = brentq(mean, middle - s - 1, middle + s + 1, xtol=1e-14)
        (_, low), (rest, high) = _above(t), _above(t + s)
        power = (low - high - 2 * s * rest) / s**2 + spared * (1 - 2 * part)
        overlap = float(ndtr(-t) - ndtr(-t - s)) / s
        spread = ((1 - share) * many[1] * overlap) ** 2 - pull**2
        return -spread / (share * few[1] ** 2 + (1 - share) * many[1] ** 2 * power)

    best = minimize_scalar(ratio, bounds=(-6, 4), method="bounded", options={"xatol": 1e-6})
    return law.copies / -float(best.fun) if best.fun < 0 else math.inf
