"""Public functions that take numbers, what they may be given, and what every answer keeps.

A case is a function, the domain of each argument, and an invariant: bounds, a direction in which
the answer may only rise or fall, a symmetry, or a second route to the same number.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

import needle

from .domains import (
    ALPHA,
    ANY,
    COS,
    FLAG,
    LAW,
    LOSS,
    NOT_NUMBERS,
    PI,
    SHORT_LAW,
    THETA,
    Domain,
    chosen,
    decades,
    model,
    positive,
    whole,
)

Arguments = dict[str, Any]


class Case(NamedTuple):
    """`keeps` raises where the answer breaks its invariant, which is its docstring.

    `slow` : a call takes long enough that the short form has time for few
    """

    call: Callable[..., Any]
    domains: dict[str, Domain]
    keeps: Callable[[Arguments, Any], None]
    fixed: dict[str, Any] = {}  # noqa: RUF012
    slow: bool = False
    draws: bool = False

    def __hash__(self) -> int:
        return id(self)

    def __call__(self, **arguments: Any) -> Any:
        """The answer; who draws, draws from a generator of its own."""
        rng = {"rng": np.random.default_rng(0)} if self.draws else {}
        return self.call(**{**self.fixed, **rng, **arguments})

    @property
    def name(self) -> str:
        return str(getattr(self.call, "__qualname__", self.call))


def within(x: float, low: float, high: float, slack: float = 1e-9) -> None:
    assert low - slack * max(abs(low), 1e-300) <= x <= high + slack * max(abs(high), 1e-300), (
        f"{x!r} is not in [{low!r}, {high!r}]"
    )


def guess(pi: float) -> float:
    return min(pi, 1 - pi)


def is_alignment(a: Arguments, found: Any) -> None:
    """|cos| ≤ 1, that of w⁽¹⁾ is 1/√(1 + L/(απ²θ²R²)), that of q⁽²⁾ is 0 at θ = 0."""
    task = a["model"]
    within(found.query_cos, -1, 1)
    power = a["alpha0"] * (task.pi * task.theta * task.R) ** 2
    expected = math.sqrt(power / (power + task.L))
    assert abs(found.readout_cos - expected) <= 1e-9 * expected + 1e-300
    if task.theta == 0:
        assert found.query_cos == 0
    assert found.readout_norm >= 0
    assert found.query_norm >= 0


def is_draw(a: Arguments, found: Any) -> None:
    """|cos| ≤ 1 and lengths ≥ 0, whatever is drawn."""
    for name in ("readout_cos", "query_cos"):
        within(getattr(found, name), -1, 1)
    for name in ("readout_norm", "query_norm", "noise"):
        assert getattr(found, name) >= 0


def is_rate(a: Arguments, found: float) -> None:
    """log(π/(1−π))/(π−½), at least 4, the same for π and 1 − π; 1 for the square loss."""
    if a["loss"] == "square":
        assert found == 1
        return
    pi = a["pi"]
    assert found >= 4
    if abs(pi - 0.5) > 1e-3:
        two = (math.log(pi) - math.log1p(-pi)) / (pi - 0.5)
        assert abs(found / two - 1) < 1e-9
    mirrored = needle.calibrated_rate(1 - (1 - pi), loss=a["loss"])
    assert abs(needle.calibrated_rate(1 - pi) / mirrored - 1) < 1e-9


def is_boundary(a: Arguments, found: float) -> None:
    """At least √(2 log L), which the best τ reaches; log L/(cτ) + cτ/2 below it."""
    best = needle.critical_theta(a["L"])
    assert found >= best * (1 - 1e-12)
    assert math.isfinite(found)


def is_oracle(a: Arguments, found: Any) -> None:
    """0 ≤ error ≤ min(π, 1−π) (+ 5 standard errors), never below Bayes' error."""
    task = a["model"]
    slack = 5 * found.standard_error + 1e-12
    within(found.error, 0, guess(task.pi) * (1 + 1e-9) + slack)
    assert found.standard_error >= 0


