"""What each classifier can represent: its smallest test error when ξ and θ are known.

Every classifier here sees the tokens through their projections h_ℓ = g_ℓ + θ v_ℓ on ξ and compares
a statistic S with a threshold. Two ideas carry the module:

* **The risk needs no labels.** With η = P(y = +1 | tokens) from the likelihood ratio, any rule has
  error E[1 − η; S > t] + E[η; S ≤ t]. Averaging η instead of labels reduces the variance, and makes
  the difference of two classifiers on the same tokens very sharp.
* **A bag of noise is a few sums**, drawn by `needle.data.noise` at a cost that does not grow with
  L.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit, logsumexp

from ..data.noise import Function, Noise, one, sample_noise
from ..data.tokens import SparseTokens
from ..kit.checks import check_choice, check_integer, check_is, check_real, check_rng
from ..kit.nodes import GRID, MASS
from ..kit.records import ConvergenceError
from .bayes import FEW, bayes_risk
from .excess import excess_risk
from .limit import KINDS, check_rule
from .limit import critical_theta as critical_theta
from .limit import predict_error as predict_error
from .rules import OracleError, averaged, cross_fit, largest_token, pool, two_gaussians
from .short import LONGEST, SHARPEST, short_risk
from .soft import soft_risk

BLOCK = 10_000
RARE = 0.02  # shares and errors below it are not left to bags that are drawn as they come


def _log1p(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """log(1 + x + iy), to the last digit where x and y are 1e-9; NumPy's loses half of them."""
    return np.log1p(2 * x + x * x + y * y) / 2 + 1j * np.arctan2(y, 1 + x)


