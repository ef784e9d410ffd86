"""How the saddle point behind a trained readout is found: Newton's method on its function.

The Hessian of a function that is convex in (ν, κ, w_⊥, b) and concave in ζ is never singular, so
Newton's method, shortened until the gradient falls, reaches the one solution from anywhere. The
square loss has a closed form; the logistic loss starts from it, and the hinge loss follows a path
of rounded hinges. Appendix C, thm-c-saddle and prp-c-square.
"""

from __future__ import annotations

import math

import numpy as np

from .saddle import HingeSaddle, LogisticSaddle, Problem, Saddle, SquareSaddle
from .support import full_pulls

Array = np.ndarray
TOLERANCE = 1e-9  # of the relative residual
QUICK = 2.2  # spacing of the points in G in a search


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
    q = problem
    if q.active[3] and (pulls := full_pulls(q.y, q.A, q.r, q.weight, q.alpha, q.lam)):
        told = len(q.y) <= 8  # what is so rare is not told by nodes that stand for many points
        return pulls[0], HingeSaddle(q).training_loss(pulls[0]), 0.0 if told else np.inf, 0
    width, done, ratio, total = 2.0, 2.0, 0.2, 0
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
