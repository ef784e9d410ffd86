"""Boundaries and exponents against each other, against searches, and against errors at huge L."""

from __future__ import annotations

import math

import numpy as np
import pytest

from needle.data.tokens import SparseTokens
from needle.oracle.excess import excess_risk
from needle.oracle.exponents import RULES, detection_boundary, detection_exponent
from needle.oracle.rules import largest_token
from needle.oracle.straws import log_mean
from tests.oracle.typical import Sharp, sample_bags

TAUS = np.concatenate([np.geomspace(1e-3, 3, 3000), [0.5]])


@pytest.mark.parametrize("gamma", [0.0, 0.1, 2.0])
@pytest.mark.parametrize("beta", [0.52, 0.6, 0.76, 0.98, 1.0])
def test_the_best_sharpness_is_the_best_of_all(beta, gamma):
    """Boundary and exponent at τ = None are the extremes over given τ."""
    given = [detection_boundary("softmax", beta=beta, gamma=gamma, tau=t) for t in TAUS]
    best = detection_boundary("softmax", beta=beta, gamma=gamma)
    assert best == pytest.approx(min(given), rel=1e-3)
    assert best >= detection_boundary("bayes", beta=beta, gamma=gamma) - 1e-12
    for theta in (best + 0.3, best + 2):
        at = {"beta": beta, "gamma": gamma}
        grid = [detection_exponent("softmax", theta, tau=t, **at) for t in TAUS]
        found = detection_exponent("softmax", theta, **at)
        assert max(grid) <= found + 1e-9 and found == pytest.approx(max(grid), rel=0.02)


@pytest.mark.parametrize("R", [1, 2, 4, 10])
@pytest.mark.parametrize("gamma", [0.0, 0.5, 1.0])
def test_at_fixed_R_exponents_leave_0_at_the_boundary(R, gamma):
    for rule in RULES[1:]:
        edge = detection_boundary(rule, R=R, gamma=gamma)
        assert detection_exponent(rule, edge, R=R, gamma=gamma) == 0
        assert 0 < detection_exponent(rule, edge + 1e-3, R=R, gamma=gamma) < 1e-3
    bayes = detection_exponent("bayes", 2.5, R=R, gamma=gamma)
    largest = detection_exponent("largest", 2.5, R=R, gamma=gamma)
    assert detection_exponent("excess", 2.5, R=R, gamma=gamma) == bayes
    assert largest == pytest.approx(bayes) if R == 1 else largest < 0.97 * bayes
    u = math.sqrt(1 + gamma + largest)  # needles at u are as rare as a straw there
    assert R * (2.5 - u) ** 2 == pytest.approx(largest)
    share = [detection_exponent("excess", 2.5, R=R, gamma=gamma, tau=t) for t in (1.0, u)]
    assert share == pytest.approx([bayes, largest])


def test_many_needles_part_the_rules():
    at = {"beta": 0.6}
    assert [detection_boundary(rule, **at) for rule in RULES] == pytest.approx(
        [math.inf, 1 - math.sqrt(0.4), math.sqrt(0.1), math.sqrt(0.1), math.sqrt(0.1)]
    )
    assert detection_exponent("bayes", 0.5, **at) == math.inf
    assert [detection_exponent("softmax", 0.5, tau=t, **at) for t in (0.2, 0.3, 0.5)] == (
        pytest.approx([1.56, 0.734, 0.3225], abs=1e-3)
    )
    levels = np.linspace(0, 1.5, 3001)
    for beta in (0.55, 0.7, 0.8, 0.95):
        edges = [detection_boundary("excess", beta=beta, tau=t) for t in levels]
        assert min(edges) == pytest.approx(detection_boundary("bayes", beta=beta), abs=1e-3)
    assert detection_exponent("average", 0.3, beta=0.5, gamma=0.04) == pytest.approx(
        ((0.09 - 0.04) / 0.6) ** 2
    )
    for rule in ("average", "softmax", "excess", "bayes"):
        assert detection_exponent(rule, 0.3, beta=0.4, gamma=0.2) == math.inf


