"""The saddle point behind a trained readout, and how it is found.

Write ξ = s_q q̂ + s_⊥ e. A trained readout is described by ν = ⟨w, q̂⟩, κ = ⟨w, e⟩, the norm w_⊥ of
the rest of w, the intercept b, and the root mean square force ζ = √(α E[r² ℓ'(u)²]). They are the
saddle point, convex in (ν, κ, w_⊥, b) and concave in ζ, of

    F = E[ M(Ω) ] − w_⊥ζ/(2α) + ½λ(ν² + κ² + w_⊥²),    Ω = θaμ + cν + b + rσG,    G ~ N(0, 1),

with μ = s_q ν + s_⊥ κ, σ² = κ² + w_⊥², and M the Moreau envelope of the loss with parameter χr²,
χ = w_⊥/ζ. The Hessian of such a function is never singular, so Newton's method, shortened until the
gradient falls, reaches the one solution from anywhere. The square loss has a closed form; the
logistic loss starts from it. Appendix C, def-c-potential, thm-c-saddle and prp-c-square.
"""

from __future__ import annotations

import copy
import math

import numpy as np
from scipy.special import expit

from ..data.law import FeatureLaw, Nodes
from .envelopes import hinge_envelope
from .envelopes import proximal_curve as proximal_curve

Array = np.ndarray

TOLERANCE = 1e-9  # of the relative residual


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


def _square(q: Problem) -> tuple[Array, float]:
    """Order parameters and training loss for the square loss, in closed form.

    The only nonlinear equation is that of g = 1/χ: g/α = λ + g E[r²/(g + r²)]. It is convex, so
    Newton from the upper bound α(λ + E[r²]) descends to its largest root; λ = 0 needs no limit.
    """
    square = q.r**2
    g, last = q.alpha * (q.lam + q.weight @ square), np.inf
    while g < last:
        share = square / (g + square)
        slope = 1 / q.alpha - q.weight @ share**2
        excess = g * (1 / q.alpha - q.weight @ share) - q.lam
        g, last = (max(g - excess / slope, 0.0) if slope > 0 else 0.0), g
    weight = q.weight / (g + square)
    ridge = [q.lam / g if g > 0 else max(1 / q.alpha - 1, 0.0), 1 / q.alpha, 0.0]
    on = q.active[[0, 1, 3]]
    x = np.zeros(3)
    normal = (q.A.T * weight) @ q.A + np.diag(ridge)
    try:
        x[on] = np.linalg.solve(normal[np.ix_(on, on)], (q.A.T @ (weight * q.y))[on])
    except np.linalg.LinAlgError:
        return np.ones(5), np.nan
    miss = (q.A @ x - q.y) ** 2 + square * x[1] ** 2
    slope = 1 / q.alpha - q.weight @ (square / (g + square)) ** 2
    rest_squared = (weight * square / (g + square)) @ miss / slope if slope > 0 else np.inf
    rest = np.sqrt(rest_squared)
    loss = (weight / (g + square)) @ (g**2 * (miss + square * rest_squared)) / 2 if g > 0 else 0.0
    zeta = rest * g if g > 0 else 0.0
    return np.array([x[0], x[1], rest, x[2], zeta]), float(loss)


def _newton(
    saddle: Saddle, x: Array, tolerance: float, steps: int = 100
) -> tuple[Array, float, int]:
    """Newton on the gradient of F, shortened until the residual falls, w_⊥ and ζ kept positive.

    The last step is taken without looking again: it squares the residual that is reported.
    """
    on, positive = saddle.problem.active, np.array([2, 4])
    gradient, size, H = saddle.equations(x)
    residual, iteration = np.inf, 0
    for iteration in range(steps):
        residual = np.max(np.abs(gradient[on]) / np.maximum(size[on], 1e-300))
        scale = np.sqrt(np.abs(np.diag(H)))[on]
        if not np.all(scale > 0):  # a start so far out that F is flat there, to rounding
            return x, np.inf, iteration
        merit = np.linalg.norm(gradient[on] / scale)
        step = np.zeros(5)
        scaled = H[np.ix_(on, on)] / np.outer(scale, scale)
        try:
            step[on] = -np.linalg.solve(scaled, gradient[on] / scale) / scale
        except np.linalg.LinAlgError:
            return x, np.inf, iteration
        length = min(1.0, 0.9 / np.max(-step[positive] / x[positive], initial=1e-300))
        if residual < tolerance:
            return x + length * step, residual, iteration + 1
        if saddle.separated(x):
            break
        while True:
            gradient, size, H = saddle.equations(x + length * step)
            if np.linalg.norm(gradient[on] / scale) <= (1 - 1e-4 * length) * merit:
                break
            if length < max(tolerance, 1e-8):
                return x, residual, iteration
            length /= 3
        x = x + length * step
    return x, residual, iteration


