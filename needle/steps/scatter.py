"""How the cosines of the two gradient steps scatter at a large but finite d, and how far their
means are from the limit.

By the exact draw of `needle.steps.alignment` the cosine of q⁽²⁾ is a smooth function C of three
averages over the samples and of a few numbers of the first step. With γ the pull of a sample after
step one, cos φ = ω/ρ, ε ~ N(0, 1), χ² ~ χ²_{L−2}, p = ε + y₊ν, ν = θ√R̄ cos φ,

    x₁ = mean of y₊ θ√R̄ γ p,    x₂ = mean of γ(εp + χ²),    x₃ = mean of γ²(p² + χ²),
    u = x₁ cos φ + x₂,   v = x₁ sin φ + G√(x₃/n₀),
    cos(q⁽²⁾, ξ) = (u cos φ + v sin φ) / √(u² + v² + x₃ χ²_{d−2}/n₀).

What moves is the share of positives, m₁ and |m_⊥| of the first step, G, χ²_{d−2}, and, given the
first three, the averages x. Their variances are of order 1/d and they are uncorrelated. To first
order their effects on C add up to the variance of the cosine; to second order, with the means of
|m_⊥|² and χ²_{d−2}, which are lower by 1/d and 2/d, to the gap of its mean. Nothing is simulated
here. Appendix B, prp-b-query-fluctuation and prp-b-gap.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, Unpack

import numpy as np

from ..data.tokens import SparseTokens, check_model
from ..kit.checks import check_flag, check_real
from ..kit.nodes import gaussian_nodes
from ..kit.records import ConvergenceError
from .alignment import indicator_length
from .rule import StepOptions, StepRule, step_rule

Array = np.ndarray
STEP = 2e-4  # of the differences, in units in which the cosine varies by O(1)
KINK = {"hinge": 1.0}  # where the pulls of positives jump; those of negatives at minus that


class Spread(NamedTuple):
    """Limits of d times the variance of cos(w⁽¹⁾, ξ) and of cos(q⁽²⁾, ξ)."""

    readout_cos: float
    query_cos: float


class Gap(NamedTuple):
    """Limits of d times the mean of cos(w⁽¹⁾, ξ) and of cos(q⁽²⁾, ξ) less their limits."""

    readout_cos: float
    query_cos: float


class _Moved(NamedTuple):
    """What fluctuates, less its limit.

    The relative change of the share of positives; m₁√(L/n₀); the relative change of |m_⊥|²; the
    averages x, in units of their sizes; G/√n₀; the relative change of χ²_{d−2}; and n₀⁻¹ in the
    variance of a score.
    """

    positives: float = 0.0
    along: float = 0.0
    across: float = 0.0
    x1: float = 0.0
    x2: float = 0.0
    x3: float = 0.0
    G: float = 0.0
    chi: float = 0.0
    own: float = 0.0


AVERAGES = ("x1", "x2", "x3")
SHIFT = {"across": -1.0, "chi": -2.0}  # d times the mean of what moves


class _Draw:
    """The limit of the two steps, moved by small amounts in whatever fluctuates."""

    def __init__(self, model: SparseTokens, alpha0: float, rule: StepRule) -> None:
        self.model, self.alpha0, self.rule = model, alpha0, rule
        self.needle = model.theta * indicator_length(model)
        _, _, along, across = self.first(_Moved())
        (x1, x2, x3), cos = self.averages(_Moved()), along / math.hypot(along, across)
        norm = math.sqrt(x1**2 + 2 * x1 * x2 * cos + x2**2 + x3 / alpha0)
        self.size = np.array([norm, norm, x3])

    def first(self, at: _Moved) -> tuple[dict[int, float], float, float, float]:
        """Shares of the classes, Γ̄, and the components ω, ω_⊥ of the readout."""
        L, start = self.model.L, self.rule.start
        positives = self.model.pi * (1 + at.positives)
        share = {1: positives, -1: 1 - positives}
        power = sum(share[y] * start[y] ** 2 for y in share)
        signal = self.model.theta * self.model.R / L * share[1] * start[1]
        along = self.rule.lr_w * (signal + math.sqrt(power / L) * at.along)
        across = self.rule.lr_w * math.sqrt(power / (self.alpha0 * L) * (1 + at.across))
        return share, power, along, across

    def score(self, y: int, at: _Moved) -> tuple[float, float]:
        """Mean and standard deviation of a training score of class y after step one."""
        (share, power, along, across), L, start = self.first(at), self.model.L, self.rule.start
        mean = self.rule.lr_w * start[y] / (self.alpha0 * L) * (1 + at.across)
        mean += start[y] * along * at.along / math.sqrt(L * power)
        mean += self.rule.lr_b * sum(share[k] * start[k] for k in share)
        mean += (y > 0) * self.model.theta * self.model.R * along / L
        left = 1 - at.own * start[y] ** 2 / power
        return mean, math.sqrt((along**2 + across**2) / L * left)

    def averages(self, at: _Moved) -> Array:
        """x₁, x₂, x₃ without their own fluctuations."""
        share, _, along, across = self.first(at)
        nu, rest = self.needle * along / math.hypot(along, across), self.model.L - 1
        x = np.zeros(3)
        for y in share:
            pull, square, _ = self.rule.moments(y, *self.score(y, at))
            lift = nu if y > 0 else 0.0
            x += share[y] * np.array(
                [self.needle * lift * pull, rest * pull, square * (rest + lift**2)]
            )
        return x

    def readout(self, at: _Moved) -> float:
        """The cosine of w⁽¹⁾."""
        _, _, along, across = self.first(at)
        return along / math.hypot(along, across)

    def query(self, at: _Moved) -> float:
        """The cosine of q⁽²⁾."""
        _, _, along, across = self.first(at)
        x = self.averages(at) + self.size * [at.x1, at.x2, at.x3]
        if x[2] <= 0:
            raise ConvergenceError(
                f"pi = {self.model.pi!r}: one class is too rare for an expansion in 1/d"
            )
        cos, sin = along / math.hypot(along, across), across / math.hypot(along, across)
        u, v = x[0] * cos + x[1], x[0] * sin + math.sqrt(x[2]) * at.G
        norm = math.sqrt(u * u + v * v + x[2] / self.alpha0 * (1 + at.chi))
        return float(u * cos + v * sin) / norm

    def covariance(self) -> Array:
        """n₀ times the covariance of x (in units of `size`) given the other five."""
        share, power, along, across = self.first(_Moved())
        rho = math.hypot(along, across)
        nu, k = self.needle * along / rho, self.model.L - 2
        total, common = np.zeros((3, 3)), np.zeros(3)
        for y in share:
            centre, sd = self.score(y, _Moved())
            kink = y * KINK.get(self.rule.loss, 0.0)
            t, weight = gaussian_nodes(centre - kink, sd)
            pull = -self.rule.gradient(t + kink, y)
            p1, p2, p3, p4 = (float(weight @ pull**j) for j in (1, 2, 3, 4))
            s, lift = (self.needle, nu) if y > 0 else (0.0, 0.0)
            mean = np.array([s * lift, k + 1, k + 1 + lift**2])
            power_of = np.array([[p2, p2, p3], [p2, p2, p3], [p3, p3, p4]])
            inner = np.array(
                [
                    [s * s, s * lift, 2 * s * lift],
                    [s * lift, 2 + lift**2 + 2 * k, 2 + 2 * lift**2 + 2 * k],
                    [2 * s * lift, 2 + 2 * lift**2 + 2 * k, 2 + 4 * lift**2 + 2 * k],
                ]
            )
            first = mean * [p1, p1, p2]
            total += share[y] * (power_of * (inner + np.outer(mean, mean)) - np.outer(first, first))
            # the scores of a class move together by −γ_y(γ̂·G)/√n₀: Stein's lemma for their slopes
            density = (t + kink - centre) / sd**2 * weight
            slope = np.array([density @ pull, density @ pull, density @ pull**2]) * mean
            common += share[y] * self.rule.start[y] * slope
        common *= rho / math.sqrt(power * self.model.L)
        return (total - np.outer(common, common)) / np.outer(self.size, self.size)


def _moments(draw: _Draw, cosine: Callable[[_Moved], float]) -> tuple[float, float]:
    """d times the variance and d times the shift of the mean of a cosine."""
    inverse, middle = 1 / draw.alpha0, cosine(_Moved())

    def around(*names: str) -> tuple[float, float]:
        up, down = (cosine(_Moved(**dict.fromkeys(names, side * STEP))) for side in (1, -1))
        return (up - down) / (2 * STEP), (up - 2 * middle + down) / STEP**2

    odds = (1 - draw.model.pi) / draw.model.pi
    variances = {
        "positives": odds * inverse, "along": inverse, "across": 2.0, "G": inverse, "chi": 2.0
    }  # fmt: skip
    variance = gap = 0.0
    for name, power in variances.items():
        slope, bend = around(name)
        variance += power * slope**2
        gap += power * bend / 2 + SHIFT.get(name, 0.0) * slope
    C = inverse * draw.covariance()
    one = [around(name) for name in AVERAGES]
    slopes, bends = np.array(one).T
    both = [[around(*{i, j})[1] for j in AVERAGES] for i in AVERAGES]
    H = (np.array(both) - bends[:, None] - bends) / 2
    np.fill_diagonal(H, bends)
    variance += float(slopes @ C @ slopes)
    gap += float(np.sum(H * C)) / 2 + inverse * around("own")[0]
    return variance, gap


def _draw(model: SparseTokens, alpha0: float, balanced: bool, steps: StepOptions) -> _Draw:
    model = check_model(model)
    check_real("theta", model.theta, 0, open_low=True)
    alpha0 = check_real("alpha0", alpha0, 0, open_low=True)
    weight = model.pi if check_flag("balanced", balanced) else None
    return _Draw(model, alpha0, step_rule(**steps, balanced=weight))


def predict_spread(
    model: SparseTokens,
    alpha0: float,
    *,
    balanced: bool = False,
    **steps: Unpack[StepOptions],
) -> Spread:
    """The limits of d·Var cos(w⁽¹⁾, ξ) and d·Var cos(q⁽²⁾, ξ) as d → ∞ with n₀ = alpha0·d.

    Arguments as in `needle.predict_alignment`, with θ > 0; around the limits given there
    the cosines are asymptotically normal with these variances divided by d.

    Examples
    --------
    >>> spread = predict_spread(SparseTokens(L=10, R=3, theta=6.0, pi=0.2), 2.0)
    >>> print(f"{spread.readout_cos:.3f} {spread.query_cos:.3f}")
    0.161 0.268
    """
    draw = _draw(model, alpha0, balanced, steps)
    return Spread(_moments(draw, draw.readout)[0], _moments(draw, draw.query)[0])


def predict_gap(
    model: SparseTokens,
    alpha0: float,
    *,
    balanced: bool = False,
    **steps: Unpack[StepOptions],
) -> Gap:
    """The limits of d·(E cos − limit) for w⁽¹⁾ and q⁽²⁾: how far a finite d is from the limit.

    Arguments as in `predict_alignment`, with θ > 0. For w⁽¹⁾, if γ₊ = −γ₋, with its squared tangent
    Q, the gap is Q(1+Q)^{−5/2} [½ − Q/4 − 3(1−π)/(2πα₀)].

    Examples
    --------
    >>> gap = predict_gap(SparseTokens(L=10, R=3, theta=6.0, pi=0.2), 2.0)
    >>> print(f"{gap.readout_cos:.3f} {gap.query_cos:.3f}")
    -0.443 -1.867
    """
    draw = _draw(model, alpha0, balanced, steps)
    return Gap(_moments(draw, draw.readout)[1], _moments(draw, draw.query)[1])
