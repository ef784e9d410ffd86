"""Two hops: a task in which a second layer pays, by a power of the width.

A token is x = (x⁰, x^A, x^B, x^V) ∈ R × R^m × R^m × R plus white noise. Three of the L tokens of a
bag carry a signal; u is uniform on the sphere of R^m and drawn anew for every bag:

    marker θ₁ in x⁰ and κu in x^A,   needle θ₂u in x^B and yθ₃ in x^V,
    decoy θ₂u′ in x^B and −yθ₃ in x^V, with u′ independent of u.

The label is y = ±1. Two layers find the marker, take p = its x^A as a query, and read x^V where
⟨x^B, p⟩ is largest; one layer sees tokens through a few directions that are the same for all bags.
Chapter 11, thm-11-hops and prop-11-hops.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import betaincinv, gammaincinv, log_ndtr, ndtr, ndtri

from ..data.tokens import Tokens
from ..kit.checks import check_array, check_integer, check_real, check_rng

Array = np.ndarray
STEP = 0.05  # of trapezoidal rules over heights: exact to rounding
ANGLES, SPREAD = 4000, 600_000  # of p; of those a match that errs makes of them
EVENLY = 0.8191725134, 0.6710436067, 0.5497004779  # 1/g, 1/g², 1/g³ of g⁴ = g + 1
MARKER, NEEDLE, DECOY = 0, 1, 2


def _checked(L: object, m: object, theta: object, kappa: object) -> tuple[int, int, Array, float]:
    L, m = check_integer("L", L, 3), check_integer("m", m, 2)
    strengths = check_array("theta", theta, 3)
    for value in strengths:
        check_real("theta", float(value), 0)
    return L, m, strengths, check_real("kappa", kappa, 0)


def sample_hops(
    L: int, m: int, n: int, rng: np.random.Generator, *, theta: Sequence[float], kappa: float
) -> Tokens:
    """n bags (n, L, 2m + 2), coordinates in the order 0, A, B, V; the signals come first.

    `where` numbers the tokens that carry a signal 1, 2, 3 (marker, needle, decoy).

    >>> X, y, where = sample_hops(5, 4, 2, np.random.default_rng(0), theta=(9, 9, 9), kappa=9)
    >>> X.shape, where[0].tolist()
    ((2, 5, 10), [1, 2, 3, 0, 0])
    """
    (L, m, strength, kappa), n = _checked(L, m, theta, kappa), check_integer("n", n, 1)
    rng = check_rng(rng)
    u, other = (rng.standard_normal((n, m)) for _ in range(2))
    u, other = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (u, other))
    y = np.where(rng.random(n) < 0.5, 1, -1)
    X = rng.standard_normal((n, L, 2 * m + 2))
    X[:, MARKER, 0] += strength[0]
    X[:, MARKER, 1 : m + 1] += kappa * u
    X[:, NEEDLE, m + 1 : -1] += strength[1] * u
    X[:, DECOY, m + 1 : -1] += strength[1] * other
    X[:, NEEDLE, -1] += strength[2] * y
    X[:, DECOY, -1] -= strength[2] * y
    where = np.zeros((n, L), dtype=int)
    where[:, :3] = 1, 2, 3
    return Tokens(X, y, where)


def two_layers(X: Array, query: Array, match: Array | None = None) -> Array:
    """Scores of two layers with hard maxima: x^V where ⟨x^B, Mp⟩ is largest, p = x^A at the first.

    The first maximum is that of ⟨x, query⟩; `match` is M (m, m), None the identity.
    """
    m, rows = (X.shape[2] - 2) // 2, np.arange(len(X))
    p = X[rows, (X @ query).argmax(axis=1), 1 : m + 1]
    p = p if match is None else p @ match.T
    found = np.einsum("nlm,nm->nl", X[:, :, m + 1 : -1], p).argmax(axis=1)
    return np.asarray(X[rows, found, -1])


def simulate_two_hops(
    L: int, m: int, rng: np.random.Generator, *, theta: Sequence[float], kappa: float, n: int = 4000
) -> float:
    """Share of n literal bags that two layers with hard maxima and perfect queries get wrong."""
    L, m, _, kappa = _checked(L, m, theta, kappa)
    query, wrong, step = np.eye(2 * m + 2)[0], 0, max(1, 2**22 // (L * (2 * m + 2)))
    for start in range(0, n := check_integer("n", n, 1), step):
        size = min(step, n - start)
        X, y, _ = sample_hops(L, m, size, rng, theta=theta, kappa=kappa)
        wrong += int((two_layers(X, query) * y < 0).sum())
    return wrong / n


def _angles(m: int, kappa: float, count: float) -> tuple[Array, Array, Array]:
    """Angles, and of each its share in the laws of the angle between p and u, and between p and u′.

    p = κu + z, so that p = ρp̂ has density ∝ exp(−(ρ² − 2ρκ cos φ + κ²)/2), with ρ^(m−1) sin^(m−2) φ
    from the coordinates. Angles crowd at 0, as those of a large κ do.
    """
    count, bend = int(min(max(count, 20 * math.sqrt(m)), 4e5)), math.asinh(1 + kappa)
    t = (np.arange(count) + 0.5) / count
    angle = np.pi * np.sinh(bend * t) / math.sinh(bend)
    decoy = (m - 2) * np.log(np.sin(angle)) + np.log(np.cosh(bend * t))
    along = kappa * np.cos(angle)
    top = (along + np.sqrt(along**2 + 4 * (m - 1))) / 2  # ρ where the integrand is largest
    top = np.where(along > 0, top, (m - 1) / (top - along))
    width = 1 / np.sqrt(1 + (m - 1) / top**2)
    most = (m - 1) * np.log(top) - (top - along) ** 2 / 2
    total = np.zeros(count)
    for x in np.arange(-9, 30, 0.25):
        rho = top + x * width
        with np.errstate(invalid="ignore", divide="ignore"):
            log = (m - 1) * np.log(rho) - (rho - along) ** 2 / 2
        total += np.where(rho > 0, np.exp(log - most), 0.0)
    needle = decoy - (kappa * np.sin(angle)) ** 2 / 2 + most + np.log(total * width)
    shares = (np.exp(log - log.max()) for log in (needle, decoy))
    one, other = (share / share.sum() for share in shares)
    return angle, one, other


def _turned(angle: Array, m: int, match: float) -> Array:
    """Cosines between Mp and a vector at `angle` from p, with their spread over M (angles, nodes).

    M = match·1 + √(1 − match²)N, where N has entries N(0, 1/m): it turns p by ψ, with
    cos ψ ∝ match + √(1 − match²)N₁₁, in any direction, which has a cosine of its own on S^(m−2).
    """
    along = np.cos(angle)[:, None]
    if abs(match) == 1:
        return match * along
    rest = math.sqrt(1 - match**2)
    one, two, three = (
        (0.5 + np.arange(max(SPREAD // len(angle), 16)) * step) % 1 for step in EVENLY
    )
    straight = match + rest * ndtri(one) / math.sqrt(m)
    aside = rest * np.sqrt(2 * gammaincinv((m - 1) / 2, two) / m)
    turn = 2 * betaincinv(m / 2 - 1, m / 2 - 1, three) - 1 if m > 2 else np.sign(three - 0.5)
    cosine = straight * along + aside * turn * np.sin(angle)[:, None]
    return np.asarray(cosine / np.hypot(straight, aside))


def _density(x: Array) -> Array:
    return np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)


def _with_noise(height: Array, share: Array, h: Array) -> tuple[Array, Array]:
    """Density and distribution of height + N(0, 1) at the points h, which are STEP apart.

    Each height is shared between its two neighbours, which widens it by STEP²/6 on average: so
    much less is the variance of the noise.
    """
    reach = 10 + round(10 / STEP) * STEP  # below h, and what is lower counts as that low
    count, low = len(h) + round(10 / STEP), h[0] - round(10 / STEP) * STEP
    place = np.clip((height - low) / STEP, 0, count - 1 - 1e-9)
    left = place.astype(int)
    right = share * (place - left)
    mass = np.bincount(left, share - right, count) + np.bincount(left + 1, right, count)
    x, sd = STEP * np.arange(-round(reach / STEP), round(reach / STEP) + 1), 1 - STEP**2 / 12
    density = np.convolve(mass, _density(x / sd) / sd)
    below = np.convolve(mass, ndtr(x / sd) - (x >= 0))
    first = round(reach / STEP) + round(10 / STEP)
    part = slice(first, first + len(h))
    return density[part], below[part] + np.cumsum(mass)[-len(h) :]


def two_hop_error(
    L: int,
    m: int,
    *,
    theta: Sequence[float],
    kappa: float,
    query_cos: float = 1.0,
    match_cos: float = 1.0,
) -> float:
    """Error of two layers with hard maxima: ½ − p₁(p₂ − p_d)(Φ(θ₃) − ½), exact at every L and m.

    p₁ is the probability that the marker is the largest of L tokens, and p₂, p_d those that the
    needle, or the decoy, is the largest along p once the marker is found: they stand at the heights
    θ₂⟨p̂, u⟩ and θ₂⟨p̂, u′⟩. In all other cases a coin is thrown. It takes θ₁ and
    θ₂κ/√(κ² + m) above √(2 log L).

    Parameters
    ----------
    theta : θ₁, θ₂, θ₃ of marker, needle and value
    kappa : strength of what the marker says of u
    query_cos, match_cos : of learned queries: cosine of the first with e₀, and of M with the
        identity; errors in general position, those of M Gaussian, on average over them

    Examples
    --------
    >>> round(two_hop_error(50, 60, theta=(5, 5, 2), kappa=8), 4)
    0.0856
    """
    L, m, strength, kappa = _checked(L, m, theta, kappa)
    query = check_real("query_cos", query_cos, -1, 1)
    match = check_real("match_cos", match_cos, -1, 1)
    first, second = float(strength[0]) * query, float(strength[1])
    h = np.arange(-10, max(first, 0) + 10, STEP)
    marked = STEP * float(_density(h - first) @ np.exp((L - 1) * log_ndtr(h)))
    h = np.arange(-10, second + 10, STEP)
    quiet = np.exp((L - 2) * log_ndtr(h))
    angle, *laws = _angles(m, kappa, max(ANGLES, 20 * second) if abs(match) == 1 else ANGLES / 10)
    height = second * _turned(angle, m, match)
    (at_needle, below_needle), (at_decoy, below_decoy) = (
        _with_noise(height.ravel(), np.repeat(law, height.shape[1]) / height.shape[1], h)
        for law in laws
    )
    right = STEP * float((at_needle * below_decoy) @ quiet)
    wrong = STEP * float((at_decoy * below_needle) @ quiet)
    ahead = right - wrong if match * (right - wrong) > 0 else 0.0  # never with the other sign
    return 0.5 - marked * ahead * float(ndtr(strength[2]) - 0.5)


def one_layer_bound(m: int, theta2: float, heads: int = 1) -> float:
    """Φ(−θ₂√(k/m)), k = min(2·heads, m): below it errs no classifier that sees k directions.

    A head of one layer sees tokens through its query and its value; what it does with the two
    numbers of each token is free, and so are order, number of tokens and training.

    >>> round(one_layer_bound(100, 6.0), 3), round(one_layer_bound(100, 6.0, heads=8), 3)
    (0.198, 0.008)
    """
    m, heads = check_integer("m", m, 2), check_integer("heads", heads, 1)
    theta2 = check_real("theta2", theta2, 0)
    return float(ndtr(-theta2 * math.sqrt(min(2 * heads, m) / m)))
