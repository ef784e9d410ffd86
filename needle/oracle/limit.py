"""What oracle errors tend to as L → ∞ with R fixed, and the strengths at which they fall.

Appendix A, thm-A-bayes, thm-A-frozen, thm-A-fixed-tau and thm-A-ladder.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import qmc

from ..data.noise import Function
from ..data.tokens import SparseTokens
from ..kit.checks import check_choice, check_is, check_real
from ..kit.nodes import GRID, MASS
from .excess import excess_risk
from .rules import OracleError, largest_token, minimum, two_gaussians

KINDS = ("pooled", "vectorized", "attention", "elementwise", "bayes", "largest", "excess")


def check_rule(
    kind: str, model: SparseTokens, tau: float | None, phi: Function, level: float | None = None
) -> float | None:
    """τ, when every argument is allowed."""
    check_choice("kind", kind, KINDS)
    if level is not None and kind != "excess":
        raise ValueError(f"level = {level!r} is not allowed: level must be None but for 'excess'")
    check_is("model", model, SparseTokens)
    check_is("phi", phi, Callable, "a function")
    frozen = kind == "attention" and isinstance(tau, float) and tau == math.inf
    return tau if tau is None or frozen else check_real("tau", tau, 0)


def predict_error(
    kind: str, model: SparseTokens, *, tau: float | None = None, phi: Function = np.tanh
) -> OracleError:
    """What `oracle_error` tends to as L → ∞ with R fixed: the same record, without simulation.

    - "pooled", "vectorized", "excess", "largest", attention at τ = ∞: no limit, exact at every L;
    - "bayes", attention at the best τ or at a given τ ≥ √(log L / 2):
      min{π Φ(√(2 log L) − θ)^R, 1 − π}, the needle hidden below the largest straw;
    - "elementwise", attention at a smaller τ: noise sums are Gaussian, and with G ~ N(0, 1) and
      h = θ + G the error is min_s π E Φ(s − Σ J(h)) + (1 − π) Φ(−s), where for ψ(h) = h φ(τh)
      J(h) = (ψ(h) − E ψ(G))/√(L Var ψ(G)), and J(h) = (h − τ) e^{τh − τ²}/√(L(1 + τ²)) for
      attention.

    Appendix A, thm-A-two-gaussians, thm-A-bayes, thm-A-frozen, thm-A-fixed-tau and thm-A-ladder.

    >>> model = SparseTokens(L=10**8, R=1, theta=10.0, pi=0.5)
    >>> round(predict_error("attention", model, tau=1.0).error, 3)
    0.104
    """
    tau = check_rule(kind, model, tau, phi)
    L, R, theta, pi = model.L, model.R, model.theta, model.pi
    if kind in ("pooled", "vectorized"):
        return two_gaussians(model.snr, pi)
    if kind == "excess":
        return excess_risk(float(L), R, theta, pi)
    if kind == "largest" or (kind == "attention" and tau == math.inf):
        return largest_token(model)
    frozen = tau is None or tau >= math.sqrt(math.log(L) / 2)
    if kind == "bayes" or (kind == "attention" and frozen):
        return OracleError(min(pi * float(ndtr(critical_theta(L) - theta)) ** R, 1 - pi))
    t = 1.0 if tau is None else tau
    if R == 1:
        h, weight = theta + GRID[::10, None], MASS[::10] / MASS[::10].sum()
    else:
        h, weight = theta + ndtri(qmc.Sobol(R, seed=0).random(2**14)), np.full(2**14, 2.0**-14)
    with np.errstate(over="ignore"):
        if kind == "attention":
            J = (h - t) * np.exp(t * h - t**2) / math.sqrt(L * (1 + t**2))
        else:
            psi = GRID * phi(t * GRID)
            variance = MASS @ (psi - MASS @ psi) ** 2
            J = (h * phi(t * h) - MASS @ psi) / math.sqrt(L * variance)
    shift = J.sum(axis=1)

    def risk(s: np.ndarray) -> np.ndarray:
        return pi * (ndtr(np.subtract.outer(s, shift)) @ weight) + (1 - pi) * ndtr(-s)

    s, error = minimum(risk, -9.0, 9.0)
    return OracleError(error, threshold=s, tau=t)


def critical_theta(L: float, tau: float | None = None, *, criterion: str = "weight") -> float:
    """Signal strength at which attention (w = ξ, q = τξ) finds the needle, as L → ∞ with R fixed.

    criterion "weight": the softmax puts its mass on the signal token, e^{τθ} > Σ e^{τg}. This takes
        θ = log L/τ + τ/2, and √(2 log L) once the noise is frozen, τ ≥ √(2 log L).
    criterion "error": the test error at the best threshold vanishes. The signal token need only
        beat the fluctuations of the noise, which takes θ = log L/(2τ) + τ, and √(2 log L) once
        these are frozen, τ ≥ √(log L / 2).
    Without τ, at the best one: √(2 log L) for both. Appendix A, cor-A-weight and cor-A-boundary.

    >>> [round(critical_theta(1e4, tau), 3) for tau in (1.0, 4.0, 5.0, None)]
    [9.71, 4.303, 4.292, 4.292]
    >>> round(critical_theta(1e4, 1.0, criterion="error"), 3)
    5.605
    """
    log_L = math.log(check_real("L", L, 1, open_low=True))
    check_choice("criterion", criterion, ("weight", "error"))
    if tau is None or (isinstance(tau, float) and tau == math.inf):
        return math.sqrt(2 * log_L)
    tau = check_real("tau", tau, 0, open_low=True)
    c = 1.0 if criterion == "weight" else 2.0
    if tau * c < math.sqrt(2 * log_L):
        return log_L / (c * tau) + c * tau / 2
    return math.sqrt(2 * log_L)
