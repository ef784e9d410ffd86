"""Who sees how weak, how rare and how many needles, and with which error: exponents as L → ∞.

Everything is measured in units of a = √(2 log L): θ = θ̂a, sharpness τ = τ̂a, a height h = ua. With
π = L^{−γ} and R needles, or L^{1−β} of them, the error of a rule is about πL^{−e}. A straw at
height u > 1 costs u² − 1, and a needle at u < θ̂ costs (θ̂ − u)²: at a price of c the tallest straw
stands at the *wall* W = √(1 + c). So a rule has the exponent e where

    θ̂ + its reach beyond θ̂ at the price e = the height it has to beat at the price γ + e,

and its boundary is where e = 0. Chapter 3, thm-3-master and thm-3-excess.
"""

from __future__ import annotations

import math

from ..kit.checks import check_choice, check_integer, check_real

RULES = ("average", "largest", "softmax", "excess", "bayes")
INF = math.inf


def detection_boundary(
    rule: str, *, R: int | None = None, beta: float = 1.0, gamma: float = 0.0,
    tau: float | None = None,
) -> float:  # fmt: skip
    """The θ̂ = θ/√(2 log L) beyond which the error of a rule that knows ξ falls below min(π, 1−π).

    Parameters
    ----------
    rule : "average"; "largest" token; "softmax"; "excess", Σ(h² − t²) over heights above t; "bayes"
    R : the number of needles, when it is fixed (1 unless given)
    beta : R = L^{1−β} needles instead, 0 ≤ β < 1
    gamma : π = L^{−γ}
    tau : sharpness of the softmax, or level t of the excess rule, in units of √(2 log L); the best
        one unless given. The threshold is exact.

    Returns inf where no strength of order √(2 log L) is enough.

    Examples
    --------
    >>> [round(detection_boundary("bayes", beta=beta), 3) for beta in (0.5, 0.6, 0.75, 0.9, 1.0)]
    [0.0, 0.316, 0.5, 0.684, 1.0]
    >>> [round(detection_boundary("softmax", tau=tau), 3) for tau in (0.25, 0.5, 2.0)]
    [1.25, 1.0, 1.0]
    >>> [round(detection_boundary(rule, R=4, gamma=1.0), 3) for rule in ("softmax", "excess")]
    [1.414, 1.118]
    """
    rule, R, beta, gamma, tau = _checked(rule, R, beta, gamma, tau)
    if rule == "average":
        return 0.0 if beta < 0.5 else math.sqrt(gamma) if beta == 0.5 else INF
    if rule == "excess" and tau is not None:
        return _excess_boundary(R, beta, gamma, tau)
    if beta == 1 and rule in ("bayes", "excess"):
        return math.sqrt(1 + gamma / R)
    if beta <= 0.5 and (rule in ("bayes", "excess") or tau is None):
        return 0.0
    if rule in ("bayes", "excess"):
        return math.sqrt(beta - 0.5) if beta <= 0.75 else 1 - math.sqrt(1 - beta)
    wall = math.sqrt(1 + gamma)
    if tau is not None:
        reach = 0.0 if beta == 1 else _reach(tau, beta)
        return max(0.0, max(_bulk(tau), wall) - reach)
    if beta == 1:
        return wall
    frozen = (wall - math.sqrt(gamma)) / 2  # τ̂ where fluctuations freeze at this rarity
    if beta <= 0.5 + frozen**2:
        return math.sqrt(beta - 0.5)
    if beta <= 1 - frozen**2:
        return (frozen + (beta - 0.5) / frozen) / 2
    return wall - math.sqrt(1 - beta)


