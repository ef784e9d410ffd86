"""Cases of rules that know the needle."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import strategies as st

import needle

from .case import Arguments, Case, guess, within
from .domains import HOPS, PI, THETA, Domain, chosen, decades, model, positive, whole


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


def is_edge(a: Arguments, found: float) -> None:
    """≥ 0, no lower for rarer positives, and never below that of Bayes."""
    assert found >= 0
    rarer = needle.detection_boundary(**{**a, "gamma": a["gamma"] + 0.5})
    assert rarer >= found * (1 - 1e-12)
    best = {key: a[key] for key in ("beta", "gamma")}
    assert found >= needle.detection_boundary("bayes", **best) * (1 - 1e-9) - 1e-12


def is_exponent(a: Arguments, found: float) -> None:
    """0 up to the boundary; rises with θ̂; never above that of Bayes."""
    rest = {key: a[key] for key in ("beta", "gamma")}
    assert found >= 0
    if a["theta"] < needle.detection_boundary(a["rule"], **rest) * (1 - 1e-12):
        assert found == 0
    stronger = needle.detection_exponent(a["rule"], 1.5 * a["theta"] + 1e-9, **rest)
    assert stronger >= found * (1 - 1e-9)
    assert found <= needle.detection_exponent("bayes", a["theta"], **rest) * (1 + 1e-9) + 1e-12


def is_longest(a: Arguments, found: Any) -> None:
    """0 ≤ error ≤ min(π, 1−π), and no larger for a needle three times as long."""
    task = a["model"]
    within(found.error, 0, guess(task.pi))
    longer = needle.SparseTokens(task.L, task.R, 3 * task.theta, task.pi)
    assert needle.longest_token_error(longer, a["d"]).error <= found.error * (1 + 1e-6) + 1e-12


def is_hop(a: Arguments, found: float) -> None:
    """In [0, ½] for queries on the right side; ½ when the value says nothing."""
    within(found, 0, 0.5, 1e-6)
    mute = needle.two_hop_error(**{**a, "theta": (*a["theta"][:2], 0.0)})
    assert abs(mute - 0.5) < 1e-9


def is_layer(a: Arguments, found: float) -> None:
    """In [0, ½], no larger with one head more; Φ(−θ₂) once all directions are seen."""
    within(found, 0, 0.5)
    assert (
        needle.one_layer_bound(a["m"], a["theta2"], a["heads"] + 1) <= found * (1 + 1e-12) + 1e-307
    )
    whole_sight = needle.one_layer_bound(a["m"], a["theta2"], a["m"])
    told = math.erfc(a["theta2"] / math.sqrt(2)) / 2
    assert abs(whole_sight - told) <= 1e-9 * whole_sight + 1e-307  # below it doubles lose digits


def is_weight(a: Arguments, found: float) -> None:
    """A weight, in [0, 1]."""
    within(found, 0, 1)


NOISE = needle.sample_noise(100, 2, 500, np.random.default_rng(0))
RULE = chosen("average", "largest", "softmax", "excess", "bayes")
BETA = Domain(st.one_of(st.sampled_from([0.0, 0.5, 0.75, 1.0]), st.floats(0, 1)), (-0.1, 1.1, "1"))
GAMMA = Domain(st.one_of(st.just(0.0), decades(1e-6, 1e3)), (-1.0, math.nan, "0"))

CASES = [
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
    Case(needle.detection_boundary, {"rule": RULE, "beta": BETA, "gamma": GAMMA}, is_edge),
    Case(
        needle.detection_exponent,
        {"rule": RULE, "theta": THETA, "beta": BETA, "gamma": GAMMA},
        is_exponent,
    ),
    Case(
        needle.longest_token_error, {"model": model(), "d": whole(1, 10**6)}, is_longest, slow=True
    ),
    Case(
        needle.two_hop_error,
        HOPS,
        is_hop,
        slow=True,
    ),
    Case(
        needle.one_layer_bound,
        {
            "m": whole(2, 10**6),
            "theta2": Domain(decades(1e-6, 1e3), (-1.0, math.inf, "3")),
            "heads": whole(1, 10**6),
        },
        is_layer,
    ),
    Case(
        needle.needle_weight,
        {
            "model": Domain(
                decades(1e-3, 1e3).map(lambda x: needle.SparseTokens(100, 2, x, 0.5)),
                (None, "model"),
            ),
            "tau": Domain(decades(1e-6, 1e3), (-1.0, math.nan, "1")),
        },
        is_weight,
        {"noise": NOISE},
    ),
]
