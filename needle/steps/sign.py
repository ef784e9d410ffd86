"""Which way the learned query points: one threshold for the bias, for any convex loss.

After the first step a training bag has the score t = b⁽¹⁾ + s, with s the part that does not come
from the bias. Along ξ the query is (A + B)ω/L, and with γ = −ℓ'(t; y)

    A + B = E[γ (θ²R̄ 1₊ + L−1)]

falls as b⁽¹⁾ grows, since ℓ is convex. It vanishes at b_c, the best intercept on the scores s when
each positive counts 1 + θ²R̄/(L−1) times. So the query is aligned if and only if b⁽¹⁾ < b_c; and
b⁽¹⁾ = η_b γ̄, with γ̄ the mean pull at the start, turns that into a rate. Appendix B, thm-b-sign.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import expit, log_expit

from ..data.tokens import SparseTokens, check_model
from ..kit.checks import check_array, check_flag, check_real
from .alignment import indicator_length
from .rule import StepRule, step_rule

Array = np.ndarray
_WIDEST = 100.0  # spread of the scores up to which the logistic loss takes a grid


@dataclass(frozen=True)
class SignCondition:
    """When the query is aligned with ξ: where lr_b · balance < intercept.

    Attributes
    ----------
    intercept : b_c, the best intercept of the reweighted problem
    balance : γ̄, the mean pull at the start, negative where positives are rare
    rate : η_c = b_c/γ̄. Aligned above it where γ̄ < 0, below it where γ̄ > 0; where γ̄ = 0 the rate
        does not matter, and `rate` is ∞ if the query is aligned, −∞ if it is not
    """

    intercept: float
    balance: float

    @property
    def rate(self) -> float:
        if self.balance:
            return self.intercept / self.balance
        return math.inf if self.intercept > 0 else -math.inf

    def aligned(self, lr_b: float) -> bool:
        """Whether ⟨q⁽²⁾, ξ⟩ > 0 at this rate of the bias."""
        return check_real("lr_b", lr_b) * self.balance < self.intercept


def sign_condition(
    model: SparseTokens,
    alpha0: float,
    *,
    loss: str = "logistic",
    lr_w: float = 0.5,
    balanced: bool = False,
) -> SignCondition:
    """The sign of the query in the limit d → ∞, at all rates.

    With e = η_w γ_y/(α₀L) for positives (−e for negatives where γ₋ = −γ₊), f = η_w γ₊π δ²/L,
    δ² = θ²R²/L, and ϑ = θ²R̄/(L−1), closed forms are

        square        b_c = [π(1+ϑ)(1 − e − f) − (1−π)(1 − e)] / [π(1+ϑ) + 1−π],
        exponential   b_c = ½[logit π + log(1+ϑ) − f],

    (without class weights). For the others one increasing function of b is solved: with one
    quadrature for the logistic loss, with Φ for the hinge.

    Parameters
    ----------
    model : the token model, θ > 0
    alpha0 : samples per dimension, ∞ for unlimited data
    loss, balanced : as in `predict_alignment`
    lr_w : η_w ≥ 0; 0 for the limit of small rates of the readout

    Examples
    --------
    >>> model = SparseTokens(L=10, R=1, theta=3.0, pi=0.1)
    >>> [round(sign_condition(model, a, loss="square").rate, 3) for a in (0.1, 1, 5)]
    [0.408, 0.774, 0.807]
    >>> found = sign_condition(model, 1.0)
    >>> round(found.rate, 3), found.aligned(0.5), found.aligned(4.0)
    (3.85, False, True)
    >>> sign_condition(model, 1.0, balanced=True).aligned(-7.0)
    True
    """
    problem = _problem(model, alpha0, loss, lr_w, balanced)
    return SignCondition(float(_intercepts([problem])[0]), problem[0].balance(problem[1]))


Classes = dict[int, float]


def _problem(
    model: SparseTokens, alpha0: float, loss: str, lr_w: float, balanced: bool
) -> tuple[StepRule, Classes, Classes, Classes, float]:
    """The rule, the shares and the counts of the classes, and the law of their scores without b."""
    m = check_model(model)
    check_real("theta", m.theta, 0, open_low=True)
    inverse = 0.0 if alpha0 == math.inf else 1 / check_real("alpha0", alpha0, 0, open_low=True)
    lr_w = check_real("lr_w", lr_w, 0)
    rule = step_rule(loss, lr_w or 1.0, 0.0, m.pi if check_flag("balanced", balanced) else None)
    share = {1: m.pi, -1: 1 - m.pi}
    along = lr_w * m.pi * rule.start[1] * m.theta * m.R / m.L
    spread = lr_w**2 * sum(share[y] * rule.start[y] ** 2 for y in share) * inverse / m.L
    sd = math.sqrt((along**2 + spread) / m.L)
    score = {y: lr_w * rule.start[y] * inverse / m.L for y in share}
    score[1] += m.theta * m.R * along / m.L
    gain = (m.theta * indicator_length(m)) ** 2 / (m.L - 1)
    return rule, share, {1: share[1] * (1 + gain), -1: share[-1]}, score, sd


def _best_intercept(rule: StepRule, counts: Classes, score: Classes, sd: float) -> float:
    """The b at which Σ_y counts_y E γ vanishes, γ = −κ_y ℓ'(b + score_y + sd·G; y)."""
    weight = {y: counts[y] * rule.weight[y] for y in counts}
    odds = math.log(weight[1] / weight[-1])
    if rule.loss == "square":
        return sum(weight[y] * (y - score[y]) for y in weight) / (weight[1] + weight[-1])
    if rule.loss == "exponential":
        return (odds - score[1] - score[-1]) / 2

    def pull(b: float) -> float:
        return sum(counts[y] * rule.moments(y, b + score[y], sd)[0] for y in counts)

    reach = 2 + abs(odds) + max(map(abs, score.values())) + 40 * sd
    while pull(-reach) <= 0 or pull(reach) >= 0:
        reach *= 2
    return float(brentq(pull, -reach, reach, xtol=1e-14, rtol=1e-14))


