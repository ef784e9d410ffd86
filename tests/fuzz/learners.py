"""Cases of the best learner, of training, and of plans."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import strategies as st

import needle

from .case import PLAIN, Arguments, Case, guess, within
from .domains import ALPHA, ANY, FLAG, LOSS, Domain, decades, model, positive, whole


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


def is_descent(a: Arguments, found: list[Any]) -> None:
    """|cos| ≤ 1, errors in [0, 1], finite lengths, at every step that is asked for."""
    assert [at.step for at in found] == a["steps"]
    for at in found:
        within(at.test_error, 0, 1)
        within(at.query_cos, -1, 1, 1e-6)
        within(at.readout_cos, -1, 1, 1e-6)
        assert math.isfinite(at.query_norm) and math.isfinite(at.readout_norm)


def is_estimate(a: Arguments, found: Any) -> None:
    """|cos| ≤ 1."""
    within(found.cos, -1, 1, 1e-6)


RATE = Domain(decades(1e-6, 0.5), ANY.bad)
RATES = {"loss": LOSS, "lr_q": RATE, "lr_w": RATE, "lr_b": RATE}
BAGS = {
    "d": Domain(whole(5, 30).good, (0, -1, 2.5, "3")),
    "alpha": Domain(decades(1.0, 5.0), (0.0, -1.0)),
}
STEPS = Domain(st.sampled_from([[0], [0, 3], [2, 5]]), ([-1], "x", [], [0.5]))


SLOW = Domain(decades(1e-6, 1.0), ANY.bad)  # rates at which descent does not diverge

SMALL = model(longest=30, needles=3)

CASES = [
    Case(
        needle.predict_learning,
        {"model": model(longest=10**9, needles=40), "alpha": ALPHA, "informed": FLAG},
        is_learning,
        slow=True,
    ),
    Case(needle.learning_thresholds, {"model": model(needles=10)}, is_thresholds, slow=True),
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
        needle.predict_descent,
        {"model": SMALL, "alpha": positive(0.1, 20.0), "steps": STEPS, **RATES},
        is_descent,
        {"bags": 100, "populations": 2},
        slow=True,
    ),
    Case(
        needle.simulate_descent,
        {
            "model": SMALL,
            **BAGS,
            "steps": STEPS,
            **RATES,
        },
        is_descent,
        slow=True,
        draws=True,
    ),
    Case(
        needle.predict_training,
        {
            "model": SMALL,
            "samples": Domain(st.sampled_from([[1.0], [0.0, 2.0]]), ([-1.0], "x", [])),
            **RATES,
        },
        is_training,
        slow=True,
    ),
    Case(
        needle.simulate_learning,
        {
            "model": SMALL,
            **BAGS,
            "informed": FLAG,
        },
        is_estimate,
        {"rounds": 3, "fresh": 1},
        draws=True,
    ),
]
