"""Chapter 8: where descent begins to find the needle, when to stop, and how much to decay.

Searches in the limit d → ∞, one population a trial, so that trials give standard errors.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import count

import numpy as np
from scipy.optimize import minimize_scalar

from needle.data.tokens import SparseTokens
from needle.training.batch import State, check_rule, descend, fresh_error
from needle.training.worlds import Limit

Array = np.ndarray
Numbers = dict[str, float]
TOKENS = 200_000  # of a population


def states(
    model: SparseTokens, alpha: float, seed: int, last: int, rate: float, decay: float
) -> Iterator[State]:
    """Descent in one population of the limit, from starts of length 0.1."""
    bags = max(2000, min(TOKENS // model.L, 4000))
    world = Limit(model, alpha, bags, np.random.default_rng(seed), 3 + 2 * last)
    A = world.start((0.1, 0.1))
    rule = check_rule("logistic", rate, rate, rate, decay)
    for step, (state, _) in zip(count(), descend(world, State(A[:1], A[1:], 0.0), rule)):
        yield state
        if step == last:
            return


def finds(model: SparseTokens, alpha: float, seed: int) -> bool:
    """Whether the cosine of the query passes one half on the way: rates 1, no decay."""
    best = 0.0
    for state in states(model, alpha, seed, 60 + model.L, 1.0, 0.0):
        q = state.q[0]
        cos = float(q[0]) / math.sqrt(q @ q)
        best = max(best, cos)
        if best >= 0.5 or cos < best - 0.1:  # it forgets
            break
    return best >= 0.5


def passage(L: int, theta: float, rng: np.random.Generator) -> Numbers:
    """The bags per dimension at which descent begins to find the needle, by bisection to 1 %."""
    model, seed = SparseTokens(L, 1, theta, 0.5), int(rng.integers(2**31))
    low = high = math.log(4 * L / theta**4)
    if finds(model, math.exp(low), seed):
        while finds(model, math.exp(low := low - 0.4), seed):
            high = low
    else:
        while not finds(model, math.exp(high := high + 0.4), seed):
            low = high
    while high - low > 0.01:
        middle = (low + high) / 2
        low, high = (low, middle) if finds(model, math.exp(middle), seed) else (middle, high)
    return {"log alpha": (low + high) / 2}


def course(alpha: float, decay: float, seed: int) -> tuple[float, float]:
    """Least test error and its time: L = 20, θ = 5, rates ½; a parabola through three steps."""
    model, errors = SparseTokens(20, 1, 5.0, 0.5), list[float]()
    for state in states(model, alpha, seed, 120, 0.5, decay):
        q, w = state.q[0], state.w[0]
        errors.append(fresh_error(model, q, w, state.b))
        if len(errors) > 40 and errors[-1] > 1.2 * min(errors) + 0.005:
            break
    k = min(max(int(np.argmin(errors)), 1), len(errors) - 2)
    a, b, c = errors[k - 1 : k + 2]
    bend = a - 2 * b + c
    shift = (a - c) / (2 * bend) if bend > 0 else 0.0
    return b - (a - c) * shift / 4, (k + shift) / 2


def best_decay(alpha: float, rng: np.random.Generator, only: float | None = None) -> Numbers:
    """Golden section over the decay, of the least error on the way; and the same without decay.

    `only` at one decay: what one look of the search costs.
    """
    seed = int(rng.integers(2**31))
    if only is not None:
        return {"error": course(alpha, only, seed)[0]}
    found = minimize_scalar(
        lambda decay: course(alpha, decay, seed)[0],
        bracket=(0.05, 0.3), method="golden", options={"xtol": 0.02},
    )  # fmt: skip
    decay = float(found.x)
    error, when = course(alpha, decay, seed)
    plain, plain_when = course(alpha, 0.0, seed)
    return {
        "decay": decay, "error": error, "time": when, "plain error": plain,
        "plain time": plain_when, "half": course(alpha, decay / 2, seed)[0],
        "twice": course(alpha, 2 * decay, seed)[0],
    }  # fmt: skip