def sign_intercepts(
    model: SparseTokens,
    alpha0: float,
    shares: ArrayLike,
    *,
    loss: str = "logistic",
    lr_w: float = 0.5,
    balanced: bool = False,
) -> Array:
    """b_c of `sign_condition` at many shares of positives (m,) at once; that of the model is idle.

    Divided by γ̄ (π − ½ for the logistic loss) it is the rate of the bias at which the query turns:
    one line of the boundary in the plane of π and η_b.

    Examples
    --------
    >>> model = SparseTokens(L=10, R=1, theta=3.0, pi=0.5)
    >>> shares = np.array([0.1, 0.3, 0.7])
    >>> np.round(sign_intercepts(model, 1.0, shares) / (shares - 0.5), 2).tolist()
    [3.85, 1.03, 7.3]
    """
    places = check_array("shares", shares, "m")
    options: dict[str, Any] = {"loss": loss, "lr_w": lr_w, "balanced": balanced}
    ends: dict[str, Any] = {"open_low": True, "open_high": True}
    shown = [check_real("shares", float(share), 0, 1, **ends) for share in places]
    models = [replace(check_model(model), pi=share) for share in shown]
    return _intercepts([_problem(at, alpha0, **options) for at in models])


def _intercepts(problems: list[Any]) -> Array:
    sd = np.array([problem[-1] for problem in problems])
    if problems[0][0].loss != "logistic" or sd.max() > _WIDEST:
        return np.array([_best_intercept(p[0], p[2], p[3], p[4]) for p in problems])
    return _logistic_intercepts(problems, sd)


def _logistic_intercepts(problems: list[Any], sd: Array) -> Array:
    """Newton's method between bounds on the log of the quotient of the two pulls, for all at once.

    Far beyond both classes the pulls are tiny, and their difference would lose all digits.
    """
    size = {y: np.array([p[0].weight[y] * p[2][y] for p in problems]) for y in (1, -1)}
    score = {y: np.array([p[3][y] for p in problems]) for y in (1, -1)}
    odds = np.log(size[1] / size[-1])
    high = 2 + abs(odds) + np.maximum(abs(score[1]), abs(score[-1])) + 40 * sd
    low = -high
    b = np.clip((odds - score[1] - score[-1]) / 2, low, high)
    for _ in range(100):
        up, up_slope = _log_tail(b + score[1], sd)
        down, down_slope = _log_tail(-b - score[-1], sd)
        gap = odds + up - down
        low, high = np.where(gap > 0, b, low), np.where(gap > 0, high, b)
        new = b + gap / (up_slope + down_slope)
        new = np.where((new >= low) & (new <= high), new, (low + high) / 2)
        done = np.all(abs(new - b) <= 1e-12 * (1 + abs(b)))  # the next error is its square
        b = new
        if done:
            break
    return b


def _log_tail(t: Array, sd: Array) -> tuple[Array, Array]:
    """log E expit(−(t + sd·G)) and minus its derivative by t, to the last digits in the far tail.

    By the trapezoidal rule around the peak of the integrand: exact to rounding while its step in
    the score is below 0.7, since the poles of expit lie at ±iπ.
    """
    sd = np.maximum(sd, 1e-12)
    step = min(0.25, 0.6 / sd.max())
    peak = -np.minimum(np.maximum(t, 0) / sd, sd)
    g = peak[:, None] + step * np.arange(-math.ceil(9 / step), math.ceil(9 / step) + 1)
    u = t[:, None] + sd[:, None] * g
    log_mass = -(g**2) / 2 + log_expit(-u)
    top = log_mass.max(axis=1, keepdims=True)
    mass = np.exp(log_mass - top)
    total = mass.sum(axis=1)
    scale = math.log(step / math.sqrt(2 * math.pi))
    return np.log(total) + top[:, 0] + scale, (mass * expit(u)).sum(axis=1) / total
