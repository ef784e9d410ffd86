"""Smallest errors on bags of noise that are drawn as they come: one rule, any kind.

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
from scipy.special import expit, logit

from ..data.noise import Function, Noise, one, sample_noise
from ..data.tokens import SparseTokens
from ..kit.checks import check_is
from ..kit.nodes import GRID, MASS
from .cells import log1p
from .limit import critical_theta
from .rules import OracleError, averaged, cross_fit, pool

BLOCK = 10_000


def log_ratio(noise: Noise, h: np.ndarray, theta: float) -> np.ndarray:
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
        return log1p(p * complex(math.cos(angle) - 1, math.sin(angle)))[None]

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


def soft_average(noise: Noise, h: np.ndarray, tau: float) -> np.ndarray:
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


def check_noise(noise: Noise, model: SparseTokens) -> Noise:
    """The noise, when it is that of bags of the model."""
    if (check_is("noise", noise, Noise).L, noise.R) == (model.L, model.R):
        return noise
    raise ValueError(
        f"noise with L, R = {noise.L}, {noise.R} is not allowed: noise must have those of the "
        f"model, {model.L}, {model.R}"
    )


def sampled_error(
    kind: str, model: SparseTokens, tau: float | None, phi: Function, noise: Noise
) -> OracleError:
    """The error on bags of noise; Bayes' at rare positives on these alone, π E₊ min(1, k/Λ)."""
    theta, pi = model.theta, model.pi
    h = noise.free[:, None] + theta * np.array([0.0, 1.0])[:, None, None]
    evidence = log_ratio(noise, h, theta)
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
    return cross_fit(lambda tau: soft_average(noise, h, tau), tau, ceiling, yes, no)


def drawn_error(
    kind: str,
    model: SparseTokens,
    tau: float | None,
    phi: Function,
    rng: np.random.Generator,
    trials: int,
) -> OracleError:
    """`sampled_error` in blocks of bounded memory."""
    if trials > BLOCK:
        sizes = np.array([trials // 2, trials - trials // 2])
        parts = [drawn_error(kind, model, tau, phi, rng, n) for n in sizes]
        return pool(parts, sizes / trials)
    return sampled_error(kind, model, tau, phi, sample_noise(model.L, model.R, trials, rng))


def _at_most(found: OracleError, pi: float) -> OracleError:
    """Bayes' error is never above that of always answering the same."""
    return replace(found, error=min(found.error, pi, 1 - pi))
