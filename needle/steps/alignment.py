"""Two gradient steps that turn the query of an attention head towards the hidden signal.

The steps are those of `needle.steps.rule`, on n₀ = α₀d samples. `predict_alignment` is the limit d
→ ∞, `simulate_alignment` the same record at finite d. Appendix B, def-b-steps and eq-b-query.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ..data.tokens import SparseTokens, Tokens, check_model
from ..kit.checks import check_choice, check_flag, check_integer, check_real, check_rng
from ..kit.records import Alignment
from ..kit.threads import in_one_thread
from .rule import StepRule, block_length, mean_pulls, step_rule, take_steps

Array = np.ndarray


def indicator_length(model: SparseTokens) -> float:
    """√R̄ = √(R(L−R)/L), the length of the centered indicator of the signal tokens."""
    return math.sqrt(model.R * (model.L - model.R) / model.L)


def predict_alignment(
    model: SparseTokens,
    alpha0: float,
    *,
    loss: str = "logistic",
    lr_w: float = 0.5,
    lr_b: float = 0.5,
    balanced: bool = False,
) -> Alignment:
    """The alignment of w⁽¹⁾ and q⁽²⁾ with ξ as d, n₀ → ∞ with n₀/d = alpha0.

    With ω = ⟨w⁽¹⁾, ξ⟩ = η_w π γ₊ θR/L and ρ² = |w⁽¹⁾|² = ω² + η_w² E γ_y²/(α₀L), the score of a
    training sample after step one is, given its label and with G ~ N(0, 1),

        t = η_w γ_y/(α₀L) + 1[y=+1] θRω/L + η_b E γ_y + (ρ/√L) G,   γ = −ℓ'(t; y).

    With A = θ²R̄ E[γ 1₊], B = (L−1) E[γ] and R̄ = R(L−R)/L the query q⁽²⁾ is the sum of a signal,
    an echo of the first step and noise:

        (A/L) ω ξ,   (B/L) w⁽¹⁾,   and a random vector orthogonal to w⁽¹⁾ of squared length
        ((L−1) ρ² E[γ²] + θ²R̄ω² E[γ² 1₊]) / (α₀L²).

    It is aligned with ξ when A + B > 0, and then |query_cos| = 1 − rate/α₀ + o(1/α₀).
    Appendix B, thm-b-first, thm-b-query and cor-b-rate.

    Parameters
    ----------
    model : the token model
    alpha0 : samples per dimension n₀/d > 0
    loss : "logistic", "square", "hinge" or "exponential"
    lr_w, lr_b : rates of the first step, η_w > 0 and any finite η_b
    balanced : whether a positive counts ½/π and a negative ½/(1−π), in both steps

    Returns
    -------
    Alignment, with `rate` infinite where α₀ → ∞ brings no alignment (θ = 0 or A + B = 0)

    Examples
    --------
    >>> model = SparseTokens(L=10, R=3, theta=6.0, pi=0.2)
    >>> for alpha0 in (1, 100):
    ...     limit = predict_alignment(model, alpha0)
    ...     print(f"{limit.readout_cos:.3f} {limit.query_cos:.3f} {1 - limit.rate / alpha0:.3f}")
    0.751 0.828 0.800
    0.996 0.998 0.998
    """
    model = check_model(model)
    rule = step_rule(loss, lr_w, lr_b, model.pi if check_flag("balanced", balanced) else None)
    return alignment_of(model, check_real("alpha0", alpha0, 0, open_low=True), rule)


def alignment_of(model: SparseTokens, alpha0: float, rule: StepRule) -> Alignment:
    """`predict_alignment` for two steps by a given rule."""
    limit, rested = _limit(model, rule, 1 / alpha0), _limit(model, rule, 0.0)
    along, across = limit.along, math.sqrt(limit.across_power / alpha0)
    readout = math.hypot(along, across)
    signal, echo = limit.A / model.L * along, limit.B / model.L * readout
    noise = math.sqrt(limit.noise_power / alpha0) / model.L
    overlap = 0.0 + (limit.A + limit.B) / model.L * along
    norm = math.hypot(overlap, limit.B / model.L * across, noise)
    towards = (rested.A + rested.B) * rested.along
    lost = rested.B**2 * rested.across_power + rested.noise_power
    rate = lost / (2 * towards**2) if towards**2 else math.inf
    return Alignment.of(along, across, overlap, norm, signal, echo, noise, rate)


class _Limit(NamedTuple):
    """ω, A, B, and |w⁽¹⁾ − ωξ|² and |noise|²L² divided by 1/α₀."""

    along: float
    A: float
    B: float
    across_power: float
    noise_power: float


def _limit(model: SparseTokens, rule: StepRule, inverse: float) -> _Limit:
    """The limits at 1/α₀ = `inverse`, which may be 0."""
    L, theta, start = model.L, model.theta, rule.start
    share = {1: model.pi, -1: 1 - model.pi}
    balance = rule.balance(share)
    along = rule.lr_w * model.pi * start[1] * theta * model.R / L
    across_power = rule.lr_w**2 * sum(share[y] * start[y] ** 2 for y in share) / L
    power = along**2 + across_power * inverse
    centre = {y: rule.lr_w * start[y] * inverse / L + rule.lr_b * balance for y in share}
    centre[1] += theta * model.R * along / L
    groups = [(y, share[y], centre[y]) for y in share]
    pulls = mean_pulls(rule, groups, balance, math.sqrt(power / L))
    first, second = (
        {y: share[y] * x for y, x in zip(share, moments, strict=True)} for moments in pulls[:2]
    )
    excess = (theta * indicator_length(model)) ** 2
    noise_power = (L - 1) * power * (second[1] + second[-1]) + excess * along**2 * second[1]
    return _Limit(along, excess * first[1], (L - 1) * pulls.mean, across_power, noise_power)


@in_one_thread
def simulate_alignment(
    model: SparseTokens,
    d: int,
    alpha0: float,
    rng: np.random.Generator,
    *,
    loss: str = "logistic",
    lr_w: float = 0.5,
    lr_b: float = 0.5,
    balanced: bool = False,
    method: str = "exact",
) -> Alignment:
    """One draw of the two steps on n₀ = round(alpha0·d) samples of tokens in R^d.

    "dense" takes the two steps literally on token tensors, O(n₀Ld) time, in blocks of bounded
    memory. "exact" draws the returned numbers from the same law in O(n₀) time and memory, whatever
    L and d: it needs one Gaussian for each sample's score, and one Gaussian and one χ²_{L−2} for
    its centered tokens. Appendix B, alg-b-exact.

    Parameters
    ----------
    model : the token model
    d : token dimension ≥ 1
    alpha0 : samples per dimension; round(alpha0·d) must be at least 1
    rng : numpy Generator
    loss, lr_w, lr_b, balanced : as in `predict_alignment`
    method : "exact" or "dense"

    Returns
    -------
    Alignment of this draw (`rate` is None)

    Examples
    --------
    >>> model, rng = SparseTokens(L=10, R=3, theta=6.0, pi=0.2), np.random.default_rng(0)
    >>> draw = simulate_alignment(model, 10**6, 2.0, rng)
    >>> limit = predict_alignment(model, 2.0)
    >>> abs(draw.query_cos - limit.query_cos) < 0.005
    True
    """
    model = check_model(model)
    rule = step_rule(loss, lr_w, lr_b, model.pi if check_flag("balanced", balanced) else None)
    d, rng = check_integer("d", d, 1), check_rng(rng)
    n = round(check_real("alpha0", alpha0, 0, open_low=True) * d)
    if n < 1:
        raise ValueError(
            f"alpha0 = {alpha0!r} is not allowed: alpha0·d = {alpha0 * d:g} must round to "
            "at least one sample"
        )
    draw = _exact if check_choice("method", method, ("exact", "dense")) == "exact" else _dense
    return draw(model, d, n, rng, rule)


def _chisquare(
    freedom: int, rng: np.random.Generator, size: int | None = None
) -> np.ndarray | float:
    return rng.chisquare(freedom, size) if freedom > 0 else np.zeros(size or ())


def _exact(
    model: SparseTokens, d: int, n: int, rng: np.random.Generator, rule: StepRule
) -> Alignment:
    """The positives come first; m ~ N(0, I/L) is Σ γ_{y_i} z̄_i/|γ_y| with z̄_i the noise in X̄_i."""
    L, theta = model.L, model.theta
    share, spread = model.R / L, indicator_length(model)
    positives = rng.binomial(n, model.pi)
    y = np.repeat([1, -1], [positives, n - positives])
    start = np.where(y > 0, rule.start[1], rule.start[-1])
    length = math.sqrt(start @ start)
    m_along, m_across = rng.standard_normal() / math.sqrt(L), math.sqrt(_chisquare(d - 1, rng) / L)
    along = rule.lr_w / n * (theta * share * positives * rule.start[1] + length * m_along)
    across = rule.lr_w / n * length * m_across
    readout = math.hypot(along, across)
    cos, sin = along / readout, across / readout

    unit, t = start / length, rng.standard_normal(n)
    t += unit * (math.sqrt(L) * (m_along * cos + m_across * sin) - unit @ t)
    t *= readout / math.sqrt(L)
    t += rule.lr_b * start.mean()
    t[:positives] += theta * share * along
    pull = -rule.gradient(t, y)

    normal, rest = rng.standard_normal(n), _chisquare(L - 2, rng, n)
    lifted = normal.copy()
    lifted[:positives] += theta * spread * cos
    scale = readout / (n * L)
    signal = scale * theta * spread * float(pull[:positives] @ lifted[:positives])
    echo = scale * float(pull @ (normal * lifted + rest))
    width = scale * math.sqrt(pull**2 @ (lifted**2 + rest))
    sideways = width * rng.standard_normal() if d > 1 else 0.0
    elsewhere = width * math.sqrt(_chisquare(d - 2, rng))
    parallel, orthogonal = signal * cos + echo, signal * sin + sideways
    overlap, norm = parallel * cos + orthogonal * sin, math.hypot(parallel, orthogonal, elsewhere)
    noise = math.hypot(sideways, elsewhere)
    return Alignment.of(along, across, overlap, norm, signal, echo, noise)


def _dense(
    model: SparseTokens, d: int, n: int, rng: np.random.Generator, rule: StepRule
) -> Alignment:
    """Both steps see the same tokens: the second draws them again from a copy of the generator."""
    size = block_length(model.L, d)
    sizes = [min(size, n - start) for start in range(0, n, size)]
    streams = iter((copy.deepcopy(rng), rng))
    signal = 0.0

    def tokens() -> Iterator[Tokens]:
        stream = next(streams)
        return (model.sample(block, d, stream) for block in sizes)

    def watch(pull: Array, block: Any) -> None:
        nonlocal signal
        signal += model.theta * float(pull[block.where].sum())

    w, _, query = take_steps(tokens, rule, watch)
    direction = w / np.linalg.norm(w)
    remainder = query - signal * np.eye(1, d)[0]
    echo = float(remainder @ direction)
    noise = float(np.linalg.norm(remainder - echo * direction))
    across, norm = float(np.linalg.norm(w[1:])), float(np.linalg.norm(query))
    return Alignment.of(float(w[0]), across, float(query[0]), norm, signal, echo, noise)