def _log_ratio(noise: Noise, h: np.ndarray, theta: float) -> np.ndarray:
    """log e_R(x)/C(L,R), x = exp(θh − θ²/2), with free tokens h (trials, …, R).

    For R > 1: with any r > 0 and p = rx/(1 + rx), r^R e_R(x) = Π(1 + rx) · P(B = R), with B the sum
    of independent Bernoulli(p_ℓ). A Fourier sum over N points gives P(B = R), of order 1 when
    E[B] ≈ R, up to its aliases P(B = R + N), …, below 1e-10.
    """
    L, R = noise.L, noise.R
    if R == 1:
        scale, (total,) = noise.tilted(theta, one)
        with np.errstate(divide="ignore"):
            bag = np.where(total > 0, scale + np.log(total), -np.inf)
        return np.logaddexp(bag[:, None, None], theta * h[..., 0]) - theta**2 / 2 - math.log(L)
    target = min(R, L - 0.5)

    def excess(s: float) -> float:
        return L * float(MASS @ expit(s + theta * GRID - theta**2 / 2)) - target

    s = brentq(excess, -100 - 13 * theta, 100 + 13 * theta + theta**2, xtol=1e-3)

    def log_terms(g: np.ndarray, angle: float) -> np.ndarray:
        p = expit(s + theta * g - theta**2 / 2)
        return _log1p(p * (math.cos(angle) - 1), p * math.sin(angle))[None]

    N = 2 * ((R + 14 + math.ceil(6 * math.sqrt(R))) // 2) + 1
    probability = np.ones(h.shape[:-1])
    for angle in 2 * np.pi / N * np.arange(1, (N + 1) // 2):
        _, (bag,) = noise.tilted(0.0, partial(log_terms, angle=angle))
        free = log_terms(h, angle)[0].sum(axis=-1)
        probability += 2 * np.exp(bag[:, None, None] + free - 1j * R * angle).real
    _, (bag,) = noise.tilted(0.0, lambda g: np.logaddexp(0, s + theta * g - theta**2 / 2)[None])
    free = np.logaddexp(0, s + theta * h - theta**2 / 2).sum(axis=-1)
    subsets = np.log(np.arange(L, L - R, -1) / np.arange(1, R + 1)).sum()
    log_probability = np.log(np.maximum(probability / N, 1e-17))
    return bag[:, None, None] + free - R * s + log_probability - subsets


def _attention(noise: Noise, h: np.ndarray, tau: float) -> np.ndarray:
    """Σ softmax(τh) h, where the bag acts as a single token of log weight log Σ e^{τg}."""
    if tau == math.inf:
        return np.maximum(noise.tilted(1.0, one)[0][:, None, None], h.max(axis=-1))
    scale, (mass, moment) = noise.tilted(tau, lambda g: np.stack([np.ones_like(g), g]))
    with np.errstate(divide="ignore", invalid="ignore"):
        bag = np.where(mass > 0, scale + np.log(mass), -np.inf)[:, None, None]
        value = np.where(mass > 0, moment / mass, 0.0)[:, None, None]
    top = np.maximum(bag, tau * h.max(axis=-1))
    heavy, weight = np.exp(bag - top), np.exp(tau * h - top[..., None])
    return (heavy * value + (weight * h).sum(axis=-1)) / (heavy + weight.sum(axis=-1))


def _check_noise(noise: Noise, model: SparseTokens) -> Noise:
    """The noise, when it is that of bags of the model."""
    if (check_is("noise", noise, Noise).L, noise.R) == (model.L, model.R):
        return noise
    raise ValueError(
        f"noise with L, R = {noise.L}, {noise.R} is not allowed: noise must have those of the "
        f"model, {model.L}, {model.R}"
    )


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
    of `rng` to compare kinds, θ, τ or π on the same bags. With `rng` and up to FEW needles, errors
    and shares of positives below RARE, and L beyond 10¹⁵, are left to `bayes_risk`, `short_risk`
    and `soft_risk`, which integrate what is rare: Bayes' is good to 1 or 2 % up to L = 10³⁰⁰,
    attention's has no Monte Carlo error and is good to 2 %.

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
        return _sampled(kind, model, tau, phi, _check_noise(noise, model))
    trials, rng = check_integer("trials", trials, 4), check_rng(rng)
    if _rare(kind, model, tau, rng):
        L, R, theta, pi = float(model.L), model.R, model.theta, model.pi
        if kind == "bayes":
            return bayes_risk(L, R, theta, pi, rng, trials)
        if _short(model, tau):
            return short_risk(L, R, theta, pi, tau)
        return soft_risk(L, R, theta, pi, tau)
    return _drawn(kind, model, tau, phi, rng, trials)


def _drawn(
    kind: str,
    model: SparseTokens,
    tau: float | None,
    phi: Function,
    rng: np.random.Generator,
    trials: int,
) -> OracleError:
    """`_sampled` in blocks of bounded memory."""
    if trials > BLOCK:
        sizes = np.array([trials // 2, trials - trials // 2])
        parts = [_drawn(kind, model, tau, phi, rng, n) for n in sizes]
        return pool(parts, sizes / trials)
    return _sampled(kind, model, tau, phi, sample_noise(model.L, model.R, trials, rng))


def _at_most(found: OracleError, pi: float) -> OracleError:
    """Bayes' error is never above that of always answering the same."""
    return replace(found, error=min(found.error, pi, 1 - pi))


def _short(model: SparseTokens, tau: float | None) -> bool:
    """Can the error of attention be summed on a lattice?"""
    return model.L <= LONGEST and (tau is None or tau <= SHARPEST * critical_theta(model.L))


def _rare(
    kind: str, model: SparseTokens, tau: float | None, rng: np.random.Generator
) -> bool:  # fmt: skip
    """Are errors, positives or lengths beyond bags that are drawn as they come, and needles few?"""
    L, R, theta, pi = float(model.L), model.R, model.theta, model.pi
    short = kind == "attention" and _short(model, tau)
    if kind == "elementwise" or (not short and (R > FEW or R == L)):
        return False
    common = min(pi, 1 - pi)
    if L > 1e15 or common < RARE:
        return True
    if excess_risk(L, R, theta, pi, 0.85 * critical_theta(L)).error >= RARE * common:
        return False
    if kind == "bayes" or tau is None:
        return True
    pilot = sample_noise(model.L, R, 500, rng)
    return _sampled(kind, model, tau, np.tanh, pilot).error < RARE * common


def _sampled(
    kind: str, model: SparseTokens, tau: float | None, phi: Function, noise: Noise
) -> OracleError:
    """The error on bags of noise; Bayes' at rare positives on these alone, π E₊ min(1, k/Λ)."""
    theta, pi = model.theta, model.pi
    h = noise.free[:, None] + theta * np.array([0.0, 1.0])[:, None, None]
    evidence = _log_ratio(noise, h, theta)
    if kind == "bayes" and pi < 0.01:
        risk = pi * np.exp(np.minimum(0.0, -logit(pi) - evidence[:, 1])).mean(axis=1)
        return _at_most(averaged(risk, float(-logit(pi))), pi)
    if kind != "bayes" and min(pi, 1 - pi) < 1e-3:
        raise ValueError(
            f"pi = {pi!r} is not allowed: pi must be in [0.001, 0.999] for {kind!r} on bags "
            "that are drawn as they come; give `rng`, with few needles"
        )
    posterior = expit(evidence + logit(pi))
    share = np.array([1 - pi, pi])[:, None] / h.shape[2]
    yes, no = share * (1 - posterior), share * posterior
    if kind == "bayes":
        risk = np.minimum(yes, no).sum(axis=(1, 2))
        return _at_most(averaged(risk, float(-logit(pi))), pi)
    if kind == "elementwise":
        scale = 1.0 if tau is None else tau
        _, (total,) = noise.tilted(0.0, lambda g: (g * phi(scale * g))[None])
        S = total[:, None, None] + (h * phi(scale * h)).sum(axis=-1)
        return cross_fit(lambda _: S, scale, scale, yes, no)
    ceiling = 2 * critical_theta(model.L)
    return cross_fit(lambda tau: _attention(noise, h, tau), tau, ceiling, yes, no)


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
    scale, (mass,) = _check_noise(noise, model).tilted(tau, one)
    with np.errstate(divide="ignore"):
        bag = (scale + np.log(mass))[:, None]
    return float(expit(logsumexp(tau * (model.theta + noise.free), axis=-1) - bag).mean())


def required_theta(
    kind: str,
    L: int,
    *,
    error: float = 0.05,
    R: int = 1,
    pi: float = 0.5,
    tau: float | None = None,
    phi: Function = np.tanh,
    rng: np.random.Generator | None = None,
    trials: int = 4_000,
    noise: Noise | None = None,
) -> tuple[float, float]:
    """The θ at which the error of `kind` is `error`, and its standard error.

    With `rng` or `noise` by `oracle_error`: all θ are tried on the same noise, so that the error
    falls smoothly, and the standard error of θ is that of the error divided by its slope. Without
    either by `predict_error`, exact at every L only for linear classifiers.
    `ConvergenceError` if no θ is enough, for example for an element-wise φ that vanishes at +∞, or
    if every θ is: where the limit of `predict_error` undercuts guessing already at θ = 0.
    Appendix A, def-A-oracle, cor-A-boundary and thm-A-ladder.

    >>> [round(required_theta(kind, 10**4)[0], 2) for kind in ("pooled", "bayes")]
    [328.97, 5.57]
    >>> round(required_theta("bayes", 10**4, rng=np.random.default_rng(0))[0], 1)
    6.0
    """
    check_choice("kind", kind, KINDS)
    pi = SparseTokens(L, R, 0.0, pi).pi
    check_real("error", error, 0, min(pi, 1 - pi), open_low=True, open_high=True)
    if noise is None and rng is not None:
        noise = sample_noise(L, R, trials, rng)

    def at(theta: float, tau: float | None = tau) -> OracleError:
        model = SparseTokens(L=L, R=R, theta=theta, pi=pi)
        if noise is None:
            return predict_error(kind, model, tau=tau, phi=phi)
        return oracle_error(kind, model, tau=tau, phi=phi, noise=noise)

    def solve(tau: float | None, guess: float) -> float:
        low, high = 0.8 * guess, 1.2 * guess
        while at(high, tau).error > error:
            if high > 1e100:
                raise ConvergenceError(f"no θ brings the error of {kind!r} down to {error}", high)
            low, high = high, 2 * high
        if at(0.0, tau).error <= error:
            raise ConvergenceError(f"the error of {kind!r} is at most {error} at every θ", 0.0)
        while low > 0 and at(low, tau).error <= error:
            low, high = low / 2, low
        return float(brentq(lambda x: at(x, tau).error - error, low, high, rtol=precision))

    theta, precision = critical_theta(L) + 2, 1e-5
    if noise is not None:
        precision = 1e-4  # below any standard error
        try:
            guess = required_theta(kind, L, error=error, R=R, pi=pi, tau=tau, phi=phi)[0]
        except ConvergenceError as reached:
            guess = max(theta, reached.estimate)
        theta = guess
    if kind == "attention" and tau is None and noise is not None:
        for _ in range(2):  # τ best at this θ, then θ at that τ: the error is flat in τ near there
            tau = at(theta).tau
            theta = solve(tau, theta)
    else:
        theta = solve(tau, theta)
    slope = (at(1.01 * theta, tau).error - at(0.99 * theta, tau).error) / (0.02 * theta)
    uncertain = at(theta, tau).standard_error
    return theta, uncertain / abs(slope) if slope else math.inf if uncertain else 0.0
