"""The saddle point behind a trained readout: its function and the derivatives, loss by loss.

Write ξ = s_q q̂ + s_⊥ e. A trained readout is described by ν = ⟨w, q̂⟩, κ = ⟨w, e⟩, the norm w_⊥ of
the rest of w, the intercept b, and the root mean square force ζ = √(α E[r² ℓ'(u)²]). They are the
saddle point, convex in (ν, κ, w_⊥, b) and concave in ζ, of

    F = E[ M(Ω) ] − w_⊥ζ/(2α) + ½λ(ν² + κ² + w_⊥²),    Ω = θaμ + cν + b + rσG,    G ~ N(0, 1),

with μ = s_q ν + s_⊥ κ, σ² = κ² + w_⊥², and M the Moreau envelope of the loss with parameter χr²,
χ = w_⊥/ζ. `needle.readout.newton` finds it. Appendix C, def-c-potential and thm-c-saddle.
"""

from __future__ import annotations

import copy

import numpy as np
from scipy.special import expit

from ..data.law import FeatureLaw, Nodes
from .envelopes import hinge_envelope
from .envelopes import proximal_curve as proximal_curve

Array = np.ndarray


class Problem:
    """Law, ratio and ridge unpacked: A holds the derivatives of the mean score in (ν, κ, b)."""

    def __init__(self, law: FeatureLaw, nodes: Nodes, alpha: float, lam: float, intercept: bool):
        self.y, a, c, self.r, self.weight = nodes
        self.alpha, self.lam = alpha, lam
        sine = np.sqrt(1 - law.cos**2)
        self.A = np.stack([law.theta * a * law.cos + c, law.theta * a * sine, np.ones(len(a))], 1)
        self.active = np.array([law.query, True, True, intercept, True])

    def with_ridge(self, lam: float) -> Problem:
        """The same problem at another ridge."""
        other = copy.copy(self)
        other.lam = lam
        return other

    def cavity(self, x: Array) -> tuple[Array, Array, Array]:
        """Node by node: mean and standard deviation of yΩ, and the prox parameter χr²."""
        _, kappa, rest, _, zeta = x
        with np.errstate(divide="ignore"):
            chi = self.r**2 * np.divide(rest, zeta)
        return self.y * (self.A @ x[[0, 1, 3]]), self.r * np.hypot(kappa, rest), chi


