"""The saddle point: the potential, its derivatives and its quadrature, each by other means."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import norm

from needle.data.classifiers import attention, pooled
from needle.data.tokens import SparseTokens
from needle.kit.losses import get_loss
from needle.readout.envelopes import proximal_curve
from needle.readout.limit import OrderParameters, order_parameters
from needle.readout.saddle import LogisticSaddle, Problem

MODEL = SparseTokens(L=10, R=1, theta=5.0, pi=0.5)


def test_the_proximal_curve_integrates_as_adaptive_quadrature_does():
    loss = get_loss("logistic")

    def slow(f: Callable, mean: float, s: float, chi: float) -> float:
        knees = [(k - mean) / s for k in (0, math.log1p(chi), -chi, -chi - math.log1p(chi))]
        return quad(
            lambda g: f(loss.prox(mean + s * g, chi, 1), g) * norm.pdf(g),
            -9, 9, points=[k for k in knees if abs(k) < 9] or None, limit=400, epsabs=0,
            epsrel=1e-10,
        )[0]  # fmt: skip

    for point in [(0.3, 0.01, 2.0), (-1.0, 3.0, 50.0), (2.0, 40.0, 1e4), (0.0, 20.0, 1e8)]:
        z, G, weight = proximal_curve(*(np.array([v]) for v in point), 0.25, None)
        for f in (lambda u, g: expit(-u) ** 2, lambda u, g: np.logaddexp(0, -u) * g):
            assert np.sum(weight * f(z, G)) == pytest.approx(slow(f, *point), rel=2e-5, abs=0)


def test_gradient_is_that_of_the_potential_and_jacobian_that_of_the_gradient():
    law = attention(MODEL, temperature=2.0, cos=0.8, resolution=60)
    alpha, lam, x = 5.0, 1e-3, np.array([2.0, 1.0, 1.5, -0.3, 0.4])
    solver = LogisticSaddle(Problem(law, law.nodes, alpha, lam, True), 0.2)
    y, a, c, r, weight = (v[:, None] for v in law.nodes)
    G = np.linspace(-9, 9, 601)
    density, loss = weight * norm.pdf(G) * (G[1] - G[0]), get_loss("logistic")

    def potential(v: np.ndarray) -> float:
        nu, kappa, tau, bias, zeta = v
        step = r**2 * tau / zeta
        mu = law.cos * nu + math.sqrt(1 - law.cos**2) * kappa
        omega = law.theta * a * mu + c * nu + bias + r * math.hypot(kappa, tau) * G
        u = loss.prox(omega, step, y)
        envelope = loss.value(u, y) + (omega - u) ** 2 / (2 * step)
        ridge = lam * (nu**2 + kappa**2 + tau**2) / 2
        return float(np.sum(density * envelope) - tau * zeta / (2 * alpha) + ridge)

    gradient, _, jacobian = solver.equations(x)
    for i, h in enumerate(1e-5 * np.eye(5)):
        slope = (potential(x + h) - potential(x - h)) / 2e-5
        assert gradient[i] == pytest.approx(slope, rel=1e-7, abs=1e-8)
        change = (solver.equations(x + h)[0] - solver.equations(x - h)[0]) / 2e-5
        np.testing.assert_allclose(jacobian[i], change, rtol=1e-6, atol=1e-7)
    assert np.linalg.eigvalsh(jacobian[:4, :4]).min() > 0 > jacobian[4, 4]  # a saddle, as claimed


def test_coarse_quadrature_in_between_leaves_no_trace():
    law = attention(MODEL, temperature=2.0, cos=0.8)
    for lam in (1e-1, 1e-6):
        o = order_parameters(law, 4.0, lam)
        fine = LogisticSaddle(Problem(law, law.nodes, 4.0, lam, True), 0.15)
        gradient, size, _ = fine.equations(o.vector)
        assert np.max(np.abs(gradient) / size) < 1e-6


def test_a_start_where_nothing_bends_is_a_failure_to_converge():
    """With b = 10⁵ and no ridge every loss is straight there, to rounding."""
    law = pooled(MODEL)
    far = OrderParameters(nu=0.0, kappa=1.0, rest=1.0, bias=1e5, zeta=1.0)
    assert order_parameters(law, 2.0, 0.0, start=far).residual == np.inf
    assert order_parameters(law, 2.0, 0.1).residual < 1e-9
