"""Exact test error and training loss of the readout in the limit n, d → ∞ with n/d = α.

Both follow from five numbers, the saddle point of `needle.readout.saddle`, by formulas in closed
form. Appendix C, thm-c-equations and prp-c-limits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from ..data.law import FeatureLaw
from ..kit.checks import check_flag, check_is, check_real
from ..kit.losses import SMOOTH, get_loss
from ..kit.records import ConvergenceError, Readout
from ..kit.threads import in_one_thread
from .newton import TOLERANCE, solve
from .saddle import Problem

Array = np.ndarray

_LARGE_ALPHA, _LARGE_LAMBDA = 1e12, 1e9  # stand for ∞: the limits are approached like 1/α and 1/λ
_MANY = 1e3  # samples per dimension beyond which all points of a law judge


@dataclass(frozen=True)
class OrderParameters:
    """The unknowns of the self-consistent equations.

    Attributes
    ----------
    nu, kappa, rest : ⟨w, q̂⟩, ⟨w, e⟩ and w_⊥, the norm of the rest of w (ν = 0 without query)
    bias : the intercept b
    zeta : √(α E[r² ℓ'(u)²]), the root mean square force of the data on a direction of w
    residual : largest violation of an equation, relative to the sum of its terms' sizes
    iterations : Newton steps taken
    """

    nu: float
    kappa: float
    rest: float
    bias: float
    zeta: float
    residual: float = np.inf
    iterations: int = 0

    @property
    def chi(self) -> float:
        """χ = w_⊥/ζ: how far one unit of force moves a score, per unit of r²."""
        return self.rest / self.zeta if self.zeta > 0 else np.inf

    def overlaps(self, cos: float) -> tuple[float, float, float]:
        """⟨w, ξ⟩ where ⟨ξ, q̂⟩ = cos, ⟨w, q̂⟩, and the length of w across q̂."""
        signal = cos * self.nu + math.sqrt(1 - cos**2) * self.kappa
        return signal, self.nu, math.hypot(self.kappa, self.rest)

    @property
    def vector(self) -> Array:
        """(ν, κ, w_⊥, b, ζ)."""
        return np.array([self.nu, self.kappa, self.rest, self.bias, self.zeta])


def order_parameters(
    law: FeatureLaw,
    alpha: float,
    lam: float,
    *,
    loss: str = "logistic",
    intercept: bool = True,
    start: OrderParameters | None = None,
) -> OrderParameters:
    """Solve the self-consistent equations; arguments as in `predict_readout`.

    `start` is a solution nearby, for example at the previous point of a curve. Unlike
    `predict_readout` this returns the best estimate where it did not converge: see `residual`.

    Examples
    --------
    >>> from needle.data.classifiers import gaussian_mixture
    >>> law = gaussian_mixture(var_pos=1.0, var_neg=1.0)
    >>> o = order_parameters(law, 2.0, 0.0, loss="square", intercept=False)
    >>> [round(value, 6) for value in (o.kappa, o.rest, o.chi)]  # pooled features: χr² = 1/(α − 1)
    [0.5, 0.707107, 1.0]
    """
    return solve_readout(law, alpha, lam, loss, intercept, start)[0]


@in_one_thread
def solve_readout(
    law: FeatureLaw,
    alpha: float,
    lam: float,
    loss: str,
    intercept: bool,
    start: OrderParameters | None,
    *,
    told: bool = False,
) -> tuple[OrderParameters, Readout]:
    """Order parameters and the readout behind them, converged or not; as `predict_readout`.

    An error too rare to be told from the law is an estimate, or refused if it must be `told`.
    """

    def unless_infinite(name: str, value: object, limit: float, open_low: bool) -> float:
        infinite = isinstance(value, float) and value == np.inf
        return limit if infinite else check_real(name, value, 0, open_low=open_low)

    law, intercept = check_is("law", law, FeatureLaw), check_flag("intercept", intercept)
    alpha = unless_infinite("alpha", alpha, _LARGE_ALPHA, open_low=True)
    ridge = unless_infinite("lam", lam, _LARGE_LAMBDA, open_low=False)
    get_loss(loss, (*SMOOTH, "hinge"))
    if loss == "hinge":
        check_real("lam", ridge, 0, open_low=True)
    if start is not None:
        check_is("start", start, OrderParameters, "an OrderParameters or None")
        x = start.vector
        if loss == "logistic" and not (np.isfinite(x).all() and x[2] > 0 and x[4] > 0):
            raise ValueError(
                f"start = {start} is not allowed: start must be finite, with rest and zeta above 0"
            )
    q = Problem(law, law.nodes, alpha / law.copies, ridge, intercept)
    x, train_loss, residual, iterations = solve(q, loss, None if start is None else start.vector)
    nu, kappa, rest, bias, zeta = x.tolist()
    found = OrderParameters(nu, kappa, rest, bias, zeta, float(residual), iterations)
    mean, s, chi = q.cavity(x)
    push = 0.5 if loss == "logistic" else 1.0  # |ℓ'(0)|: training moves a margin of 0 by push·χr²
    with np.errstate(invalid="ignore", divide="ignore"):
        train_error = float(q.weight @ np.nan_to_num(ndtr(-(mean + push * chi) / s)))
    overlap = law.cos * nu + np.sqrt(1 - law.cos**2) * kappa
    norm = np.linalg.norm(x[:3])
    # with little noise in w a score is almost certain: a step, which few nodes blur
    untold = None
    try:
        test_error = law.misread(*found.overlaps(law.cos), bias, fine=alpha > _MANY)
    except ConvergenceError as stopped:
        test_error, untold = float(stopped.estimate), stopped
    readout = Readout(
        test_error=test_error,
        train_loss=train_loss,
        train_error=train_error,
        signal=0.0 if lam == np.inf else float(overlap),
        norm=0.0 if lam == np.inf else float(norm),
        bias=bias,
        converged=bool(residual < TOLERANCE),
        iterations=iterations,
    )
    if untold and told:
        raise ConvergenceError(str(untold), readout)
    return found, readout


def checked(readout: Readout, alpha: float, lam: float) -> Readout:
    """The readout if it converged, or a ConvergenceError that says why not."""
    if readout.converged and np.isfinite(readout.norm):
        return readout
    why = f"no solution of the self-consistent equations in {readout.iterations} Newton steps"
    if np.isinf(readout.norm):
        why = "the norm of w is infinite at the interpolation threshold"
    elif readout.iterations == 0:
        why = "all samples pull alike, so that labels in balance leave every intercept as good"
        raise ConvergenceError(
            f"alpha = {alpha:g}, lam = {lam:g}: {why}; take a smaller lam, or intercept=False",
            readout,
        )
    elif lam == 0 and readout.train_loss < 1e-3:
        why = "no minimiser exists, the data are separable"
    raise ConvergenceError(f"alpha = {alpha:g}, lam = {lam:g}: {why}; take a larger lam", readout)


def predict_readout(
    law: FeatureLaw,
    alpha: float,
    lam: float,
    *,
    loss: str = "logistic",
    intercept: bool = True,
    start: OrderParameters | None = None,
) -> Readout:
    """Test error, training loss and overlaps of the readout that minimises (1/n)Σℓ + ½λ|w|².

    Parameters
    ----------
    law : the law of the features
    alpha : n/d > 0 with d the token dimension, ∞ for the population minimiser
    lam : ridge λ ≥ 0 (> 0 for the hinge loss), ∞ for the limit in which w → 0 (signal and norm are
        then 0, the error is not)
    loss : "logistic", "square" or "hinge". With rare positives, many samples and the hinge loss w
        is exactly 0 (`collapse_alpha`)
    intercept : whether b is fitted; otherwise b = 0
    start : the order parameters of a nearby point, to start from

    Returns
    -------
    Readout with the limits of everything that `needle.simulate_readout` measures.

    Raises
    ------
    ConvergenceError : where the relative residual stays above 1e-9, with the best `estimate`; for
        example for the logistic loss at λ = 0 below capacity, where no minimiser exists. Rare
        errors of attention are read off its tail (`needle.kit.tails`), those below 1e-16 as 0.

    Examples
    --------
    >>> from needle.data.classifiers import gaussian_mixture
    >>> law = gaussian_mixture(var_pos=0.5, var_neg=0.5)
    >>> print(f"{predict_readout(law, 3.0, 0.01 / 3, intercept=False).test_error:.7f}")
    0.1310234
    """
    readout = solve_readout(law, alpha, lam, loss, intercept, start, told=True)[1]
    return checked(readout, alpha, lam)


def learning_curve(
    law: FeatureLaw,
    alpha: ArrayLike,
    lam: ArrayLike,
    *,
    loss: str = "logistic",
    intercept: bool = True,
) -> list[Readout]:
    """`predict_readout` along a path (alpha and lam broadcast), each point started from the last.

    Examples
    --------
    >>> from needle.data.classifiers import pooled
    >>> from needle.data.tokens import SparseTokens
    >>> law = pooled(SparseTokens(L=10, R=1, theta=5.0, pi=0.5))
    >>> curve = learning_curve(law, [2, 4, 8], 0.1, loss="square")
    >>> [round(point.test_error, 3) for point in curve]
    [0.288, 0.258, 0.239]
    """
    curve: list[Readout] = []
    start: OrderParameters | None = None
    for a, ridge in np.broadcast(np.atleast_1d(alpha), np.atleast_1d(lam)):
        start, readout = solve_readout(law, a, ridge, loss, intercept, start, told=True)
        curve.append(checked(readout, a, ridge))
    return curve
