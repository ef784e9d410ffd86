"""What each classifier can represent: its smallest test error when ξ and θ are known.

Every classifier here sees the tokens through their projections h_ℓ = g_ℓ + θ v_ℓ on ξ and compares
a statistic S with a threshold. Where errors, positives and lengths are common its error is that on
drawn bags (`needle.oracle.drawn`); what is rare is integrated.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import expit, logsumexp

from ..data.noise import Function, Noise, one, sample_noise
from ..data.tokens import SparseTokens
from ..kit.checks import check_integer, check_is, check_real, check_rng
from .bayes import FEW, bayes_risk
from .drawn import check_noise, drawn_error, sampled_error
from .excess import excess_risk
from .limit import check_rule, critical_theta
from .rules import OracleError, largest_token, two_gaussians
from .soft import soft_risk

RARE = 0.02  # shares and errors below it are not left to bags that are drawn as they come


def oracle_error(
    kind: str,
    model: SparseTokens,
    *,
    tau: float | None = None,
    phi: Function = np.tanh,
    rng: np.random.Generator | None = None,
    trials: int = 10_000,
    noise: Noise | None = None,
    level: float | None = None,
) -> OracleError:
    """The smallest test error of a kind of classifier that knows ξ and θ, with the best threshold.

    - "pooled", "vectorized" (uniform weights): two Gaussians at distance δ = θR/√L, closed form;
    - "attention" (w = ξ, q = τξ): S = Σ softmax(τh) h at the given τ, or at the best one;
      τ = ∞ is the largest token, closed form;
    - "elementwise": S = Σ h φ(τh), τ = 1 unless given, φ fixed as L grows;
    - "bayes": S = e_R(x)/C(L, R) with x = exp(θh − θ²/2), threshold (1 − π)/π;
    - "largest": S = max h, closed form;
    - "excess": S = Σ(h² − t²) over heights above t = `level` (the best unless given), no draws.

    (It simulates where `predict_error` predicts, and is no exception, whatever its name.)
    Appendix A, def-A-oracle, prop-A-risk, thm-A-two-gaussians and eq-A-ratio.

    The others are Monte Carlo over `trials` bags of noise; pass `noise` from `sample_noise` instead
    of `rng` to compare kinds, θ, τ or π on the same bags. With `rng` errors and shares of positives
    below RARE, and L beyond 10¹⁵, are left to `bayes_risk` (up to FEW needles) and `soft_risk`,
    which integrate what is rare: Bayes' is good to 1 or 2 % up to L = 10³⁰⁰, attention's has no
    Monte Carlo error and is good to 1 %.

    >>> model = SparseTokens(L=10**4, R=1, theta=4.29, pi=0.5)
    >>> round(float(oracle_error("pooled", model)), 4)
    0.4914
    >>> noise = sample_noise(10**4, 1, 4000, np.random.default_rng(0))
    >>> bayes, attention = (oracle_error(k, model, noise=noise) for k in ("bayes", "attention"))
    >>> round(float(bayes), 2), round(attention.error / bayes.error, 2)
    (0.26, 1.0)
    """
    tau = check_rule(kind, model, tau, phi, level)
    if kind in ("pooled", "vectorized"):
        return two_gaussians(model.snr, model.pi)
    if kind == "excess":
        level = level if level is None else check_real("level", level, 0, 1e3)
        return excess_risk(float(model.L), model.R, model.theta, model.pi, level)
    if kind == "largest" or (kind == "attention" and tau == math.inf):
        return largest_token(model)
    if noise is not None:
        return sampled_error(kind, model, tau, phi, check_noise(noise, model))
    trials, rng = check_integer("trials", trials, 4), check_rng(rng)
    if _rare(kind, model, tau, rng):
        L, R, theta, pi = float(model.L), model.R, model.theta, model.pi
        if kind == "bayes":
            return bayes_risk(L, R, theta, pi, rng, trials)
        return soft_risk(L, R, theta, pi, tau)
    return drawn_error(kind, model, tau, phi, rng, trials)


def _rare(
    kind: str, model: SparseTokens, tau: float | None, rng: np.random.Generator
) -> bool:  # fmt: skip
    """Are errors, positives or lengths beyond bags that are drawn as they come, and needles few?"""
    L, R, theta, pi = float(model.L), model.R, model.theta, model.pi
    if kind == "elementwise" or (kind == "bayes" and (R > FEW or R == L)):
        return False
    common = min(pi, 1 - pi)
    if L > 1e15 or common < RARE:
        return True
    if excess_risk(L, R, theta, pi, 0.85 * critical_theta(L)).error >= RARE * common:
        return False
    if kind == "bayes" or tau is None:
        return True
    pilot = sample_noise(model.L, R, 500, rng)
    return sampled_error(kind, model, tau, np.tanh, pilot).error < RARE * common


def needle_weight(model: SparseTokens, tau: float, noise: Noise) -> float:
    """Mean softmax weight E Σ_signal e^{τh} / Σ e^{τh} on the signal tokens of a positive sample.

    Chapter 3, eq-3-weight and thm-3-weight.

    >>> noise = sample_noise(10**6, 1, 500, np.random.default_rng(0))
    >>> model = SparseTokens(L=10**6, R=1, theta=7.0, pi=0.5)
    >>> [round(needle_weight(model, tau, noise), 1) for tau in (1.0, 4.0)]
    [0.0, 0.9]
    """
    check_is("model", model, SparseTokens)
    tau = check_real("tau", tau, 0)
    scale, (mass,) = check_noise(noise, model).tilted(tau, one)
    with np.errstate(divide="ignore"):
        bag = (scale + np.log(mass))[:, None]
    return float(expit(logsumexp(tau * (model.theta + noise.free), axis=-1) - bag).mean())