def detection_exponent(
    rule: str, theta: float, *, R: int | None = None, beta: float = 1.0, gamma: float = 0.0,
    tau: float | None = None,
) -> float:  # fmt: skip
    """The e in error ≈ πL^{−e} of a rule at θ = θ̂√(2 log L), `theta` being θ̂.

    0 up to `detection_boundary`, whose other arguments it shares; inf where the error falls faster
    than any power of L. For R needles

        Bayes and excess    e = R((θ̂² − 1 − γ/R)/2θ̂)²,
        largest token       e = u² − 1 − γ = R(θ̂ − u)²,
        softmax             the smaller of that and R(θ̂ − τ̂ − 1/(4τ̂))² at τ̂ < ½.

    Examples
    --------
    >>> [round(detection_exponent(rule, 1.5, R=2), 3) for rule in ("softmax", "excess", "bayes")]
    [0.275, 0.347, 0.347]
    >>> round(detection_exponent("softmax", 0.5, beta=0.6, tau=0.3), 3)
    0.734
    """
    edge = detection_boundary(rule, R=R, beta=beta, gamma=gamma, tau=tau)
    rule, R, beta, gamma, tau = _checked(rule, R, beta, gamma, tau)
    if (theta := check_real("theta", theta, 0)) <= edge:
        return 0.0
    if rule == "average":
        return INF if beta < 0.5 else ((theta**2 - gamma) / (2 * theta)) ** 2
    if rule == "excess" and tau is not None and beta == 1:
        return R * (theta - _excess_height(theta, R, gamma, tau)) ** 2
    if rule in ("bayes", "excess"):
        return R * ((theta**2 - 1 - gamma / R) / (2 * theta)) ** 2 if beta == 1 else INF
    if beta == 1:
        height = _wall_height(theta, R, gamma)
        return R * (theta - (height if tau is None else max(height, _bulk(tau)))) ** 2
    if tau is None:
        tau = _softest(theta, beta)
    return INF if tau == 0 else (theta + _reach(tau, beta)) ** 2 - 1 - gamma


def _checked(
    rule: str, R: int | None, beta: float, gamma: float, tau: float | None
) -> tuple[str, int, float, float, float | None]:
    """The arguments, when they are allowed; the largest token is the softmax at τ = ∞."""
    check_choice("rule", rule, RULES)
    beta, gamma = check_real("beta", beta, 0, 1), check_real("gamma", gamma, 0)
    if R is not None and beta != 1:
        raise ValueError(f"R = {R!r} is not allowed: R must be None when beta < 1 gives L^(1−β)")
    R = 1 if R is None else check_integer("R", R, 1)
    if tau is not None and rule not in ("softmax", "excess"):
        raise ValueError(
            f"tau = {tau!r} is not allowed: tau must be None but for 'softmax' and 'excess'"
        )
    if rule == "largest":
        return "softmax", R, beta, gamma, INF
    if tau is None or (rule == "softmax" and isinstance(tau, float) and tau == INF):
        return rule, R, beta, gamma, tau
    tau = check_real("tau", tau, 0)
    return ("average", R, beta, gamma, None) if tau == 0 and rule == "softmax" else (
        rule, R, beta, gamma, tau)  # fmt: skip


def _bulk(tau: float) -> float:
    """The height at which one token equals the fluctuation of all straws."""
    return tau + 1 / (4 * tau) if tau < 0.5 else 0.0


def _reach(tau: float, beta: float) -> float:
    """By how much L^{1−β} needles together stand above one of them, θ̂: ν/(2τ̂)."""
    top = math.sqrt(1 - beta)
    return (1 - beta) / (2 * tau) + tau / 2 if tau < top else top


def _wall_height(theta: float, R: int, gamma: float) -> float:
    """u with R(θ̂ − u)² = u² − 1 − γ: needles that low are as rare as a straw that high."""
    price = 1 + gamma
    return (R * theta**2 + price) / (R * theta + math.sqrt(R * theta**2 - (R - 1) * price))


def _softest(theta: float, beta: float) -> float:
    """The smallest τ̂ that still finds L^{1−β} needles of strength θ̂; there e is largest."""
    top = math.sqrt(1 - beta)
    if beta <= 0.5:
        return 0.0
    if theta**2 >= beta - 0.5:
        soft = (beta - 0.5) / (theta + math.sqrt(theta**2 - (beta - 0.5)))
        if soft <= min(top, 0.5):
            return soft
    return 0.5  # the reach no longer depends on τ̂


def _excess_height(theta: float, R: int, gamma: float, level: float) -> float:
    """How high R needles must stand so that their excess is that of straws at the price γ + e.

    At level t̂ ≥ 1 a false alarm of Σ(h² − t²) = s log L·2 costs s + t̂² − 1 = γ + e, so that
    u² = t̂² + s/R, where e = R(θ̂ − u)².
    """
    u = (theta**2 + level**2 + (1 + gamma - level**2) / R) / (2 * theta)
    return max(u, level)


def _excess_boundary(R: int, beta: float, gamma: float, level: float) -> float:
    """At level t̂: for few needles none below t̂ = 1, where straws above the level abound."""
    if beta == 1:
        if level < 1:
            return INF
        return max(level, math.sqrt(level**2 + (1 + gamma - level**2) / R))
    if level >= 1:
        return max(0.0, level - math.sqrt(1 - beta))
    spare = 0.5 - beta + level**2 / 2
    return max(0.0, level - math.sqrt(spare)) if spare >= 0 else INF