class Saddle:
    """Gradient of F, its Jacobian and the observables, for a loss that has no closed form."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    def envelope(self, x: Array) -> tuple[Array, Array]:
        """Derivatives of E M in (mean, sd, χr²) of each node, weighted: (3, n) and (3, 3, n)."""
        raise NotImplementedError

    def training_loss(self, x: Array) -> float:
        raise NotImplementedError

    def separated(self, x: Array) -> bool:
        """Whether the force is vanishing with no ridge to balance it: w grows without bound."""
        q = self.problem
        return q.lam == 0 and x[4] ** 2 < 1e-16 * q.alpha * float(q.weight @ q.r**2)

    def equations(self, x: Array) -> tuple[Array, Array, Array]:
        """Gradient of F (5,), the sizes of its terms (5,) and its Hessian (5, 5)."""
        q = self.problem
        _, kappa, rest, _, zeta = x
        sigma = np.hypot(kappa, rest)
        first, second = self.envelope(x)
        J = np.zeros((3, 5, len(q.r)))
        J[0, [0, 1, 3]] = (q.y[:, None] * q.A).T
        J[1, 1], J[1, 2] = q.r * kappa / sigma, q.r * rest / sigma
        J[2, 2], J[2, 4] = q.r**2 / zeta, -(q.r**2) * rest / zeta**2

        terms = np.einsum("in,ian->ia", first, J)
        ridge = q.lam * np.array([x[0], kappa, rest, 0, 0])
        coupling = np.array([0, 0, zeta, 0, rest]) / (2 * q.alpha)
        gradient = terms.sum(0) + ridge - coupling
        size = np.abs(terms).sum(0) + np.abs(ridge) + coupling
        size[[0, 1, 3]] += -first[0] @ np.abs(q.A)
        H = np.tensordot(J, np.einsum("ijn,jbn->ibn", second, J), ([0, 2], [0, 2]))
        H[[0, 1, 2], [0, 1, 2]] += q.lam
        along_s, along_x = first[1] @ q.r / sigma**3, first[2] @ q.r**2 / zeta**2
        H[1:3, 1:3] += along_s * np.array([[rest**2, -kappa * rest], [-kappa * rest, kappa**2]])
        H[2, 4] -= along_x + 0.5 / q.alpha
        H[4, 2] = H[2, 4]
        H[4, 4] += along_x * 2 * rest / zeta
        return gradient, size, H


class LogisticSaddle(Saddle):
    """The logistic loss, along its proximal curve."""

    def __init__(self, problem: Problem, step: float, z: Array | None = None) -> None:
        super().__init__(problem)
        self.step, self.z = step, z

    def _expectations(self, x: Array) -> tuple[Array, ...]:
        mean, s, chi = self.problem.cavity(x)
        self.z, G, weight = proximal_curve(mean, s, chi, self.step, self.z)
        return chi[:, None], self.z, G, weight

    def envelope(self, x: Array) -> tuple[Array, Array]:
        chi, z, G, weight = self._expectations(x)
        p = expit(-z)
        D = p * expit(z) / (1 + chi * p * expit(z))

        def over_g(f: Array) -> Array:
            return self.problem.weight * np.einsum("nk,nk->n", weight, f)

        first = np.stack([-over_g(p), -over_g(p * G), -over_g(p * p) / 2])
        mm, ms, ss = over_g(D), over_g(D * G), over_g(D * G * G)
        mx, sx, xx = over_g(p * D), over_g(p * D * G), over_g(p * p * D)
        return first, np.array([[mm, ms, mx], [ms, ss, sx], [mx, sx, xx]])

    def training_loss(self, x: Array) -> float:
        _, z, _, weight = self._expectations(x)
        loss = np.logaddexp(0, -z)
        return float(self.problem.weight @ np.einsum("nk,nk->n", weight, loss))


class SquareSaddle(Saddle):
    """The square loss: E M = ½((1 − m)² + s²)/(1 + χr²), for slopes; `_square` has its solution."""

    def envelope(self, x: Array) -> tuple[Array, Array]:
        mean, s, chi = self.problem.cavity(x)
        gap, w = 1 - mean, self.problem.weight / (1 + chi)
        first = w * np.array([-gap, s, -(gap**2 + s**2) / 2 / (1 + chi)])
        mx, sx, xx = w / (1 + chi) * np.array([gap, -s, (gap**2 + s**2) / (1 + chi)])
        none = np.zeros_like(w)
        return first, np.array([[w, none, mx], [none, w, sx], [mx, sx, xx]])


class HingeSaddle(Saddle):
    """The hinge loss, in closed form; its kink rounded over a width `rounding`.

    A rounded hinge is an envelope of the hinge, and the envelope of an envelope adds parameters.
    """

    def __init__(self, problem: Problem, rounding: float = 0.0) -> None:
        super().__init__(problem)
        self.rounding = rounding

    def envelope(self, x: Array) -> tuple[Array, Array]:
        mean, s, chi = self.problem.cavity(x)
        _, first, second = hinge_envelope(mean, s, chi + self.rounding)
        return first * self.problem.weight, second * self.problem.weight

    def equations(self, x: Array) -> tuple[Array, Array, Array]:
        """As for any loss; where F is linear in ζ, below capacity, its Hessian is kept regular."""
        gradient, size, H = super().equations(x)
        H[4, 4] = min(H[4, 4], -1e-12 * H[2, 4] ** 2 / H[2, 2])
        return gradient, size, H

    def training_loss(self, x: Array) -> float:
        mean, s, chi = self.problem.cavity(x)
        value, first, _ = hinge_envelope(mean, s, chi)
        return max(0.0, float(self.problem.weight @ (value + chi * first[2])))
