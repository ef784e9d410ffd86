"""One data set used twice: two gradient steps on the query, then a readout on the same samples.

On samples that the steps have seen, the features have the law of `needle.readout.seen`; the readout
sees it along ŵ⁽¹⁾, q̂₂ and e. In all other directions the noise is fresh, less the two sums that
were taken out of it: the force of the data on a direction of w is E[r²ℓ'²] − E[ℓ'k₁]² − E[ℓ'k₂]²
with k₁ = ⟨s, m⟩/√E|m|² and k₂ = γ_y/√(LΓ̄₂). The saddle function of `needle.readout.saddle` becomes

    F = E[ M_{χr²}(Ω + χ(ϑ₁k₁ + ϑ₂k₂)) ] − ½χ(ϑ₁² + ϑ₂²) − w_⊥ζ/(2α) + ½λ(|ν|² + κ² + w_⊥²),

χ = w_⊥/ζ, stationary in (ν₁, ν₂, κ, w_⊥, b, ζ, ϑ₁, ϑ₂). New samples have no part in w⁽¹⁾ or q: the
test error is that of the ordinary attention law.
Appendix C, thm-c-reuse.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Unpack

import numpy as np
from scipy.special import ndtr

from ..data.classifiers import attention
from ..data.law import FeatureLaw, Scores
from ..data.tokens import SparseTokens
from ..kit.checks import check_flag, check_real
from ..kit.losses import SMOOTH, get_loss
from ..kit.nodes import CLOUD
from ..kit.records import ConvergenceError, Readout
from ..kit.threads import in_one_thread
from ..steps.rule import StepOptions, step_rule
from .limit import OrderParameters, solve_readout
from .seen import Plane, Seen, training_law
from .stationary import TOLERANCE, equations, newton, solve_seen

Array = np.ndarray


@dataclass(frozen=True)
class Reused(Readout):
    """A readout, and its overlap ⟨w, q̂⟩ with the query."""

    along: float = 0.0


def _start(frame: Plane, fresh: FeatureLaw, near: OrderParameters) -> Array:
    """The solution of fresh samples in the frame of seen ones."""
    rest = frame.signal - fresh.cos * frame.query
    plane = near.nu * frame.query + near.kappa * rest / max(float(np.linalg.norm(rest)), 1e-12)
    return np.array([*plane, near.rest, near.bias, near.zeta, 0.0, 0.0])


def _solve(
    seen: Seen, frame: Plane, fresh: FeatureLaw, near: OrderParameters, alpha: float, lam: float,
    loss: str, start: Array | None = None,
) -> Reused:  # fmt: skip
    """The readout trained on `seen` and tested on the law `fresh`, from the solution `near` it.

    `start` is a stationary point of `seen` nearby, if one is known.
    """
    kind = get_loss(loss, SMOOTH)
    start = _start(frame, fresh, near) if start is None else start
    x, residual, iterations = newton(seen, alpha, lam, kind, start)
    u = equations(seen, alpha, lam, kind, x)[2]
    signal, along, square = x[:3] @ frame.signal, x[:3] @ frame.query, x[:4] @ x[:4]
    y, a, c, r, weight = fresh.nodes
    margin = y * (fresh.theta * a * signal + c * along + x[4]) / (r * math.sqrt(square - along**2))
    return Reused(
        test_error=float(weight @ ndtr(-margin)),
        train_loss=float(seen.weight @ kind.value(u, seen.y)),
        train_error=float(seen.weight @ (seen.y * u < 0)),
        signal=float(signal),
        norm=math.sqrt(square),
        bias=float(x[4]),
        converged=residual < TOLERANCE,
        iterations=iterations,
        along=float(along),
    )


def predict_reuse(
    model: SparseTokens,
    alpha: float,
    lam: float,
    *,
    temperature: float,
    loss: str = "logistic",
    lr_w: float = 0.5,
    lr_b: float = 0.5,
    withheld: bool = True,
) -> Readout:
    """The readout when query and readout are trained on the same alpha·d samples.

    The equations are solved twice at the same points, for samples that the steps have seen and for
    fresh ones; the quotient of the two (for signal and bias the difference), in which most of the
    error of the points cancels, is applied to `predict_readout` of the fresh ones.

    Parameters
    ----------
    model : the token model
    alpha, lam : samples per dimension, all used for both, and ridge λ > 0
    temperature : T = β|q| > 0, reached by the choice of η_qβ
    loss, lr_w, lr_b : of the two steps (`needle.predict_alignment`); the loss also of the
        readout
    withheld : False keeps ϑ₁ = ϑ₂ = 0, that is, shifts the logits of the training samples and
        leaves their noise alone: an approximation, to see what it misses

    Returns
    -------
    Readout: limits of everything that `simulate_reuse` measures.

    Raises
    ------
    ConvergenceError : with the best estimate, where Newton's steps do not end.

    Examples
    --------
    >>> model = SparseTokens(L=10, R=1, theta=3.0, pi=0.5)
    >>> from needle import predict_alignment, predict_readout
    >>> query = attention(model, temperature=2.0, cos=predict_alignment(model, 1.0).query_cos)
    >>> fresh = predict_readout(query, 1.0, 0.01)
    >>> reused = predict_reuse(model, 1.0, 0.01, temperature=2.0)
    >>> print(f"{fresh.train_loss:.3f} {reused.train_loss:.3f}")
    0.113 0.066
    """
    steps = StepOptions(loss=loss, lr_w=lr_w, lr_b=lr_b)
    path = reuse_path(model, alpha, [lam], temperature=temperature, withheld=withheld, **steps)
    found = path[0][0]
    if not found.converged:
        raise ConvergenceError(
            f"alpha = {alpha:g}, lam = {lam:g}: Newton's steps did not end; take a larger lam",
            found,
        )
    return found


@in_one_thread
def reuse_path(
    model: SparseTokens,
    alpha: float,
    lams: Sequence[float],
    *,
    temperature: float,
    withheld: bool = True,
    resolution: int = 1536,
    bits: int = CLOUD,
    **steps: Unpack[StepOptions],
) -> list[tuple[Readout, Scores]]:
    """`predict_reuse` at several ridges, at little more than the cost of one; see `converged`.

    With each readout comes the law of its test score. `resolution` and `bits` are those of
    `needle.attention`.
    """
    lams = [check_real("lam", lam, 0, open_low=True) for lam in lams]
    withheld = check_flag("withheld", withheld)
    loss = step_rule(**steps).loss
    seen, frame = training_law(model, alpha, temperature=temperature, **steps)
    unseen, _ = training_law(model, alpha, temperature=temperature, seen=False, **steps)
    if not withheld:
        seen = seen._replace(taken=unseen.taken)
    cos = min(1.0, max(-1.0, float(frame.signal @ frame.query)))
    fresh = attention(model, temperature=temperature, cos=cos, resolution=resolution, bits=bits)
    path, near = [], None
    for lam in lams:
        near, exact = solve_readout(fresh, alpha, lam, loss, True, near)
        ours, plain = (_solve(law, frame, fresh, near, alpha, lam, loss) for law in (seen, unseen))
        path.append((_corrected(exact, ours, plain), _test_scores(fresh, ours)))
    return path


def _corrected(exact: Readout, ours: Readout, plain: Readout) -> Readout:
    """The exact record of fresh samples, changed by what our points say that reuse changes."""

    def corrected(name: str) -> float:
        value, new, old = (getattr(record, name) for record in (exact, ours, plain))
        return value + new - old if name in ("signal", "bias") or not old else value * new / old

    names = ("test_error", "train_loss", "train_error", "signal", "norm", "bias")
    return Readout(
        **{name: corrected(name) for name in names},
        converged=ours.converged and plain.converged,
        iterations=ours.iterations,
    )


def _test_scores(fresh: FeatureLaw, found: Reused) -> Scores:
    rest = math.sqrt(max(found.norm**2 - found.along**2, 0.0))
    return fresh.limit_scores(found.signal, found.along, rest, found.bias)


class SeenScores(NamedTuple):
    """Scores of the samples that trained query and readout, and the law of those of fresh ones.

    `trained` are their scores, `left_out` what a readout trained without the sample gives it (the
    query has seen it all the same), at points of the given `weight` with labels y.
    """

    y: Array
    trained: Array
    left_out: Array
    weight: Array
    fresh: Scores


def reuse_scores(
    model: SparseTokens,
    alpha: float,
    lam: float,
    *,
    temperature: float,
    **steps: Unpack[StepOptions],
) -> SeenScores:
    """The scores behind `predict_reuse`: u = prox(left_out), left_out = Ω + χ⟨ϑ, k⟩.

    Examples
    --------
    >>> model = SparseTokens(L=10, R=1, theta=3.0, pi=0.5)
    >>> found = reuse_scores(model, 1.0, 0.01, temperature=2.0)
    >>> for score in (found.trained, found.left_out):
    ...     print(f"{found.weight @ (found.y * score <= 0):.2f}")
    0.00
    0.20
    """
    law, frame = training_law(model, alpha, temperature=temperature, **steps)
    kind, lam = get_loss(step_rule(**steps).loss), check_real("lam", lam, 0, open_low=True)
    x, residual, _ = solve_seen(law, alpha, lam, kind)
    if residual >= TOLERANCE:
        raise ConvergenceError(f"lam = {lam:g}: Newton's steps did not end; take a larger lam")
    spread = math.hypot(x[2], x[3]) * law.r * law.G
    left_out = x[:3] @ law.means + x[4] + spread + x[3] / x[5] * (x[6:] @ law.taken)
    cos = min(1.0, max(-1.0, float(frame.signal @ frame.query)))
    along, square = float(x[:3] @ frame.query), float(x[:4] @ x[:4])
    fresh = attention(model, temperature=temperature, cos=cos).limit_scores(
        float(x[:3] @ frame.signal), along, math.sqrt(square - along**2), float(x[4])
    )
    trained = equations(law, alpha, lam, kind, x)[2]
    return SeenScores(law.y, trained, left_out, law.weight, fresh)
