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
from dataclasses import dataclass

from scipy.optimize import brentq

from ..data.tokens import SparseTokens, check_model
from ..kit.checks import check_flag, check_real
from .alignment import indicator_length
from .rule import StepRule, step_rule


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
    counts = {1: share[1] * (1 + gain), -1: share[-1]}
    return SignCondition(_best_intercept(rule, counts, score, sd), rule.balance(share))


def _best_intercept(
    rule: StepRule, counts: dict[int, float], score: dict[int, float], sd: float
) -> float:
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
