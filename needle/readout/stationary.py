"""The stationary point of a readout on samples that have been seen, whatever they were used for.

F in (ν, κ, w_⊥, b; ζ, ϑ) is that of `needle.readout.reuse`, for any number of directions that the
samples have had a part in (rows of `Seen.means`) and of sums that were taken out of their noise
(rows of `Seen.taken`). It is not known to be a saddle here, so that the end must be seen. Appendix
C, thm-c-reuse; Chapter 8, thm-8-worlds.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .seen import Seen

Array = np.ndarray
TOLERANCE = 1e-8


def equations(
    law: Seen, alpha: float, lam: float, loss: Any, x: Array
) -> tuple[Array, Array, Array, Array]:
    """∇F at x = (ν, κ, w_⊥, b, ζ, ϑ), its Hessian, the training scores and the forces."""
    D = len(law.means)
    REST, BIAS, ZETA, BACK = D, D + 1, D + 2, slice(D + 3, None)
    kappa, rest, zeta, theta = x[D - 1], x[REST], x[ZETA], x[BACK]
    sigma, chi, square = math.hypot(kappa, rest), rest / zeta, law.r**2
    back, noise = theta @ law.taken, law.r * law.G
    omega = x[:D] @ law.means + x[BIAS] + sigma * noise + chi * back
    u = loss.prox(omega, chi * square, law.y)
    force = loss.first(u, law.y)
    bend = loss.second(u, law.y)
    bend = bend / (1 + chi * square * bend)

    # derivatives of Ω + χ⟨ϑ, k⟩ and of χr² in x, and of χ in (w_⊥, ζ)
    chi_rest, chi_zeta, chi_rest_zeta, chi_zeta_zeta = 1 / zeta, -chi / zeta, -1 / zeta**2, 2 * chi
    chi_zeta_zeta /= zeta**2
    J, Jx = np.zeros((2, len(x), len(u)))
    J[:D], J[BIAS] = law.means, 1.0
    J[D - 1] += noise * kappa / sigma
    J[REST], J[ZETA] = noise * rest / sigma + back * chi_rest, back * chi_zeta
    J[BACK] = chi * law.taken
    Jx[REST], Jx[ZETA] = square * chi_rest, square * chi_zeta

    w = law.weight
    gradient = J @ (w * force) - Jx @ (w * force**2) / 2
    H = (J * (w * bend)) @ J.T + (Jx * (w * bend * force**2)) @ Jx.T
    mixed = (J * (w * bend * force)) @ Jx.T
    H -= mixed + mixed.T
    turn = (w * force) @ noise / sigma**3
    pair = slice(D - 1, D + 1)
    H[pair, pair] += turn * np.array([[rest**2, -kappa * rest], [-kappa * rest, kappa**2]])
    gap, held = law.taken @ (w * force) - theta, theta @ theta / 2  # gap: 0 at the solution
    along = (w * force) @ back - (w * force**2) @ square / 2 - held
    H[REST, ZETA] += along * chi_rest_zeta - 1 / (2 * alpha)
    H[ZETA, ZETA] += along * chi_zeta_zeta
    H[REST, BACK] += gap * chi_rest
    H[ZETA, BACK] += gap * chi_zeta
    places = np.arange(len(x))
    H[places[BACK], places[BACK]] -= chi
    H[places[:BIAS], places[:BIAS]] += lam
    H[ZETA, REST], H[BACK, REST], H[BACK, ZETA] = H[REST, ZETA], H[REST, BACK], H[ZETA, BACK]
    gradient[:BIAS] += lam * x[:BIAS]
    gradient[REST] -= zeta / (2 * alpha) + held * chi_rest
    gradient[ZETA] -= rest / (2 * alpha) + held * chi_zeta
    gradient[BACK] -= chi * theta
    return gradient, H, u, force


def solve_seen(seen: Seen, alpha: float, lam: float, loss: Any) -> tuple[Array, float, int]:
    """The stationary point of F from nothing: from a large ridge down to lam."""
    D = len(seen.means)
    x = np.zeros(D + 3 + len(seen.taken))
    x[D], x[D + 2], iterations = 0.1, 1.0, 0
    for ridge in np.geomspace(
        max(1.0, lam), lam, 1 + max(1, math.ceil(-math.log10(min(lam, 0.3))))
    ):
        x, residual, count = newton(seen, alpha, float(ridge), loss, x)
        iterations += count
    return x, residual, iterations


def newton(law: Seen, alpha: float, lam: float, loss: Any, x: Array) -> tuple[Array, float, int]:
    """Newton on ∇F with w_⊥, ζ > 0; not known to be a saddle here, so the end must be seen."""
    D = len(law.means)
    positive = [D, D + 2]  # w_⊥ and ζ
    gradient, H, _, _ = equations(law, alpha, lam, loss, x)
    residual, iterations = math.inf, 0
    while iterations < 100 and residual >= TOLERANCE:
        iterations += 1
        scale = np.sqrt(np.abs(np.diag(H))) + 1e-300
        merit = np.linalg.norm(gradient / scale)
        try:
            step = -np.linalg.solve(H / np.outer(scale, scale), gradient / scale) / scale
        except np.linalg.LinAlgError:
            return x, math.inf, iterations
        length = min(1.0, 0.7 / max(np.max(-step[positive] / x[positive]), 1e-300))
        while True:
            gradient, H, _, _ = equations(law, alpha, lam, loss, x + length * step)
            if np.linalg.norm(gradient / scale) <= (1 - 1e-4 * length) * merit or length < 1e-8:
                break
            length /= 2
        x = x + length * step
        residual = float(np.max(np.abs(step) / (np.abs(x) + 1e-3 * np.linalg.norm(x[:D]))))
    return x, residual, iterations
