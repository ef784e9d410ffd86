"""Needles found by classifiers that are told the direction: bags of noise at every length."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from needle.data.noise import sample_noise
from needle.data.tokens import SparseTokens
from needle.oracle import detection
from needle.oracle.limit import critical_theta
from needle.oracle.required import required_theta
from needle.oracle.rules import largest_token
from needle.oracle.separation import oracle_error
from needle.oracle.soft import ROUGH, Softmax
from utils.explorers.exponents import LENGTH, SHARPNESS, STRENGTHS, count, share

RULES: dict[str, tuple[str, float | None]] = {
    "pooled": ("attention", 0.0),
    "tau_1": ("attention", 1.0),
    "tau_3": ("attention", 3.0),
    "best_tau": ("attention", None),
    "bayes": ("bayes", None),
}
SHARP = (0.2, 0.25, 0.3, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.8, 0.9, 1.0, 1.2, 1.5, 2.0, 4.0)
RIVALS: dict[str, float | None] = {
    "best_tau": None,
    "tau_30": 30.0,
    "tau_3": 3.0,
    "tau_1": 1.0,
    "pooled": 0.0,
}


def _cube(u: np.ndarray) -> np.ndarray:
    return u**3


def _gauss(u: np.ndarray) -> np.ndarray:
    return np.exp(np.minimum(u * u / 8, 300))


LADDER: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "tanh": np.tanh,
    "linear": np.positive,
    "square": np.square,
    "cube": _cube,
    "exp": np.exp,
    "gauss_8": _gauss,
}


def needle(k: int, bags: int, rng: np.random.Generator) -> dict[str, float]:
    """The needle that each rule needs among 10^k tokens for 5 % error, on the same bags."""
    noise = sample_noise(10**k, 1, bags, rng)
    found = {}
    for name, (kind, tau) in RULES.items():
        found[name] = required_theta(kind, 10**k, tau=tau, noise=noise)[0]
    return found


def sharpness(k: int, x: float, bags: int, rng: np.random.Generator) -> dict[str, float]:
    """Error over Bayes error, on the same bags, for many sharpnesses in units of √(2 log L)."""
    noise, unit = sample_noise(10**k, 1, bags, rng), critical_theta(10**k)
    model = SparseTokens(10**k, 1, unit + x, 0.5)
    bayes = oracle_error("bayes", model, noise=noise).error
    errors = {
        f"at_{share:g}": oracle_error("attention", model, tau=share * unit, noise=noise).error
        for share in SHARP
    }
    return {name: error / bayes for name, error in errors.items()}


def rivals(k: int, theta: float, bags: int, rng: np.random.Generator) -> dict[str, float]:
    """Bayes' error, and the errors of others divided by it, on the same bags."""
    noise, model = sample_noise(10**k, 1, bags, rng), SparseTokens(10**k, 1, theta, 0.5)
    bayes = oracle_error("bayes", model, noise=noise).error
    errors = {
        name: oracle_error("attention", model, tau=tau, noise=noise).error / bayes
        for name, tau in RIVALS.items()
    }
    return {"bayes": bayes, **errors}


def oracle(
    kind: str, k: int, theta: float, tau: float, bags: int, rng: np.random.Generator
) -> float:
    """The error of one rule (τ is not used by Bayes)."""
    noise, model = sample_noise(10**k, 1, bags, rng), SparseTokens(10**k, 1, theta, 0.5)
    return oracle_error(kind, model, tau=tau if kind == "attention" else None, noise=noise).error


def ladder(k: int, bags: int, rng: np.random.Generator) -> dict[str, float]:
    """The needle that element-wise attention needs among 10^k tokens, for each function φ."""
    noise = sample_noise(10**k, 1, bags, rng)
    return {
        name: required_theta("elementwise", 10**k, phi=phi, noise=noise)[0]
        for name, phi in LADDER.items()
    }


def haystack(k: int, beta: float, bags: int, rng: np.random.Generator) -> dict[str, float]:
    """Strength for 5 % error with L^{1−β} needles, in units of √(2 log L)."""
    piles = detection.sample_haystack(10**k, round(10 ** (k * (1 - beta))), bags, rng)
    unit = critical_theta(10**k)
    return {
        kind: detection.haystack_theta(kind, piles)[0] / unit
        for kind in ("attention", "likelihood")
    }


def finite_errors(needles: int, gamma: float, rng: np.random.Generator) -> dict[str, float]:
    """−log(error/π)/log L at a million tokens, for the sharpness and strengths of the explorer.

    The excess rule has its best level. Each search for the best threshold begins where that at the
    last strength ended.
    """
    unit, R, pi = critical_theta(LENGTH), count(needles), share(gamma)

    def rate(log_error: float) -> float:
        return (math.log(pi) - min(log_error, math.log(pi))) / math.log(LENGTH)

    found = {}
    for k, theta in enumerate(STRENGTHS):
        model = SparseTokens(LENGTH, R, theta * unit, pi)
        excess = oracle_error("excess", model).error
        found[f"excess/{k}"] = rate(math.log(max(excess, 1e-300)))
        found[f"largest/{k}"] = rate(math.log(largest_token(model).error))
    for j, tau in enumerate(SHARPNESS):
        near = None
        for k, theta in enumerate(STRENGTHS):
            softmax = Softmax(LENGTH, R, theta * unit, pi, tau * unit, ROUGH)
            log_error, near = softmax.best(near)
            found[f"softmax/{j * len(STRENGTHS) + k}"] = rate(log_error)
    return found
