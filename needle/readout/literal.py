"""One data set used twice, literally: two gradient steps and a readout on the same drawn samples.

`needle.readout.reuse` is the limit of all this. Appendix C, thm-c-reuse.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Unpack

import numpy as np
from scipy.special import softmax

from ..data.classifiers import attention
from ..data.tokens import SparseTokens
from ..kit.checks import check_flag, check_integer, check_is, check_real, check_rng
from ..kit.records import Readout
from ..kit.threads import in_one_thread
from ..steps.alignment import predict_alignment
from ..steps.rule import StepOptions, step_rule, two_steps
from .fit import error_rate, fit_readout

Array = np.ndarray


@in_one_thread
def simulate_reuse(
    model: SparseTokens,
    d: int,
    alpha: float,
    lam: float,
    rng: np.random.Generator,
    *,
    temperature: float,
    fresh: bool = False,
    **steps: Unpack[StepOptions],
) -> Readout:
    """Two gradient steps on n = alpha·d samples of tokens in R^d, then a readout on the same ones.

    With `fresh` the readout is trained on n new samples instead; from generators of the same state
    both have the same query. The test error is that of this very readout and query, over fresh
    draws of the coefficients. All nLd numbers are held in memory.

    Examples
    --------
    >>> model = SparseTokens(L=10, R=1, theta=3.0, pi=0.5)
    >>> for fresh in (False, True):
    ...     rng = np.random.default_rng(0)
    ...     run = simulate_reuse(model, 100, 1.0, 0.01, rng, temperature=2.0, fresh=fresh)
    ...     print(f"{run.train_loss:.2f}")
    0.10
    0.16
    """
    F, y, q = two_step_features(model, d, alpha, rng, temperature=temperature, fresh=fresh, **steps)
    fit = fit_readout(F, y, lam, loss=step_rule(**steps).loss)
    size, norm = float(np.linalg.norm(q)), float(np.linalg.norm(fit.w))
    law = attention(model, temperature=size, cos=min(1.0, max(-1.0, q[0] / size)))
    plane = np.array(
        [fit.w[0], fit.w[1:] @ q[1:] / np.linalg.norm(q[1:])]
    )  # where the law has ξ, q
    rest = math.sqrt(max(norm**2 - plane @ plane, 0.0))
    return Readout(
        test_error=error_rate(law, np.append(plane, rest), fit.b, rng),
        train_loss=fit.train_loss,
        train_error=fit.train_error,
        signal=float(fit.w[0]),
        norm=norm,
        bias=fit.b,
        converged=fit.converged,
        iterations=fit.iterations,
    )


class SeenFeatures(NamedTuple):
    """Features F (n, d), labels y (n,) and the query q (d,) behind which they were taken."""

    F: Array
    y: Array
    q: Array


def two_step_features(
    model: SparseTokens,
    d: int,
    alpha: float,
    rng: np.random.Generator,
    *,
    temperature: float,
    fresh: bool = False,
    **steps: Unpack[StepOptions],
) -> SeenFeatures:
    """Attention features of n = alpha·d samples behind the query of two gradient steps on them."""
    model, d, rng = check_is("model", model, SparseTokens), check_integer("d", d, 3), check_rng(rng)
    T = check_real("temperature", temperature, 0, open_low=True)
    n = max(2, round(check_real("alpha", alpha, 0, open_low=True) * d))
    X, y, _ = model.sample(n, d, rng)
    q = two_steps(X, y, **steps).q
    q *= T / predict_alignment(model, alpha, **steps).query_norm
    if check_flag("fresh", fresh):
        X, y, _ = model.sample(n, d, rng)
    return SeenFeatures(np.einsum("nl,nld->nd", softmax(X @ q, axis=1), X), y, q)
