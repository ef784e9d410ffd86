"""Everything at once: one-pass descent on query, readout and intercept, in its limit.

Each step meets one fresh bag and moves q, w and b together against the gradient of its loss, with
rates η/d. As d → ∞, with α = steps/d for time, six numbers follow differential equations:
with u = Xq, v = Xw, h = Xξ, s = softmax(u), k = s∘(v − ⟨s,v⟩) and g = ℓ'(⟨s,v⟩ + b; y),

    d⟨q,ξ⟩/dα = −η_q E[g k·h],                       d⟨w,ξ⟩/dα = −η_w E[g s·h],
    d|q|²/dα = −2η_q E[g k·u] + η_q² E[g²|k|²],      d|w|²/dα = −2η_w E[g s·v] + η_w² E[g²|s|²],
    d⟨q,w⟩/dα = −η_q E[g k·v] − η_w E[g s·u] + η_qη_w E[g² s·k],      db/dα = −η_b E[g].

`needle.training.flow` computes the right-hand sides; `needle.training.walk` takes the steps one by
one. Chapter 10, thm-10-flow.

How the error is controlled
---------------------------
Every trajectory is computed twice: with another scrambling of the Sobol points (`sample_cloud`) and
with a ten times smaller tolerance of the integrator. The answer is the mean of the two, half their
difference its estimated standard error; the largest of these, over all times and quantities (norms
and overlap relative to max(1, size)), is held against `tolerance`. While it is larger the points
are quadrupled; where they cannot be, `ConvergenceError` carries the answer. What both trajectories
share, the mean over the Gaussian part of a score, is computed to 10⁻⁴ however wide scores spread
(`training_flow.normal_rule`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields

import numpy as np
from scipy.integrate import solve_ivp

from ..data.tokens import SparseTokens, check_model
from ..kit.checks import check_array, check_choice, check_real
from ..kit.records import ConvergenceError, Training
from ..kit.threads import in_one_thread
from .flow import Cloud, Rates, State, drift, flow_error, sample_cloud

Array = np.ndarray
Start = tuple[float, float] | Training
_FIRST, _LAST, _ENTRIES = 10, 16, 2**22  # log₂ of points, and entries of the largest cloud
_LOOKS = 5000  # at the drift in one course, ten times what usual rates need
_FAR = 1e3  # a norm at which descent is said to diverge


def _check_samples(samples: Sequence[float]) -> Array:
    times = check_array("samples", samples, "m")
    check_real("samples", times[0], 0)
    if (np.diff(times) <= 0).any():
        raise ValueError(f"samples = {samples!r} is not allowed: samples must rise")
    return times


def _check_start(start: Start) -> State:
    if isinstance(start, Training):
        q, w = start.query_norm, start.readout_norm
        along = q * start.query_cos, w * start.readout_cos
        return State(*along, q * q, w * w, start.overlap, start.bias)
    q, w = check_array("start", start, 2)
    return State(0.0, 0.0, check_real("start", q, 0) ** 2, check_real("start", w, 0) ** 2, 0.0, 0.0)


def _check_rates(lr_q: float, lr_w: float, lr_b: float) -> Rates:
    named = {"lr_q": lr_q, "lr_w": lr_w, "lr_b": lr_b}
    return Rates(*(check_real(name, value, 0) for name, value in named.items()))


def _record(samples: float, state: State, error: float) -> Training:
    q, w = (math.sqrt(max(x, 0.0)) for x in (state.query_square, state.readout_square))
    cosines = (m / size if size else 0.0 for m, size in ((state.query, q), (state.readout, w)))
    query_cos, readout_cos = (min(1.0, max(-1.0, float(cos))) for cos in cosines)
    return Training(samples, query_cos, readout_cos, q, w, state.overlap, state.bias, error)


def _trajectory(
    model: SparseTokens, times: Array, cloud: Cloud, loss: str, rates: Rates, state: State,
    accuracy: float,
) -> Array:  # fmt: skip
    """The fields of the records at the given times (times, 8)."""

    def far(_: float, x: Array) -> float:
        return _FAR**2 - x[2] - x[3]

    looks = 0

    def rate(t: float, x: Array) -> Array:
        nonlocal looks
        looks += 1
        if looks > _LOOKS or not np.isfinite(x).all():
            why = "moves too fast to be followed" if looks > _LOOKS else "diverges"
            raise ConvergenceError(f"descent {why} at samples = {t:.3g}; take smaller rates", [])
        with np.errstate(over="ignore", invalid="ignore"):  # the next look will see it
            return drift(State(*x), model, cloud, loss, rates)

    far.terminal = True  # type: ignore[attr-defined]
    end = float(times[-1])
    states = np.array([state])
    if end > 0:
        solved = solve_ivp(
            rate,
            (0.0, end), state, t_eval=times, rtol=accuracy, atol=accuracy / 100, events=far,
        )  # fmt: skip
        if not solved.success or solved.t_events[0].size:
            stop = float(solved.t_events[0][0]) if solved.t_events[0].size else float(solved.t[-1])
            before = zip(solved.t, (State(*x) for x in np.transpose(solved.y)), strict=True)
            raise ConvergenceError(
                f"descent diverges before samples = {stop:.3g}; take smaller rates",
                [_record(float(t), x, flow_error(x, model, cloud)) for t, x in before],
            )
        states = solved.y.T
    rows = zip(times, (State(*x) for x in states), strict=True)
    records = (_record(t, x, flow_error(x, model, cloud)) for t, x in rows)
    return np.array([[getattr(record, f.name) for f in fields(record)] for record in records])


@in_one_thread
def predict_training(
    model: SparseTokens,
    samples: Sequence[float],
    *,
    loss: str = "logistic",
    lr_q: float,
    lr_w: float,
    lr_b: float,
    start: Start = (0.1, 0.1),
    tolerance: float = 2e-3,
) -> list[Training]:
    """The limit d → ∞ of one-pass descent on query, readout and intercept together.

    Parameters
    ----------
    model : the token model
    samples : rising samples per dimension n/d ≥ 0 at which to look
    loss : "logistic" or "square"
    lr_q, lr_w, lr_b : η ≥ 0; a step moves by η/d times the gradient
    start : lengths (|q|, |w|) at directions that know nothing, with b = 0; or a record to go on
        from, with `samples` counted anew
    tolerance : largest estimated standard error of any number, relative to its size where that
        exceeds 1

    Returns
    -------
    one record for each of `samples`

    Raises
    ------
    ConvergenceError : with the best records, where the tolerance is not reached with the points
        that fit into memory; with those before, where the rates are so large that descent diverges

    Examples
    --------
    >>> model = SparseTokens(L=10, R=1, theta=4.0, pi=0.5)
    >>> for one in predict_training(model, [1, 4, 16], lr_q=3.0, lr_w=3.0, lr_b=3.0):
    ...     print(f"{one.samples:.0f} {one.query_cos:.2f} {one.test_error:.2f}")
    1 0.67 0.32
    4 0.73 0.13
    16 0.74 0.12
    """
    model, times = check_model(model), _check_samples(samples)
    loss = check_choice("loss", loss, ("logistic", "square"))
    rates, state = _check_rates(lr_q, lr_w, lr_b), _check_start(start)
    tolerance = check_real("tolerance", tolerance, 0, open_low=True)
    last = min(_LAST, int(math.log2(_ENTRIES / model.L)))
    if last < _FIRST:
        raise ValueError(f"L = {model.L} is not allowed: here L must be at most 4096")
    accuracy = tolerance / 20
    for bits in range(_FIRST, last + 1, 2):
        first, second = (
            _trajectory(
                model, times, sample_cloud(model, bits, 2 * bits + k), loss, rates, state, within
            )
            for k, within in enumerate((accuracy, accuracy / 10))
        )
        mean = (first + second) / 2
        size = np.maximum(1, np.abs(mean))
        size[:, 5] = size[:, 3] * size[:, 4]  # |q||w|, which bounds the overlap
        error = float(np.max(np.abs(first - second) / size)) / 2
        records = [Training(*map(float, row)) for row in mean]
        if error <= tolerance:
            return records
    raise ConvergenceError(
        f"the estimated error is {error:.1g}, more than tolerance = {tolerance:g}", records
    )