def is_limit(a: Arguments, found: Any) -> None:
    """0 ≤ error ≤ min(π, 1−π), and closed forms only fall when θ grows."""
    task = a["model"]
    within(found.error, 0, guess(task.pi))
    stronger = needle.SparseTokens(task.L, task.R, 2 * task.theta + 1e-3, task.pi)
    assert needle.predict_error(a["kind"], stronger).error <= found.error * (1 + 1e-6) + 1e-300


def is_required(a: Arguments, found: Any) -> None:
    """The limit's error at the θ found is the error asked for."""
    theta, uncertain = found
    task = needle.SparseTokens(a["L"], a["R"], theta, a["pi"])
    assert uncertain == 0
    assert abs(needle.predict_error(a["kind"], task).error / a["error"] - 1) < 2e-3


def is_bayes(a: Arguments, found: Any) -> None:
    """0 ≤ error ≤ min(π, 1−π), never above that of averages, and only falls with the strength."""
    task, strength = a["model"], a["strength"]
    within(float(found), 0, guess(task.pi))
    at = needle.SparseTokens(task.L, task.R, strength, task.pi)
    if strength > 0:
        worst = needle.oracle_error("pooled", at).error
        assert found <= worst * 1.05 + 1e-9
        more = float(needle.bayes_error(task, 1.3 * strength))
        assert more <= float(found) * 1.05 + 1e-9


def is_one_needle(a: Arguments, found: float) -> None:
    """0 ≤ error ≤ min(π, 1−π), and within 5 % of the other route, `bayes_error`."""
    within(found, 0, guess(a["pi"]), 1e-6)
    task = needle.SparseTokens(a["L"], 1, a["theta"], a["pi"])
    other = float(needle.bayes_error(task, a["theta"]))
    assert abs(found - other) <= 0.05 * other + 1e-6 * guess(a["pi"])


def is_learning(a: Arguments, found: Any) -> None:
    """0 ≤ cos ≤ 1, error ≤ min(π, 1−π); from the truth no less than from nothing; rises with α."""
    task, alpha = a["model"], a["alpha"]
    within(found.cos, 0, 1)
    within(found.test_error, 0, guess(task.pi))
    if not a["informed"]:
        assert needle.predict_learning(task, alpha, informed=True).cos >= found.cos * (1 - 1e-6)
        assert needle.predict_learning(task, 2 * alpha).cos >= found.cos * (1 - 1e-6)


def is_thresholds(a: Arguments, found: Any) -> None:
    """lower ≤ information ≤ algorithm (or all nan), and π·threshold does not depend on π."""
    values = found.lower, found.information, found.algorithm
    if all(math.isnan(x) for x in values):
        return
    assert values[0] * (1 - 1e-6) <= values[1] <= values[2] * (1 + 1e-6)
    task = a["model"]
    half = needle.learning_thresholds(needle.SparseTokens(task.L, task.R, task.theta, 0.5))
    if math.isfinite(values[2]):
        assert abs(values[2] * task.pi / (half.algorithm / 2) - 1) < 1e-6


def is_readout(a: Arguments, found: Any) -> None:
    """Errors in [0, 1]; loss + λ|w|²/2 ≤ the loss of w = 0, b = 0; |⟨w, ξ⟩| ≤ |w|."""
    within(found.test_error, 0, 1)
    within(found.train_error, 0, 1)
    start = math.log(2) if a["loss"] == "logistic" else 0.5
    ridge = a["lam"] * found.norm**2 / 2
    assert found.train_loss >= -1e-12
    assert found.train_loss + ridge <= start * (1 + 1e-5)
    assert abs(found.signal) <= found.norm * (1 + 1e-6) + 1e-12


