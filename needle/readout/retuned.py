"""The best ridge where query and readout see the same data, by the slope of the error in it.

`reuse_path` solves three problems for each ridge; for a choice among ridges the samples that were
seen suffice. At their stationary point x the error E has the slope −λ⟨v, w⟩ in log λ, H v = ∂E/∂x,
with w the part (ν, κ, w_⊥) of x that the ridge acts on. Appendix C, thm-c-reuse.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr

from ..data.classifiers import attention
from ..data.law import FeatureLaw, Scores
from ..data.tokens import SparseTokens
from ..kit.checks import check_real
from ..kit.losses import SMOOTH, get_loss
from ..kit.nodes import CLOUD
from ..kit.records import ConvergenceError, Readout
from ..kit.threads import in_one_thread
from .limit import OrderParameters, solve_readout
from .reuse import _corrected, _solve, _start, _test_scores
from .seen import Plane, Seen, training_law
from .stationary import TOLERANCE, equations, newton

Array = np.ndarray
BEND, LONGEST, ENOUGH, LOOKS = 0.3, 0.6, 0.12, 4  # in log₁₀ λ and the log of the error
LEAST = 1e-7  # a smaller error is not pursued
RANGE = (-3.5, 1.0)  # of log₁₀ λ
_SEEN = 13  # log₂ of the points of a law of seen samples


class Retuned(NamedTuple):
    """The ridge, the readout behind it and the law of its test scores."""

    ridge: float
    readout: Readout
    scores: Scores


@in_one_thread
def retune(
    model: SparseTokens,
    alpha: float,
    ridge: float,
    *,
    temperature: float,
    loss: str = "logistic",
    lr_w: float = 0.5,
    lr_b: float = 0.5,
    balanced: bool = False,
    chance: float = 0.0,
    resolution: int = 1536,
    bits: int = CLOUD,
    start: OrderParameters | None = None,
) -> Retuned:
    """`predict_reuse` at the best ridge near the given one, the error averaged over b ± chance.

    The other arguments are those of `reuse_path`; `balanced` of `predict_alignment`, `start` of
    `order_parameters` for fresh data. Raises ConvergenceError where Newton's steps do not end.

    Examples
    --------
    >>> model = SparseTokens(L=10, R=1, theta=3.0, pi=0.5)
    >>> found = retune(model, 1.0, 0.01, temperature=2.0, resolution=96, bits=11)
    >>> print(f"{found.ridge:.1g} {found.readout.test_error:.2f}")
    0.2 0.33
    """
    place, chance = math.log10(check_real("ridge", ridge, 0, open_low=True)), float(chance)
    steps: dict[str, Any] = {"loss": loss, "lr_w": lr_w, "lr_b": lr_b, "balanced": balanced}
    steps["bits"] = min(bits, _SEEN)
    law, frame = training_law(model, alpha, temperature=temperature, **steps)
    cos = min(1.0, max(-1.0, float(frame.signal @ frame.query)))
    fresh = attention(model, temperature=temperature, cos=cos, resolution=resolution, bits=bits)
    near, _ = solve_readout(fresh, alpha, ridge, loss, True, start)
    x, looks = _start(frame, fresh, near), list[tuple[float, float, float, Array]]()
    for _ in range(LOOKS):
        lam = 10.0**place
        x, residual, _ = newton(law, alpha, lam, get_loss(loss, SMOOTH), x)
        if not residual < TOLERANCE:
            break
        error, slope = _sloped(law, frame, fresh, alpha, lam, loss, x, chance)
        looks.append((error, place, slope, x))
        place = _next(looks)
        if error < LEAST or min(abs(place - look[1]) for look in looks) < ENOUGH:
            break
    if not looks:
        raise ConvergenceError(f"lam = {ridge:g}: Newton's steps did not end; take a larger lam")
    _, place, _, x = min(looks, key=lambda look: look[0])
    lam = 10.0**place
    near, exact = solve_readout(fresh, alpha, lam, loss, True, near)
    unseen, _ = training_law(model, alpha, temperature=temperature, seen=False, **steps)
    ours = _solve(law, frame, fresh, near, alpha, lam, loss, x)
    plain = _solve(unseen, frame, fresh, near, alpha, lam, loss)
    if not (ours.converged and plain.converged):
        raise ConvergenceError(f"lam = {lam:g}: Newton's steps did not end; take a larger lam")
    return Retuned(lam, _corrected(exact, ours, plain), _test_scores(fresh, ours))


def _next(looks: list[tuple[float, float, float, Array]]) -> float:
    """Newton's next log₁₀ λ from the best look, its curvature by secant where two are known."""
    best = min(looks, key=lambda look: look[0])
    bend = BEND
    if len(looks) > 1:
        (_, a, slope_a, _), (_, b, slope_b, _) = looks[-2:]
        bend = max((slope_b - slope_a) / (b - a), BEND / 3)
    found = best[1] - min(LONGEST, max(-LONGEST, best[2] / bend))
    return min(max(found, min(RANGE[0], looks[0][1])), max(RANGE[1], looks[0][1]))


def _sloped(
    law: Seen, frame: Plane, fresh: FeatureLaw, alpha: float, lam: float, loss: str, x: Array,
    chance: float,
) -> tuple[float, float]:  # fmt: skip
    """The error on new samples and the slope of its logarithm in log₁₀ λ."""
    H = equations(law, alpha, lam, get_loss(loss, SMOOTH), x)[1]
    y, a, c, r, weight = fresh.nodes
    signal, along = float(x[:3] @ frame.signal), float(x[:3] @ frame.query)
    rest = math.sqrt(float(x[:4] @ x[:4]) - along**2)
    error, slope = 0.0, np.zeros(len(x))
    for b in (x[4] + chance, x[4] - chance):
        z = y * (fresh.theta * a * signal + c * along + b) / (r * rest)
        error += float(weight @ ndtr(-z)) / 2
        density = weight * np.exp(-z * z / 2) / math.sqrt(2 * math.pi) / 2
        pull = -density * y / (r * rest)  # in the mean of the score
        slope[:3] += float(pull @ a) * fresh.theta * frame.signal + float(pull @ c) * frame.query
        slope[4] += float(pull.sum())
        by_rest = float(density @ z) / rest
        slope[:4] += by_rest * x[:4] / rest
        slope[:3] -= by_rest * along / rest * frame.query
    scale = np.sqrt(np.abs(np.diag(H))) + 1e-300
    v = np.linalg.solve(H / np.outer(scale, scale), slope / scale) / scale
    return error, -lam * math.log(10) * float(v[:4] @ x[:4]) / max(error, 1e-300)