@pytest.mark.parametrize(("R", "theta", "gamma"), [(1, 1.5, 0.0), (2, 1.5, 0.5), (4, 1.6, 0.0)])
def test_exponents_are_slopes_of_errors(R, theta, gamma):
    """Between 10¹⁵⁰ and 10³⁰⁰ slopes are within 3 % above the exponent (a 10 % error is not)."""
    logs = []
    for k in (150, 300):
        a, pi = math.sqrt(2 * k * math.log(10)), min(0.5, 10 ** (-gamma * k / 2))
        model = SparseTokens(10**k, R, theta * a, pi)
        pair = largest_token(model).error, excess_risk(10.0**k, R, theta * a, pi, a).error
        logs.append(np.log(pair) - math.log(pi))
    slopes = (logs[0] - logs[1]) / (150 * math.log(10))
    for slope, rule in zip(slopes, ("largest", "excess"), strict=True):
        e = detection_exponent(rule, theta, R=R, gamma=gamma / 2)
        assert 0.995 * e < slope < 1.03 * e


def log_alarm_at_half_the_misses(L: float, beta: float, tau: float, theta: float) -> float:
    """log P₋(S > t), t the median of S in positives with L^{1−β} needles; straws and needles drawn.

    Misses fall faster than any power beyond the boundary, so this has the exponent of the error.
    """
    rng = np.random.default_rng(0)
    straws = Sharp(sample_bags(L, 1, theta, 0.5, 2000, rng), tau)
    needles = Sharp(sample_bags(L ** (1 - beta), 1, 0.0, 0.5, 2000, rng), tau)
    z, w = rng.standard_normal((2, 2000))
    lift = tau * (needles.peak + theta - straws.peak)
    down, up = np.exp(-np.maximum(lift, 0)), np.exp(np.minimum(lift, 0))
    shift = (straws.D + straws.wave[0] * z) * down
    shift += (needles.D + needles.wave[0] * w + theta * needles.S) * up
    eps = float(np.median(shift / (straws.S * down + needles.S * up)))
    return log_mean(straws.log_alarm(eps))


@pytest.mark.parametrize(
    ("beta", "tau", "theta"),
    [(0.6, 0.5, 0.5), (0.6, 0.3, 0.5), (0.6, 0.2, 0.5), (0.75, 0.3, 0.7), (0.9, 0.4, 1.2),
     (0.9, 0.8, 1.2)],
)  # fmt: skip
def test_one_loud_straw_has_the_exponent_of_a_softmax_with_many_needles(beta, tau, theta):
    """Slopes from 10⁷⁵ to 10¹⁵⁰ and to 10³⁰⁰; with rare positives γ + e is the same number."""
    logs = []
    for k in (75, 150, 300):
        a = math.sqrt(2 * k * math.log(10))
        logs.append(log_alarm_at_half_the_misses(10.0**k, beta, tau * a, theta * a))
    slopes = -np.diff(logs) / (np.array([75, 150]) * math.log(10))
    e = detection_exponent("softmax", theta, beta=beta, tau=tau)
    assert slopes == pytest.approx([e, e], rel=0.03)
    assert slopes[1] == pytest.approx(e, rel=0.01)  # nearer
    for gamma in (0.1, 0.2):
        rare = detection_exponent("softmax", theta, beta=beta, tau=tau, gamma=gamma)
        assert rare + gamma == pytest.approx(e)


@pytest.mark.parametrize(("beta", "gamma", "theta"), [(0.6, 0.0, 0.7), (0.75, 0.3, 0.9)])
def test_the_largest_token_has_its_exponent_with_many_needles(beta, gamma, theta):
    logs = []
    for k in (150, 300):
        a, pi = math.sqrt(2 * k * math.log(10)), 0.5 * 10 ** (-gamma * k)
        model = SparseTokens(10**k, round(10 ** (k * (1 - beta))), theta * a, pi)
        logs.append(math.log(largest_token(model).error / pi))
    e = detection_exponent("largest", theta, beta=beta, gamma=gamma)
    assert (logs[0] - logs[1]) / (150 * math.log(10)) == pytest.approx(e, rel=0.015)


@pytest.mark.parametrize(
    ("rule", "options", "name"),
    [
        ("tanh", {}, "rule"),
        ("bayes", {"R": 0}, "R"),
        ("bayes", {"R": 2, "beta": 0.7}, "R"),
        ("bayes", {"beta": 1.2}, "beta"),
        ("bayes", {"gamma": -0.1}, "gamma"),
        ("bayes", {"tau": 1.0}, "tau"),
        ("softmax", {"tau": -1.0}, "tau"),
        ("excess", {"tau": math.inf}, "tau"),
        ("softmax", {"theta": math.nan}, "theta"),
    ],
)
def test_bad_arguments_are_named(rule, options, name):
    theta = options.pop("theta", 1.0)
    with pytest.raises(ValueError, match=name):
        detection_exponent(rule, theta, **options)
