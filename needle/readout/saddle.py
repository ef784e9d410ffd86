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

import numpy as np
from scipy.special import expit

from ..data.law import FeatureLaw, Nodes

Array = np.ndarray

TOLERANCE = 1e-9  # of the relative residual
_WIDTH = 3.0  # of the knees of the proximal curve


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


class LogisticSaddle:
    """Gradient of F, its Jacobian and the observables for the logistic loss."""

    def __init__(self, problem: Problem, step: float, z: Array | None = None) -> None:
        self.problem, self.step, self.z = problem, step, z

    def _expectations(self, x: Array) -> tuple[Array, ...]:
        mean, s, chi = self.problem.cavity(x)
        self.z, G, weight = proximal_curve(mean, s, chi, self.step, self.z)
        return chi[:, None], self.z, G, weight

    def separated(self, x: Array) -> bool:
        """Whether the force is vanishing with no ridge to balance it: w grows without bound."""
        q = self.problem
        return q.lam == 0 and x[4] ** 2 < 1e-16 * q.alpha * float(q.weight @ q.r**2)

    def equations(self, x: Array) -> tuple[Array, Array, Array]:
        """Gradient of F (5,), the sizes of its terms (5,) and its Hessian (5, 5)."""
        q = self.problem
        _, kappa, rest, _, zeta = x
        sigma = np.hypot(kappa, rest)
        chi, z, G, weight = self._expectations(x)
        p = expit(-z)
        D = p * expit(z) / (1 + chi * p * expit(z))

        def over_g(f: Array) -> Array:
            return q.weight * np.einsum("nk,nk->n", weight, f)

        # derivatives of the envelope in (mean, sd, χr²) of the cavity field, node by node
        force = over_g(p)
        first = np.stack([-force, -over_g(p * G), -over_g(p * p) / 2])
        mm, ms, ss = over_g(D), over_g(D * G), over_g(D * G * G)
        mx, sx, xx = over_g(p * D), over_g(p * D * G), over_g(p * p * D)
        second = np.array([[mm, ms, mx], [ms, ss, sx], [mx, sx, xx]])
        J = np.zeros((3, 5, len(q.r)))
        J[0, [0, 1, 3]] = (q.y[:, None] * q.A).T
        J[1, 1], J[1, 2] = q.r * kappa / sigma, q.r * rest / sigma
        J[2, 2], J[2, 4] = q.r**2 / zeta, -(q.r**2) * rest / zeta**2

        terms = np.einsum("in,ian->ia", first, J)
        ridge = q.lam * np.array([x[0], kappa, rest, 0, 0])
        coupling = np.array([0, 0, zeta, 0, rest]) / (2 * q.alpha)
        gradient = terms.sum(0) + ridge - coupling
        size = np.abs(terms).sum(0) + np.abs(ridge) + coupling
        size[[0, 1, 3]] += force @ np.abs(q.A)
        H = np.tensordot(J, np.einsum("ijn,jbn->ibn", second, J), ([0, 2], [0, 2]))
        H[[0, 1, 2], [0, 1, 2]] += q.lam
        along_s, along_x = first[1] @ q.r / sigma**3, first[2] @ q.r**2 / zeta**2
        H[1:3, 1:3] += along_s * np.array([[rest**2, -kappa * rest], [-kappa * rest, kappa**2]])
        H[2, 4] -= along_x + 0.5 / q.alpha
        H[4, 2] = H[2, 4]
        H[4, 4] += along_x * 2 * rest / zeta
        return gradient, size, H

    def training_loss(self, x: Array) -> float:
        _, z, _, weight = self._expectations(x)
        loss = np.logaddexp(0, -z)
        return float(self.problem.weight @ np.einsum("nk,nk->n", weight, loss))


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
    logistic: LogisticSaddle, x: Array, tolerance: float, steps: int = 100
) -> tuple[Array, float, int]:
    """Newton on the gradient of F, shortened until the residual falls, w_⊥ and ζ kept positive.

    The last step is taken without looking again: it squares the residual that is reported.
    """
    on, positive = logistic.problem.active, np.array([2, 4])
    gradient, size, H = logistic.equations(x)
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
        if logistic.separated(x):
            break
        while True:
            gradient, size, H = logistic.equations(x + length * step)
            if np.linalg.norm(gradient[on] / scale) <= (1 - 1e-4 * length) * merit:
                break
            if length < max(tolerance, 1e-8):
                return x, residual, iteration
            length /= 3
        x = x + length * step
    return x, residual, iteration


def solve(
    problem: Problem, loss: str, start: Array | None = None
) -> tuple[Array, float, float, int]:
    """The saddle point x = (ν, κ, w_⊥, b, ζ), its training loss, residual and Newton steps.

    `start` is a saddle point nearby, for the logistic loss.
    """
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