def _hinge(problem: Problem) -> tuple[Array, float, float, int]:
    """The saddle point of the hinge loss, down a path of rounded hinges.

    Rounded over a width of 2 it is close to the square loss, whose solution starts the path. Where
    w shrinks with the rounding it is exactly 0 in the end: then b = ±1, the sign of the many, and
    the few lose 2 each.
    """
    q, width, done, ratio, total = problem, 2.0, 2.0, 0.2, 0
    x = _square(q.with_ridge(q.lam * width))[0] * [1, 1, 1, 1, 1 / width]
    unit, last = np.sqrt(q.weight @ q.r**2), np.inf
    while True:
        trial, residual, steps = _newton(HingeSaddle(q, width), x, 1e-3 if width else TOLERANCE)
        total += steps
        if not residual < 1e-2 and ratio < 0.9 and width < done:  # too far: go more slowly
            ratio **= 0.5
            width = done * ratio
            continue
        x, size = trial, unit * float(np.linalg.norm(trial[:3]))
        if width == 0 or not np.isfinite(residual):
            return x, HingeSaddle(q).training_loss(x), residual, total
        if size < 1e-4 and size < 1.5 * ratio * last < math.inf:
            side = np.sign(q.weight @ q.y) if q.active[3] else 0.0
            x = np.array([0.0, 0.0, 0.0, side, x[4]])
            return x, float(q.weight @ np.maximum(1 - q.y * side, 0)), 0.0, total
        last, done = size, width
        width = 0.0 if width < 1e-3 * size else width * ratio


QUICK = 2.2  # spacing of the points in G in a search


def settle(problem: Problem, loss: str, start: Array | None = None) -> tuple[Array, Saddle] | None:
    """The saddle point to about 10⁻³, for a search, and the equations there; None without end."""
    x = start
    if loss == "square" or x is None:
        x, value = _square(problem if loss == "square" else problem.with_ridge(4 * problem.lam))
        if np.isnan(value) or not (np.isfinite(x).all() and x[4] > 0):
            return None
    if loss == "square":
        return x, SquareSaddle(problem)
    logistic = LogisticSaddle(problem, QUICK if len(problem.y) > 8 else 0.25)
    x, residual, _ = _newton(logistic, x if start is not None else x * [2, 2, 2, 2, 0.5], 0.02)
    return (x, logistic) if residual < 0.02 and x[2] > 0 and x[4] > 0 else None


def solve(
    problem: Problem, loss: str, start: Array | None = None
) -> tuple[Array, float, float, int]:
    """The saddle point x = (ν, κ, w_⊥, b, ζ), its training loss, residual and Newton steps.

    `start` is a saddle point nearby, for the logistic loss.
    """
    if loss == "hinge":
        return _hinge(problem)
    if loss == "square":
        saddle, value = _square(problem)
        return saddle, value, np.inf if np.isnan(value) else 0.0, 1
    levels = [(2.2, 1e-3), (1.1, TOLERANCE)]  # few points in G, then enough
    if len(problem.y) <= 8:
        levels = [(0.25, TOLERANCE)]
    x, z, residual, iterations = start, None, 0.0, 1
    if x is None:  # ℓ = log 2 − yu/2 + u²/8 + …: the square loss at scores u/2 and ridge 4λ
        near, value = _square(problem.with_ridge(4 * problem.lam))
        x = near * [2, 2, 2, 2, 0.5]
        if np.isnan(value) or not (
            np.isfinite(x).all() and x[4] > 0
        ):  # λ = 0, α ≤ 1: even numbers can be fitted
            return np.nan_to_num(x, posinf=1e9), 0.0, np.inf, iterations
    for step, tolerance in levels:
        logistic = LogisticSaddle(problem, step, z)
        x, residual, steps = _newton(logistic, x, tolerance)
        z = logistic.z
        iterations += steps
    return x, logistic.training_loss(x), residual, iterations
