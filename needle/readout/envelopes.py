"""What training does to the samples of one node: a loss behind its proximal map, averaged.

A sample whose cavity margin is v = yΩ ~ N(m, sd²) costs e(v), the Moreau envelope of the loss with
parameter s = χr². The saddle point needs E e, its first derivatives in (m, sd, s) and its second.
For the logistic loss they are integrals along `proximal_curve`. For the hinge they are closed, with
J(k) = E(k − v)₊ and K(k) = E(k − v)₊²:

    E e = (K(1) − K(1−s))/(2s),   E[−yℓ'] = (J(1) − J(1−s))/s,   P(1−s < v < 1) on the margin.

Appendix C, prp-c-hinge.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

Array = np.ndarray
_WIDTH = 3.0  # of the knees of the proximal curve
_X, _W = np.polynomial.legendre.leggauss(8)
_X, _W = (1 + _X) / 2, _W / 2


def _psi(z: Array, knee: Array) -> tuple[Array, Array]:
    """ψ, odd and increasing, steep over a width `_WIDTH` around z = ±knee, and its derivative."""
    below, above = (z - knee) / _WIDTH, (z + knee) / _WIDTH
    value = _WIDTH / 2 * (np.arcsinh(below) + np.arcsinh(above))
    return value, 0.5 / np.sqrt(1 + below * below) + 0.5 / np.sqrt(1 + above * above)


def _sigmoid(z: Array) -> Array:
    """σ(z) for z ≤ 0 by `exp`, which numpy vectorizes, unlike `expit`."""
    e = np.exp(z)
    return e / (1 + e)


def _margins(omega: Array, s: Array, chi: Array, knee: Array, guess: Array | None) -> Array:
    """Solve z + s·ψ(z) − χ σ(−z) = omega (ψ of `proximal_curve`) by bracketed Newton steps.

    The equation keeps its form under (z, omega) → (−z, −omega − χ): z ≥ 0 may be assumed, and then
    z ≤ omega₊ + log(1 + χ) + 1.
    """
    side = np.where(omega + chi / 2 >= 0, 1.0, -1.0)
    omega = np.where(side > 0, omega, -omega - chi)
    low, high = np.zeros_like(omega), np.maximum(omega, 0) + np.log1p(chi) + 1
    if guess is None:
        guess = np.maximum(omega / (1 + s), np.log((1e-300 + chi) / (1 + np.abs(omega))))
    z = np.clip(guess * side, low, high)
    for _ in range(100):
        p, (psi, psi_slope) = _sigmoid(-z), _psi(z, knee)
        value = z + s * psi - chi * p - omega
        low, high = np.where(value < 0, z, low), np.where(value < 0, high, z)
        bend = chi * p * (1 - p)
        slope = 1 + s * psi_slope + bend
        step = value / slope
        new = z - step / (1 + np.clip(step * bend * (0.5 - p) / slope, -0.5, 1.0))
        new = np.where((new < low) | (new > high), (low + high) / 2, new)
        settled = np.max(np.abs(new - z) - 1e-5 * (1 + z)) < 0
        z = new
        if settled:
            break
    return z * side


def proximal_curve(
    mean: Array, s: Array, chi: Array, step: float, guess: Array | None
) -> tuple[Array, Array, Array]:
    """Margins z = y·prox(Ω), Gaussians G and weights (nodes, K): E[f(z, G)] = Σ_k weight f(z, G).

    As a function of G the margin z has two knees, at z ≈ ±log(1 + χ), sharp for large s and χ. The
    trapezoidal rule therefore runs in t = G + ψ(z), which slows down at the knees: the points solve
    z + sψ(z) − χσ(−z) = mean + s·t, and G = t − ψ(z), dG/dt are explicit.
    """
    mean, s, chi = mean[:, None], s[:, None], chi[:, None]
    knee, reach = np.log1p(chi), np.array([-7.5, 7.5])
    # at s = 0 this is the logistic prox, but to 1e-5, which is enough, in the steps used below
    ends = reach + _psi(_margins(mean + s * reach, 0 * s, chi, knee, None), knee)[0]
    points = 4 * int(np.ceil(np.max(np.ptp(ends, axis=1)) / step / 4)) + 1
    if guess is not None:  # a grid that never shrinks: Newton must not chase a changing rule
        points = max(points, guess.shape[1])
        place = np.linspace(0, guess.shape[1] - 1, points)
        left = np.minimum(place.astype(int), guess.shape[1] - 2)
        guess = guess[:, left] + (place - left) * (guess[:, left + 1] - guess[:, left])
    t = np.linspace(ends[:, 0], ends[:, 1], points, axis=1)
    z = _margins(mean + s * t, s, chi, knee, guess)
    psi, psi_slope = _psi(z, knee)
    p = _sigmoid(-np.abs(z))
    stiffness = 1 + chi * p * (1 - p)
    slope = stiffness / (stiffness + s * psi_slope)
    G = t - psi
    spacing = (t[:, 1:2] - t[:, :1]) / np.sqrt(2 * np.pi)
    return z, G, spacing * slope * np.exp(-(G**2) / 2)


def hinge_envelope(mean: Array, sd: Array, s: Array) -> tuple[Array, Array, Array]:
    """E e (n,), its gradient in (mean, sd, s) (3, n) and its Hessian (3, 3, n), of the hinge loss.

    >>> value, first, _ = hinge_envelope(np.array([0.0]), np.array([1e-9]), np.array([0.5]))
    >>> value.round(6).tolist(), first[0].round(6).tolist()  # a margin of 0 is moved to 0.5
    ([0.75], [-1.0])
    """
    value, first = np.empty(len(mean)), np.empty((3, len(mean)))
    second = np.empty((6, len(mean)))
    narrow = s < sd / 2  # there the closed form cancels, and eight nodes are exact
    for part, form in (narrow, _narrow_knee), (~narrow, _wide_knee):
        if part.any():
            value[part], first[:, part], second[:, part] = form(mean[part], sd[part], s[part])
    return value, first, second[[[0, 1, 2], [1, 3, 4], [2, 4, 5]]]


def _narrow_knee(mean: Array, sd: Array, s: Array) -> tuple[Array, Array, Array]:
    """As averages over the knee 1 − s·x < v < 1, x in [0, 1]."""
    z = (1 - s[:, None] * _X - mean[:, None]) / sd[:, None]
    density = np.exp(-z * z / 2) / np.sqrt(2 * np.pi)
    below, p = ndtr(z), density / sd[:, None]
    value = sd * ((z * below + density) @ _W)
    first = [-(below @ _W), density @ _W, -(below @ (_W * _X))]
    mm, ms, ss = p @ _W, (z * p) @ _W, (z * z * p) @ _W
    mx, sx, xx = p @ (_W * _X), (z * p) @ (_W * _X), p @ (_W * _X * _X)
    return value, np.array(first), np.array([mm, ms, mx, ss, sx, xx])


def _wide_knee(mean: Array, sd: Array, s: Array) -> tuple[Array, Array, Array]:
    """By the values at both ends of the knee."""
    (J1, P1, p1), (J0, P0, p0) = (_ends(k, mean, sd) for k in (1.0, 1 - s))
    K1, K0 = (1 - mean) * J1 + sd**2 * P1, (1 - s - mean) * J0 + sd**2 * P0
    value, force, share = (K1 - K0) / (2 * s), (J1 - J0) / s, (P1 - P0) / s
    first = [-force, sd * share, (J0 - value) / s]
    ss = share - ((1 - mean) * p1 - (1 - s - mean) * p0) / s
    mx, sx = (force - P0) / s, sd * (p0 - share) / s
    xx = -(P0 + 2 * (J0 - value) / s) / s
    return value, np.array(first), np.array([share, -sd * (p1 - p0) / s, mx, ss, sx, xx])


def _ends(k: Array | float, mean: Array, sd: Array) -> tuple[Array, Array, Array]:
    """E(k − v)₊, P(v < k) and the density at k."""
    z = (k - mean) / sd
    density, below = np.exp(-z * z / 2) / np.sqrt(2 * np.pi), ndtr(z)
    return sd * (z * below + density), below, density / sd
