"""The rate of the bias: where the echo of the first step is silent, and how exactly it must be so.

After the first step the bias stands at b⁽¹⁾ = η_b(πγ₊ + (1−π)γ₋). The query is then turned by the
pulls that are left, and their mean Γ₁ multiplies the echo of w⁽¹⁾. For small η_w every score is
b⁽¹⁾, and Γ₁ = 0 means that b⁽¹⁾ is the best constant score: log(π/(1−π)) for the logistic loss.
Chapter 12, def-12-calibrated and prop-12-window.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from scipy.optimize import brentq

from ..data.tokens import SparseTokens, check_model
from ..kit.checks import check_choice, check_real
from .alignment import predict_alignment

RATE_W = 0.05  # η_w of a plan: small, so that the calibration is exact and no bag sees itself
WIDEST = 1e3  # rates beyond ±WIDEST times the calibrated one are not looked at


def calibrated_rate(pi: float, loss: str = "logistic") -> float:
    """The η_b at which the mean pull after the first step vanishes, to leading order in η_w.

    Logistic loss: η_b = log(π/(1−π))/(π − ½), which is 4 at π = ½ and grows to both sides. Square
    loss: 1 at every π. On data use the share of positives *in the data*, n₊/n₀: then the pulls
    cancel exactly, whatever that share happens to be. How far η_b may lie off: `rate_window`.

    Examples
    --------
    >>> [round(calibrated_rate(pi), 3) for pi in (0.01, 0.1, 0.3, 0.5)]
    [9.378, 5.493, 4.236, 4.0]
    >>> calibrated_rate(0.3, "square")
    1.0
    """
    pi = check_real("pi", pi, 0, 1, open_low=True, open_high=True)
    if check_choice("loss", loss, ("logistic", "square")) == "square":
        return 1.0
    u = 2 * pi - 1  # log(π/(1−π)) = 2 artanh(u), which loses digits towards ±1
    if abs(u) > 0.5:
        return 2 * (math.log(pi) - math.log1p(-pi)) / u
    return 4.0 if abs(u) < 1e-9 else 4 * math.atanh(u) / u


class RateWindow(NamedTuple):
    """The calibrated rate, the ends of the interval of rates that are as good, and the cosine."""

    rate: float
    low: float
    high: float
    cosine: float


def rate_window(
    model: SparseTokens, alpha0: float, *, loss: str = "logistic", lr_w: float = RATE_W,
    keep: float = 0.9,
) -> RateWindow:  # fmt: skip
    """The η_b around the calibrated rate at which the cosine stays above `keep` of its value there.

    `keep` = 0 gives the interval in which the query is aligned at all (A + B > 0). An end that lies
    more than 10³ calibrated rates away is returned as ±inf.

    Examples
    --------
    >>> model = SparseTokens(L=1000, R=3, theta=6.0, pi=0.3)
    >>> window = rate_window(model, 5.0)
    >>> [round(value, 2) for value in window]
    [4.24, 4.16, 4.51, 0.78]
    """
    model, keep = check_model(model), check_real("keep", keep, 0, 1, open_high=True)
    rate = calibrated_rate(model.pi, loss)

    def cosine(lr_b: float) -> float:
        return predict_alignment(model, alpha0, loss=loss, lr_w=lr_w, lr_b=lr_b).query_cos

    goal = keep * cosine(rate)

    def end(side: float) -> float:
        reach = 1e-3 * rate
        while cosine(rate + side * reach) > goal:
            reach *= 2
            if reach > WIDEST * rate:
                return side * math.inf
        gap = lambda x: cosine(rate + side * x) - goal  # noqa: E731
        return rate + side * float(brentq(gap, 0 if reach < 2e-3 * rate else reach / 2, reach))

    return RateWindow(rate, end(-1.0), end(1.0), cosine(rate))


def calibrated_cosine(model: SparseTokens, alpha0: float) -> float:
    """The cosine s_q of the query at the calibrated rate, as η_w → 0: the same for both losses.

    With c_w² = 1/(1 + L/(α₀π²θ²R²)), the squared cosine of w⁽¹⁾, and R̄ = R(L−R)/L,

        1/s_q² = 1 + ((L−1)/c_w² + θ²R̄(1−π)) / (α₀π(1−π)θ⁴R̄²).

    Chapter 12, prop-12-cosine.

    >>> model = SparseTokens(L=1000, R=3, theta=6.0, pi=0.3)
    >>> rate = calibrated_rate(0.3)
    >>> limit = predict_alignment(model, 5.0, lr_w=1e-3, lr_b=rate).query_cos
    >>> round(calibrated_cosine(model, 5.0), 4), round(limit, 4)
    (0.7782, 0.7782)
    """
    model, alpha0 = check_model(model), check_real("alpha0", alpha0, 0, open_low=True)
    L, R, theta, pi = model.L, model.R, model.theta, model.pi
    spread = R * (L - R) / L
    if theta * spread == 0:
        return 0.0
    inverse = 1 + L / (alpha0 * (pi * theta * R) ** 2)
    noise = (L - 1) * inverse + theta**2 * spread * (1 - pi)
    return 1 / math.sqrt(1 + noise / (alpha0 * pi * (1 - pi) * theta**4 * spread**2))