def is_reuse(a: Arguments, found: Any) -> None:
    """Errors in [0, 1], a loss no larger than that of w = 0, all finite."""
    within(found.test_error, 0, 1, 1e-3)
    within(found.train_loss, 0, math.log(2) if a["loss"] == "logistic" else 0.5, 1e-3)
    assert math.isfinite(found.norm)


def is_capacity(a: Arguments, found: float) -> None:
    """At least 1 (in general position αd ≤ d points are separable), perhaps infinite."""
    assert found >= 1 - 1e-6


def is_margin(a: Arguments, found: Any) -> None:
    """The largest margin only falls with α, by two calls; it is finite."""
    value = found.margin
    assert math.isfinite(value)
    more = needle.predict_margin(a["law"], 1.5 * a["alpha"]).margin
    assert more <= value * (1 + 1e-4) + 1e-6


def is_law(a: Arguments, found: Any) -> None:
    """Weights of a law add up to one, each label has its share; 0 < r ≤ 1 (1.05 at corners)."""
    y, _, _, r, weight = found.nodes
    assert abs(weight.sum() - 1) < 1e-9
    assert abs(weight[y > 0].sum() - a["model"].pi) < 1e-9
    assert np.isfinite(np.concatenate(found.nodes[1:])).all()
    assert r.max() <= 1.3


def is_plan(a: Arguments, found: Any) -> None:
    """Errors in [0, max(π, 1−π)], the best never above always-no, AUC and recall in [0, 1]."""
    for row in found.rows:
        assert row.silent == guess(a["pi"])
        within(row.best_possible, 0, row.silent, 1e-6)
        for error in (row.pooled, row.attention, row.twice):
            if error is not None:
                within(error, 0, max(a["pi"], 1 - a["pi"]), 1e-3)
        for value in (*row.auc.values(), *row.recall.values()):
            within(value, 0, 1)


def is_training(a: Arguments, found: Any) -> None:
    """|cos| ≤ 1 and errors in [0, 1] at every step."""
    for at in found:
        within(at.test_error, 0, 1)
        within(at.query_cos, -1, 1, 1e-6)
        within(at.readout_cos, -1, 1, 1e-6)


def is_transfer(a: Arguments, found: Any) -> None:
    """Errors in [0, 1]."""
    within(found.test_error, 0, 1)


