"""The law of the features on samples that the two gradient steps have already seen.

A training sample has tilted its own query. Let w⁽¹⁾ be the readout of the first step, γ_i the pull
of a sample in the second and m_i = γ_i P X_i w⁽¹⁾, so that q = (1/(nL)) Σ X_iᵀ m_i; α = n/d. Given
w⁽¹⁾, all X_i w⁽¹⁾ and q, the tokens are Gaussian under two linear constraints, Σ γ_{y_i} X̄_i ∝ w⁽¹⁾
and Σ X_iᵀ m_i ∝ q. In the frame of ŵ⁽¹⁾, of the part q₂ of q across it, and of the part e of ξ
across both, the tokens of a sample that was seen are

    ⟨x, ŵ⁽¹⁾⟩ = θ v⟨ξ, ŵ⁽¹⁾⟩ + g₁ + η_wγ_y/(αL|w⁽¹⁾|),
    ⟨x, q̂₂⟩  = θ v⟨ξ, q̂₂⟩ + g₂ + j_y⟨ξ, q̂₂⟩ + m/(αL|q₂|),
    ⟨x, e⟩   = θ v⟨ξ, e⟩ + g₃ + j_y⟨ξ, e⟩ − m·q_ξ⟨ξ, e⟩/(αL|q_N|²),   j_y = −θπRγ₊γ_y/(LΓ̄₂),

where q = q_ξ ξ + (echo along w⁽¹⁾) + q_N. The softmax reads the first two; its weights s give a
training law of (a, c₁, c₂, r). Appendix C, eq-c-seen.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple, Unpack

import numpy as np
from scipy.special import ndtri, softmax

from ..data.tokens import SparseTokens, check_model
from ..kit.checks import check_flag, check_real
from ..kit.losses import SMOOTH, get_loss
from ..kit.nodes import sobol
from ..kit.records import ConvergenceError
from ..steps.alignment import alignment_of
from ..steps.rule import StepOptions, step_rule

Array = np.ndarray
_POINTS, _ENTRIES, _LONGEST = 13, 2**21, 10_000
FAINTEST = 1e-100  # of the query against the first step, whose squares are still numbers


class Plane(NamedTuple):
    """Coordinates of ξ and q̂ along ŵ⁽¹⁾, q̂₂ and e, and the sharpness of the softmax."""

    signal: Array
    query: Array
    temperature: float


class Seen(NamedTuple):
    """Points of a training law: y, means (D, n), r, k (p, n), G and weight.

    Of two steps `means` are along ŵ⁽¹⁾, q̂₂ and e, the last without its noise r·G, and `taken` are
    k₁ = ⟨s, m⟩/√E|m|² and k₂ = γ_y/√(LΓ̄₂), both 0 for samples that took no part in the steps.
    """

    y: Array
    means: Array
    r: Array
    taken: Array
    G: Array
    weight: Array


@lru_cache(maxsize=2)
def _normals(width: int, label: int, points: int) -> Array:
    """2^points Sobol points as standard normals (2^points, width): the slow part of the law."""
    return ndtri(sobol(width, points, label + 1))


def training_law(
    model: SparseTokens,
    alpha: float,
    *,
    temperature: float,
    seen: bool = True,
    balanced: bool = False,
    bits: int = _POINTS,
    **steps: Unpack[StepOptions],
) -> tuple[Seen, Plane]:
    """The law of the features on samples that the two steps have seen, or on fresh ones.

    2^bits Sobol points a class in the 2L + 1 Gaussians of a sample (fewer where L > 128).

    Examples
    --------
    >>> model = SparseTokens(L=10, R=1, theta=3.0, pi=0.5)
    >>> for seen in (False, True):  # the label shows in a sample's own features along w⁽¹⁾
    ...     law, _ = training_law(model, 1.0, temperature=2.0, seen=seen)
    ...     print(f"{law.weight @ (law.y * law.means[0]):.2f}")
    0.24
    0.87
    """
    model, T = check_model(model), check_real("temperature", temperature, 0, open_low=True)
    alpha, seen = check_real("alpha", alpha, 0, open_low=True), check_flag("seen", seen)
    L, R, theta = model.L, model.R, model.theta
    if L > _LONGEST:
        raise ValueError(f"L = {L} is not allowed: here L must be at most {_LONGEST}")
    rule = step_rule(**steps, balanced=model.pi if check_flag("balanced", balanced) else None)
    get_loss(rule.loss, SMOOTH)
    limit = alignment_of(model, alpha, rule)
    gradient, pull = rule.gradient, rule.start
    if limit.noise <= FAINTEST * limit.readout_norm:
        raise ConvergenceError(
            f"alpha = {alpha:g}, lr_w = {rule.lr_w:g}: after so long a first step no sample pulls "
            "in the second; take a smaller lr_w"
        )
    share = {1: model.pi, -1: 1 - model.pi}
    mean_pull = sum(share[y] * pull[y] for y in share)
    square_pull = sum(share[y] * pull[y] ** 2 for y in share)

    cos, sine = limit.readout_cos, math.sqrt(1 - limit.readout_cos**2)
    across = math.hypot(limit.signal * sine, limit.noise)
    query = np.array([limit.signal * cos + limit.echo, across, 0.0]) / limit.query_norm
    signal = np.array([cos, limit.signal * sine**2 / across, sine * limit.noise / across])
    own = np.array([0.0, 1 / across, -signal[2] * limit.signal / limit.noise**2]) / (alpha * L)
    own *= float(seen)

    parts, points = [], min(bits, int(math.log2(_ENTRIES / L)) - 1)
    v = np.arange(L) < R
    for y in share:
        g = _normals(2 * L + 1, y, points)
        first = g[:, :L] + theta * (y > 0) * v * cos
        first += seen * rule.lr_w * pull[y] / (alpha * L * limit.readout_norm)
        mean = first.mean(axis=1)
        h = gradient(limit.readout_norm * mean + rule.lr_b * mean_pull, y)
        marks = (-limit.readout_norm * h)[:, None] * (first - mean[:, None])
        needle = (
            theta * (y > 0) * v - seen * theta * model.pi * R / L * pull[1] * pull[y] / square_pull
        )
        second = g[:, L:-1] + needle * signal[1] + own[1] * marks
        s = softmax(T * (query[0] * first + query[1] * second), axis=1)
        m = np.einsum("nl,nl->n", s, marks)
        means = [(s * first).sum(1), (s * second).sum(1), signal[2] * (s @ needle) + own[2] * m]
        r = np.sqrt(np.einsum("nl,nl->n", s, s))
        m *= seen / (limit.noise * L * math.sqrt(alpha))
        k = np.full(len(r), seen * pull[y] / math.sqrt(L * square_pull))
        weight = np.full(len(r), share[y] / len(r))
        parts.append((np.full(len(r), y), np.array(means), r, np.array([m, k]), g[:, -1], weight))
    law = Seen(*(np.concatenate(part, axis=-1) for part in zip(*parts, strict=True)))
    return law, Plane(signal, query, T)
