"""How strong a needle must be for a given error: oracle errors, solved for θ."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq

from ..data.noise import Function, Noise, sample_noise
from ..data.tokens import SparseTokens
from ..kit.checks import check_choice, check_real
from ..kit.records import ConvergenceError
from .limit import KINDS, critical_theta, predict_error
from .rules import OracleError
from .separation import oracle_error


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