PLAIN = {"loss": LOSS, "lr_w": positive(1e-6, 1e3), "lr_b": ANY}
LARGE = Domain(decades(1e-8, 1e8), (0.0, -1.0, *NOT_NUMBERS))  # and infinite
SLOW = Domain(decades(1e-6, 1.0), ANY.bad)  # rates at which descent does not diverge
RIDGE = Domain(decades(1e-8, 1e8), (-1.0, *NOT_NUMBERS))
SMALL = model(longest=30, needles=3)
CASES = [
    Case(needle.predict_alignment, {"model": model(), "alpha0": ALPHA, **PLAIN}, is_alignment),
    Case(
        needle.simulate_alignment,
        {
            "model": model(),
            "d": whole(1, 100),
            "alpha0": Domain(decades(1.0, 10.0), (0.0, -1.0)),
            **PLAIN,
        },
        is_draw,
        draws=True,
    ),
    Case(needle.calibrated_rate, {"pi": PI, "loss": LOSS}, is_rate),
    Case(
        needle.critical_theta,
        {
            "L": Domain(decades(1.1, 1e300), (1.0, 0, -1, math.inf, math.nan, "3")),
            "tau": Domain(decades(1e-6, 1e6), (0.0, -1.0, math.nan, "1")),
            "criterion": chosen("weight", "error"),
        },
        is_boundary,
    ),
    Case(
        needle.oracle_error,
        {
            "kind": chosen("pooled", "vectorized", "attention", "bayes", "elementwise"),
            "model": model(needles=8),
        },
        is_oracle,
        {"trials": 200},
        slow=True,
        draws=True,
    ),
    Case(
        needle.predict_error,
        {"kind": chosen("pooled", "vectorized", "bayes"), "model": model()},
        is_limit,
    ),
    Case(
        needle.required_theta,
        {
            "kind": chosen("pooled", "bayes"),
            "L": whole(2, 10**9),
            "error": Domain(decades(1e-6, 0.4999), (0.0, -1.0, 1.0, math.nan, "1")),
            "R": Domain(st.sampled_from([1, 2]), (0, 1.5, 10**10)),
            "pi": Domain(st.sampled_from([0.5, 0.5]), (0.0, 1.0)),
        },
        is_required,
    ),
    Case(
        needle.bayes_error,
        {
            "model": model(longest=10**6, needles=60),
            "strength": Domain(THETA.good, (-1.0, math.nan, "3", None)),
        },
        is_bayes,
        slow=True,
    ),
    Case(
        needle.one_needle_bayes_error,
        {
            "L": Domain(whole(2, 10**9).good, (1, 0, -1, math.inf, math.nan, "3")),
            "theta": positive(1e-6, 1e6),
            "pi": PI,
        },
        is_one_needle,
        slow=True,
    ),
    Case(
        needle.predict_learning,
        {"model": model(longest=10**9, needles=40), "alpha": ALPHA, "informed": FLAG},
        is_learning,
        slow=True,
    ),
    Case(needle.learning_thresholds, {"model": model(needles=10)}, is_thresholds, slow=True),
    Case(
        needle.predict_readout,
        {"law": LAW, "alpha": LARGE, "lam": RIDGE, "loss": LOSS},
        is_readout,
        slow=True,
    ),
    Case(
        needle.simulate_readout,
        {
            "law": SHORT_LAW,
            "d": whole(1, 30),
            "alpha": Domain(decades(1.0, 10.0), (0.0, -1.0)),
            "lam": RIDGE,
            "loss": chosen("square"),
        },
        is_readout,
        draws=True,
    ),
    Case(
        needle.predict_reuse,
        {
            "model": SMALL,
            "alpha": positive(1e-3, 1e3),
            "lam": positive(1e-4, 1e4),
            "temperature": positive(1e-2, 30.0),
            **PLAIN,
        },
        is_reuse,
        slow=True,
    ),
    Case(needle.predict_capacity, {"law": LAW}, is_capacity, slow=True),
    Case(needle.predict_margin, {"law": LAW, "alpha": positive(1e-2, 1e2)}, is_margin, slow=True),
    Case(needle.pooled, {"model": model()}, is_law),
    Case(
        needle.attention,
        {
            "model": model(),
            "temperature": Domain(decades(1e-6, 1e3), (-1.0, *NOT_NUMBERS)),
            "cos": COS,
        },
        is_law,
        {"resolution": 96, "bits": 9},
    ),
    Case(
        needle.plan,
        {
            "L": whole(2, 10**9),
            "R": Domain(st.sampled_from([1, 2]), (0, 1.5, 10**10)),
            "d": whole(2, 10**6),
            "n": whole(4, 10**7),
            "pi": Domain(st.floats(0.25, 0.75), (0.0, 1.0, 1e-12)),
            "theta": Domain(decades(1e-6, 1e6), (0.0, -1.0, math.nan, "3", [], [0.0])),
            "loss": LOSS,
        },
        is_plan,
        slow=True,
    ),
    Case(
        needle.simulate_training,
        {
            "model": SMALL,
            "d": whole(5, 30),
            "lr_q": SLOW,
            **{**PLAIN, "lr_w": SLOW, "lr_b": SLOW},
            "samples": Domain(st.sampled_from([[1.0], [0.0, 2.0]]), ([-1.0], "x", [])),
        },
        is_training,
        {"method": "exact"},
        draws=True,
    ),
    Case(
        needle.predict_transfer,
        {"law": LAW, "test": LAW, "alpha": LARGE, "lam": RIDGE, "loss": LOSS},
        is_transfer,
        slow=True,
    ),
]
