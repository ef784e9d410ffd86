"""The best ridge where query and readout see the same data, by the slope of the error in it.

`reuse_path` solves three problems for each ridge; for a choice among ridges the samples that were
seen suffice. At their stationary point x the error E has the slope −λ⟨v, w⟩ in log λ, H v = ∂E/∂x,
with w the part (ν, κ, w_⊥) of x that the ridge acts on. Appendix C, thm-c-reuse.
"""

from __future__ import annotations

import math
from collections.abc import Callable
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
DECADES = (1.0, 0.0, -1.0, -2.0, -3.0)  # where the least may be that no slope leads to
_SEEN = 13  # log₂ of the points of a law of seen samples


class Look(NamedTuple):
    """The error at a place in log₁₀ λ, the slope of its logarithm, and the stationary point."""

    error: float
    slope: float
    place: float
    x: Array


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
    """`predict_reuse` at the best ridge from 3e-4 to 10, the error averaged over b ± chance.

    The search begins at the ridge given and goes on from the best decade.

    The other arguments are those of `reuse_path`; `balanced` of `predict_alignment`, `start` of
    `order_parameters` for fresh data. Raises ConvergenceError where Newton's steps do not end.

    Examples
    --------
    >>> model = SparseTokens(L=10, R=1, theta=3.0, pi=0.5)
    >>> found = retune(model, 1.0, 0.01, temperature=2.0, resolution=96, bits=11)
    >>> print(f"{found.ridge:.2g} {found.readout.test_error:.2f}")
    10 0.31
    """
    place, chance = math.log10(check_real("ridge", ridge, 0, open_low=True)), float(chance)
    steps: dict[str, Any] = {"loss": loss, "lr_w": lr_w, "lr_b": lr_b, "balanced": balanced}
    steps["bits"] = min(bits, _SEEN)
    law, frame = training_law(model, alpha, temperature=temperature, **steps)
    cos = min(1.0, max(-1.0, float(frame.signal @ frame.query)))
    fresh = attention(model, temperature=temperature, cos=cos, resolution=resolution, bits=bits)
    near, _ = solve_readout(fresh, alpha, ridge, loss, True, start)
    x = _start(frame, fresh, near)

    def look(place: float, x: Array) -> Look | None:
        """The error and its slope at a ridge, from a point nearby."""
        lam = 10.0**place
        x, residual, _ = newton(law, alpha, lam, get_loss(loss, SMOOTH), x)
        if not residual < TOLERANCE:
            return None
        return Look(*_sloped(law, frame, fresh, alpha, lam, loss, x, chance), place, x)

    looks = _descend(look, place, x, RANGE)
    for decade in DECADES:  # the error may have its least elsewhere
        if looks and min(abs(decade - one.place) for one in looks) > 0.3:
            beside = min(looks, key=lambda one: abs(one.place - decade))
            if (found := look(decade, beside.x)) and math.isfinite(found.error):
                looks.append(found)
    if not looks:
        raise ConvergenceError(f"lam = {ridge:g}: Newton's steps did not end; take a larger lam")
    best = min(looks, key=lambda one: one.error)
    if best.place in DECADES:
        more = _descend(look, best.place, best.x, RANGE)
        best = min([best, *more], key=lambda one: one.error)
    lam, x = 10.0**best.place, best.x
    near, exact = solve_readout(fresh, alpha, lam, loss, True, near)
    unseen, _ = training_law(model, alpha, temperature=temperature, seen=False, **steps)
    ours = _solve(law, frame, fresh, near, alpha, lam, loss, x)
    plain = _solve(unseen, frame, fresh, near, alpha, lam, loss)
    if not (ours.converged and plain.converged):
        raise ConvergenceError(f"lam = {lam:g}: Newton's steps did not end; take a larger lam")
    return Retuned(lam, _corrected(exact, ours, plain), _test_scores(fresh, ours))


def _descend(
    look: Callable[[float, Array], Look | None], place: float, x: Array, ends: tuple[float, float]
) -> list[Look]:
    """Looks down the slope, from a place on and not beyond it and both ends."""
    looks, ends = list[Look](), (min(ends[0], place), max(ends[1], place))
    for _ in range(LOOKS):
        if not (found := look(place, x)):
            break
        looks.append(found)
        place, x = min(max(_next(looks), ends[0]), ends[1]), found.x
        if found.error < LEAST or min(abs(place - one.place) for one in looks) < ENOUGH:
            break
    return looks


def _next(looks: list[Look]) -> float:
    """Newton's next log₁₀ λ from the best look, its curvature by secant where two are known."""
    best = min(looks, key=lambda one: one.error)
    bend = BEND
    if len(looks) > 1:
        a, b = looks[-2:]
        bend = max((b.slope - a.slope) / (b.place - a.place), BEND / 3)
    return best.place - min(LONGEST, max(-LONGEST, best.slope / bend))


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
