"""Newton along the proximal curve against the textbook way to solve the self-consistent equations.

The textbook way, as published code in this field does it: every expectation over G by
`scipy.integrate.quad`, node by node, the proximal point inside by `scipy.optimize.minimize_scalar`,
and damped substitution until nothing moves by more than 1e-4. It is run to its end on small rules.
The full attention law has 1536 nodes: there one sweep over 48 of them is timed, and multiplied by
32 and by the number of sweeps that the small rule needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.special import expit
from scipy.stats import norm

from benchmarks.clock import now, seconds
from needle.data.classifiers import attention, pooled
from needle.data.law import FeatureLaw, Nodes
from needle.data.tokens import SparseTokens
from needle.readout.limit import learning_curve, order_parameters, predict_readout

MODEL = SparseTokens(L=10, R=1, theta=5.0, pi=0.5)


def scalar_prox(omega: float, step: float, y: float) -> float:
    """argmin_u log(1 + e^{−yu}) + (u − omega)²/(2 step)."""
    return minimize_scalar(
        lambda u: (
            math.log1p(math.exp(-abs(y * u))) + max(-y * u, 0.0) + (u - omega) ** 2 / (2 * step)
        ),
        bracket=(omega, omega + y * step),
    ).x


def expectations(mean: float, s: float, step: float, y: float) -> tuple[float, float, float]:
    """E ℓ'(u), E ℓ'(u)², E ℓ''/(1 + step·ℓ''), each by adaptive quadrature."""

    def over_gaussian(f: Callable[[float], float]) -> float:
        def integrand(g: float) -> float:
            return f(scalar_prox(mean + s * g, step, y)) * norm._pdf(g)

        return quad(integrand, -8, 8, epsabs=1e-7, epsrel=1e-5)[0]

    def curvature(u: float) -> float:
        second = expit(u) * expit(-u)
        return second / (1 + step * second)

    return (
        over_gaussian(lambda u: -y * expit(-y * u)),
        over_gaussian(lambda u: expit(-y * u) ** 2),
        over_gaussian(curvature),
    )


def sweep(law: FeatureLaw, nodes: Nodes, alpha: float, lam: float, x: np.ndarray) -> np.ndarray:
    """One substitution of (ν, κ, τ, b, χ); ν and b move by their own curvature."""
    nu, kappa, tau, bias, chi = x
    y, a, c, r, weight = nodes
    sine = math.sqrt(1 - law.cos**2)
    mean = law.theta * a * (law.cos * nu + sine * kappa) + c * nu + bias
    parts = [
        expectations(m, s, step, label)
        for m, s, step, label in zip(mean, r * math.hypot(kappa, tau), chi * r**2, y, strict=True)
    ]
    force, square, curvature = np.array(parts).T * weight
    along, V = law.theta * a * law.cos + c, curvature @ r**2
    slope = (force @ along + lam * nu) / (lam + curvature @ along**2)
    return np.array(
        [
            nu - slope if law.query else 0.0,
            -sine * law.theta * (force @ a) / (lam + V),
            math.sqrt(square @ r**2 / alpha) / (lam + V),
            bias - force.sum() / curvature.sum(),
            1 / (alpha * (lam + V)),
        ]
    )


def textbook(law: FeatureLaw, alpha: float, lam: float) -> tuple[np.ndarray, int]:
    """Damped substitution from a cold start; the solution and the number of sweeps."""
    x = np.array([0.1, 0.1, 1.0, 0.0, 1.0])
    moved, count = math.inf, 0
    while moved > 1e-4:
        new = sweep(law, law.nodes, alpha, lam, x)
        moved = np.max(np.abs(new - x))
        x, count = 0.5 * x + 0.5 * new, count + 1
    return x, count


def run() -> list[dict[str, object]]:
    """Rows (what, ours, other, ratio, required); times in seconds."""
    rows: list[dict[str, object]] = []

    def row(what: str, ours: float, other: float, required: float) -> None:
        rows.append(
            {
                "what": what,
                "ours": ours,
                "other": other,
                "ratio": other / ours,
                "required": required,
            }
        )

    alpha = 4.0
    small = attention(MODEL, temperature=2.0, cos=0.8, resolution=24)
    for law, name, lam in ((pooled(MODEL), "pooled", 0.01), (small, "attention, 24 nodes", 0.1)):
        law.nodes  # noqa: B018
        start = now()
        x, sweeps = textbook(law, alpha, lam)
        other = now() - start
        found = order_parameters(law, alpha, lam)
        np.testing.assert_allclose(
            x, [found.nu, found.kappa, found.rest, found.bias, found.chi], atol=3e-4, rtol=1e-3
        )
        ours = seconds(lambda law=law, lam=lam: predict_readout(law, alpha, lam))
        row(f"logistic, {name}, λ = {lam}: against {sweeps} textbook sweeps", ours, other, 200)
    law = attention(MODEL, temperature=2.0, cos=0.8)
    every = Nodes(*(v[::32] for v in law.nodes))
    start = now()
    sweep(law, every, alpha, lam, x)
    other = 32 * sweeps * (now() - start)
    ours = seconds(lambda: predict_readout(law, alpha, lam))
    row("logistic, attention on 1536 nodes: against textbook sweeps, scaled up", ours, other, 200)

    row("logistic, attention, cold, against 100 ms", ours, 0.1, 1)
    near = order_parameters(law, alpha, lam)
    warm = seconds(lambda: predict_readout(law, 1.1 * alpha, lam, start=near))
    row("logistic, attention, warm, against 30 ms", warm, 0.03, 1)
    ours = seconds(lambda: predict_readout(law, alpha, 1e-5))
    row("logistic, attention, cold, λ = 1e-5, against 100 ms", ours, 0.1, 1)
    ours = seconds(lambda: predict_readout(pooled(MODEL), alpha, 1e-3))
    row("logistic, pooled, λ = 1e-3, against 5 ms", ours, 0.005, 1)
    ours = seconds(lambda: predict_readout(law, alpha, lam, loss="square"))
    row("square, attention, against 2 ms", ours, 0.002, 1)
    alphas = np.geomspace(0.1, 100, 40)
    ours = seconds(lambda: learning_curve(law, alphas, lam), 2)
    row("logistic, attention, 40-point learning curve against 1.5 s", ours, 1.5, 1)
    return rows
