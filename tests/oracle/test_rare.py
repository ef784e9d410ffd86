"""Errors that are rare against literal tokens: one by one, and by the likelihood ratio.

A statistical test compares at |z| < 4.5 (two-sided 7e-6), and shows that a constant 10 % off is
farther away.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import log_ndtr, ndtr

from needle.data.tokens import SparseTokens
from needle.oracle.bayes import bayes_risk
from needle.oracle.contour import Verdict
from needle.oracle.detection import one_needle_bayes_error
from needle.oracle.excess import excess_risk
from needle.oracle.exponents import detection_exponent
from needle.oracle.rules import largest_token, two_gaussians
from needle.oracle.separation import oracle_error
from needle.oracle.soft import Softmax, soft_risk
from needle.oracle.straws import log_between, sample_straws
from tests.oracle.lattice import Tokens, short_risk
from tests.oracle.typical import Sharp, sample_bags

Z = 4.5


def rng(*seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def literal(L: int, R: int, theta: float, n: int, seed: int):
    """Heights of n negatives and n positives, in blocks."""
    generator, step = rng(seed), max(1, 2**21 // L)
    for start in range(0, n, step):
        h = generator.standard_normal((2, min(step, n - start), L))
        h[1, :, :R] += theta
        yield h


def z_of(found: float, error: float, shares: np.ndarray) -> tuple[float, float]:
    """z of a value with its standard error against literal draws; the same for it 10 % larger."""
    spread = math.hypot(error, shares.std(ddof=1) / math.sqrt(len(shares)))
    return (found - shares.mean()) / spread, (1.1 * found - shares.mean()) / spread


def verdict(L, R, theta, tau, t):
    """log P(S ≤ t), log P(S > t) of a softmax, by the contour."""
    return Verdict(L, R, theta, tau, t - tau).logs()


# ------------------------------------------------------------------------------ the Bayes error


@pytest.mark.false_alarm(7e-6)
@pytest.mark.parametrize(
    ("L", "R", "theta", "pi"),
    [
        (100, 1, 5, 1e-6),
        (100, 2, 4, 1e-4),
        (60, 4, 3.0, 1e-3),
        (12, 3, 3.0, 0.6),
        (90, 10, 3, 1e-8),
    ],
)
def test_bayes_risk_is_the_mean_of_literal_likelihood_ratios(L, R, theta, pi):
    """ε/π = E₊ min(1, k/Λ) with e_R of all tokens, one after the other."""
    shares = []
    for h in literal(L, R, theta, 20_000 if pi < 0.5 else 60_000, 1):
        x = np.exp(theta * h[1] - theta**2 / 2)
        e = np.zeros((R + 1, len(x)))
        e[0] = 1
        for token in x.T:
            e[1:] += token * e[:-1]
        shares.append(np.minimum(1, (1 - pi) / pi * math.comb(L, R) / e[R]))
    found = bayes_risk(L, R, theta, pi, rng(2))
    z, off = z_of(found.error / pi, found.standard_error / pi, np.concatenate(shares))
    assert abs(z) < Z < abs(off)


@pytest.mark.parametrize(("pi", "expected"), [(1e-6, 0.913), (1e-4, 0.674)])
def test_the_two_calculators_of_one_needle_agree_at_rare_positives(pi, expected):
    """At (100, 5): shares of π computed elsewhere; the old ones gave 0.4, and below zero."""
    model = SparseTokens(100, 1, 5.0, pi)
    sampled = oracle_error("bayes", model, rng=rng(3))
    exact = one_needle_bayes_error(100, 5.0, pi)
    assert exact / pi == pytest.approx(expected, abs=0.003)
    assert sampled.error / pi == pytest.approx(expected, abs=0.003)
    assert sampled.error <= pi and exact <= pi


@pytest.mark.parametrize("pi", [0.3, 0.5, 0.7])
@pytest.mark.parametrize(("L", "theta"), [(10, 3.0), (1000, 5.0), (1e6, 6.0), (1e40, 14.0)])
def test_typical_bags_agree_with_the_contour_integral(L, theta, pi):
    found = bayes_risk(L, 1, theta, pi, rng(4), 20_000)
    assert found.error == pytest.approx(one_needle_bayes_error(L, theta, pi), rel=0.01)


@pytest.mark.parametrize(("L", "theta"), [(1e3, 20.0), (1e3, 30.0), (1e5, 14.0), (1e300, 70.0)])
def test_one_needle_deep_down_is_the_largest_token(L, theta):
    """The largest token is as good as Bayes to a few per cent where both are tiny."""
    exact = one_needle_bayes_error(L, theta)
    largest = largest_token(SparseTokens(int(L), 1, theta, 0.5)).error
    assert 0.9 * largest < exact < 1.001 * largest


# ----------------------------------------------------------------------------------- attention


@pytest.mark.slow
@pytest.mark.false_alarm(1.4e-5)
@pytest.mark.parametrize(
    ("L", "R", "theta", "tau", "t"),
    [
        (1000, 1, 5.0, 2.0, 2.4),
        (1000, 10, 3.2, 1.0, 1.15),
        (100, 4, 3.2, 1.0, 1.5),
        (10, 4, 2.5, 0.5, 1.1),
        (1000, 4, 4.0, 3.2, 3.4),
        (300, 2, 3.5, 0.6, 0.75),
    ],
)
def test_false_alarms_and_misses_are_those_of_literal_tokens(L, R, theta, tau, t):
    wrong = [[], []]
    for h in literal(L, R, theta, 16_000, 5):
        weight = np.exp(tau * (h - h.max(axis=2, keepdims=True)))
        S = (weight * h).sum(axis=2) / weight.sum(axis=2)
        wrong[0].append(S[0] > t)
        wrong[1].append(S[1] <= t)
    tails = verdict(L, 0, theta, tau, t)[1], verdict(L, R, theta, tau, t)[0]
    for log_tail, literal_ones in zip(tails, wrong, strict=True):
        z, _ = z_of(math.exp(log_tail), 0.0, np.concatenate(literal_ones).astype(float))
        assert abs(z) < Z


@pytest.mark.parametrize(
    ("L", "R", "theta", "tau", "t"),
    [(1000, 1, 5.0, 2.0, 2.4), (1000, 10, 3.5, 1.0, 1.22), (10, 4, 3.0, 0.5, 1.2),
     (1000, 4, 4.5, 2.9, 3.2), (10**6, 4, 6.8, 1.8, 2.0), (10**6, 1, 6.8, 4.2, 4.84),
     (10**4, 2, 5.6, 3.2, 4.3), (10**6, 1, 6.8, 3.4, 4.0), (10**6, 10, 8.0, 3.4, 8.0)],
)  # fmt: skip
def test_a_sum_on_a_lattice_is_the_contour_integral(L, R, theta, tau, t):
    """Two roads to P₋(Y > 0) and P₊(Y ≤ 0) that share nothing but y."""
    tokens = Tokens(L, R, theta, tau)
    assert verdict(L, 0, theta, tau, t)[1] == pytest.approx(tokens.log_alarm(t), abs=3e-3)
    assert verdict(L, R, theta, tau, t)[0] == pytest.approx(tokens.log_miss(t), abs=3e-3)


def two_tokens(R, theta, tau, t):
    """log P(S ≤ t), log P(S > t) of two tokens: m + d/2·tanh(τd/2), m and d independent."""
    d = np.linspace(-60, 60, 120_001)
    log_p = -((d - theta * (R == 1)) ** 2) / 4 + math.log((d[1] - d[0]) / math.sqrt(4 * math.pi))
    x = math.sqrt(2) * (t - d / 2 * np.tanh(tau * d / 2) - theta * R / 2)
    return tuple(float(np.logaddexp.reduce(log_p + log_ndtr(side * x))) for side in (1, -1))


@pytest.mark.parametrize(
    ("R", "theta", "tau", "t"),
    [(0, 0, 0.3, 8.0), (0, 0, 0.9, 4.0), (0, 0, 0.9, 6.0), (0, 0, 0.1, 3.0), (1, 6, 1.0, 1.0),
     (1, 4, 0.15, 5.0), (2, 3, 0.5, 0.0), (2, 4, 1.0, -1.0)],
)  # fmt: skip
def test_two_tokens_have_their_exact_tails(R, theta, tau, t):
    """Down to e^-39, where others' pull is not the same in any two bags."""
    exact, found = two_tokens(R, theta, tau, t), verdict(2, R, theta, tau, t)
    rare = int(exact[1] < exact[0])
    assert found[rare] == pytest.approx(exact[rare], abs=2e-3)


@pytest.mark.false_alarm(2.1e-5)
@pytest.mark.parametrize(
    ("L", "tau", "t"), [(5, 1.06, 6.5458), (10, 1.0, 5.7503), (30, 1.3, 4.6919)]
)
def test_rare_alarms_of_short_bags_are_those_of_weighted_tokens(L, tau, t):
    """One token is raised to t and the bag weighed: 10⁻¹⁰, 10⁻⁸ and 10⁻⁵ to half a per cent."""
    h = rng(17, L).standard_normal((100_000, L))
    h[:, 0] += t
    share = np.exp(tau * (h - h.max(axis=1, keepdims=True)))
    S = (share * h).sum(axis=1) / share.sum(axis=1)
    weight = (t < S) * L / np.exp(t * h - t * t / 2).sum(axis=1)
    z, off = z_of(1.0, 0.0, weight / math.exp(verdict(L, 0, 0.0, tau, t)[1]))
    assert abs(z) < Z < off


@pytest.mark.parametrize(
    ("L", "theta", "pi", "tau"),
    [(1e9, 51.5, 0.5, 0.395), (1e9, 51.5, 0.5, 2.0), (1e9, 51.5, 0.5, None),
     (4.22e13, 46.03, 0.089, 1.345), (2.13e13, 24.77, 0.0064, None), (8e288, 42.81, 1.6e-6, 92.8),
     (4.7e149, 20.34, 5.6e-5, 30.08), (305e9, 30.25, 2.4e-8, 1.33), (2.2e277, 70.35, 2.3e-6, None)],
)  # fmt: skip
def test_attention_to_one_needle_is_never_below_bayes(L, theta, pi, tau):
    """Errors down to 10⁻¹⁵³ to 1 %, soft and frozen; the best of sharpnesses is Bayes there."""
    exact, found = one_needle_bayes_error(L, theta, pi), soft_risk(L, 1, theta, pi, tau).error
    assert found > 0.99 * exact
    if tau is None:
        assert found < 1.01 * exact


def at_the_wall(L, R, share, theta_share):
    """Strength, sharpness and a threshold near the best one; all in units of √(2 log L)."""
    unit = math.sqrt(2 * math.log(L))
    softmax = Softmax(L, R, theta_share * unit, 0.5, share * unit, 0.05)
    return softmax.theta, softmax.tau, softmax.tau + softmax.threshold(softmax.best()[1])


BEYOND = [
    (1e7, 1, 0.4, 1.3), (1e7, 10, 0.35, 1.0), (1e9, 2, 0.5, 1.2), (1e12, 4, 0.7, 1.1),
    (1e12, 10, 0.3, 1.1), (1e50, 2, 0.3, 1.2), (1e50, 10, 0.3, 1.15), (1e300, 1, 0.6, 1.02),
    (1e300, 4, 0.4, 1.03), (1e300, 10, 1.0, 0.98),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.false_alarm(1.4e-5)
@pytest.mark.parametrize(("L", "R", "share", "theta_share"), BEYOND)
def test_beyond_a_million_tokens_the_contour_is_the_mean_over_typical_bags(
    L, R, share, theta_share
):
    """Where no lattice goes; what is 10 % off is seen wherever bags are good to 2.5 %."""
    theta, tau, t = at_the_wall(L, R, share, theta_share)
    bags = Sharp(sample_bags(L, R, theta, 0.5, 60_000 if R > 4 else 20_000, rng(16)), tau)
    for exact, log_shares in (
        (verdict(L, 0, theta, tau, t)[1], bags.log_alarm(t - tau)),
        (verdict(L, R, theta, tau, t)[0], bags.log_miss(t - tau)),
    ):
        z, off = z_of(1.0, 0.0, np.exp(log_shares - exact))
        assert abs(z) < Z and abs(off) > 2.5


@pytest.mark.parametrize("L", [30, 10**3, 10**4, 10**6])
def test_one_needle_at_the_best_sharpness_lies_between_bayes_and_the_largest_token(L):
    for theta, pi in (
        (math.sqrt(2 * math.log(L)) + 1, 0.5),
        (math.sqrt(2 * math.log(L)) + 3, 1e-3),
    ):
        model = SparseTokens(L, 1, theta, pi)
        largest, found = largest_token(model).error, soft_risk(L, 1, theta, pi, None).error
        assert 0.9995 * one_needle_bayes_error(L, theta, pi) <= found <= largest * (1 + 1e-9)
        assert found < 1.02 * one_needle_bayes_error(L, theta, pi)


@pytest.mark.parametrize(
    ("L", "R", "theta", "pi"),
    [(10**6, 4, 6.8, 0.5), (10**6, 10, 6.0, 1e-8), (10**4, 10, 2.14, 0.5), (1000, 10, 3.5, 0.5),
     (100, 50, 1.26, 0.07), (30, 10, 3.5, 1e-4), (10, 5, 2.3, 1e-3), (3, 3, 1.7, 0.05)],
)  # fmt: skip
def test_in_shorter_bags_both_calculators_of_attention_agree(L, R, theta, pi):
    """At a given sharpness, and at the best one of each."""
    unit = math.sqrt(2 * math.log(L))
    for tau in (0.4 * unit, None):
        exact = short_risk(L, R, theta, pi, tau).error
        assert soft_risk(L, R, theta, pi, tau).error == pytest.approx(exact, rel=0.01)


@pytest.mark.parametrize(("R", "gamma"), [(1, 0.0), (2, 0.0), (2, 0.5), (4, 0.0)])
def test_frozen_attention_is_the_largest_token_at_any_length(R, gamma):
    """At τ = 2√(2 log L) and L = 10²⁰⁰, errors down to 10⁻¹⁷⁰."""
    a = math.sqrt(400 * math.log(10))
    theta, pi = 1.5 * a, min(0.5, 10.0 ** (-200 * gamma))
    found = soft_risk(1e200, R, theta, pi, 2 * a)
    largest = largest_token(SparseTokens(10**200, R, theta, pi)).error
    assert found.error == pytest.approx(largest, rel=0.1)


@pytest.mark.slow
def test_soft_attention_has_the_exponent_of_its_bulk():
    """τ̂ = 0.3, R = 2, θ̂ = 1.5: the slope from 10¹⁵⁰ to 10³⁰⁰ against R(θ̂ − τ̂ − 1/4τ̂)²."""
    logs = []
    for k in (150, 300):
        a = math.sqrt(2 * k * math.log(10))
        logs.append(math.log(soft_risk(10.0**k, 2, 1.5 * a, 0.5, 0.3 * a).error))
    slope = (logs[0] - logs[1]) / (150 * math.log(10))
    e = detection_exponent("softmax", 1.5, R=2, tau=0.3)
    assert 0.98 * e < slope < 1.03 * e


def test_attention_at_next_to_no_sharpness_is_averaging():
    for theta, pi in ((12.0, 0.5), (20.0, 1e-8)):
        averaged = two_gaussians(theta * 10 / math.sqrt(1000), pi).error
        assert soft_risk(1000, 10, theta, pi, 1e-4).error == pytest.approx(averaged, rel=1e-9)
        exact = short_risk(1000, 10, theta, pi, 1e-3).error  # by some per cent better
        assert soft_risk(1000, 10, theta, pi, 1e-3).error == pytest.approx(exact, rel=2e-3)


# ----------------------------------------------------------------------------- the excess rule


@pytest.mark.slow
@pytest.mark.false_alarm(7e-6)
@pytest.mark.parametrize(
    ("L", "R", "theta", "pi", "share"),
    [(1000, 2, 4.5, 0.5, 1.0), (1000, 10, 3.2, 0.4, 0.6), (1000, 10, 3.2, 0.5, 0.3),
     (10, 4, 2.5, 0.5, 0.3), (300, 1, 4.0, 0.2, 0.9)],
)  # fmt: skip
def test_the_lattice_is_the_excess_of_literal_tokens(L, R, theta, pi, share):
    level, wrong = share * math.sqrt(2 * math.log(L)), []
    found = excess_risk(L, R, theta, pi, level)
    for h in literal(L, R, theta, 10_000, 10):
        T = np.where(h > level, h * h - level**2, 0.0).sum(axis=2)
        wrong.append((1 - pi) * (T[0] > found.threshold) + pi * (T[1] <= found.threshold))
    z, off = z_of(found.error, 0.0, np.concatenate(wrong))
    assert abs(z) < Z < abs(off) + 2.5


def test_the_excess_of_one_straw_is_a_tail():
    """Far above √(2 log L) at most one straw is there: T > c is h > √(t² + c)."""
    L, level, theta = 1e100, 1.3 * math.sqrt(200 * math.log(10)), 42.0
    found = excess_risk(L, 1, theta, 0.5, level)
    edge = math.sqrt(level**2 + found.threshold)
    plain = 0.5 * (ndtr(edge - theta) + L * ndtr(-edge))
    assert found.error == pytest.approx(plain, rel=0.02)


# --------------------------------------------------------------------------------- all together


@pytest.mark.slow
@pytest.mark.parametrize(
    ("L", "R", "pi"),
    [(12, 4, 1e-8), (10**3, 10, 0.5), (10**9, 2, 1e-8), (10**9, 10, 0.5), (10**50, 1, 1e-8),
     (10**300, 4, 0.5), (10**300, 10, 1e-8)],
)  # fmt: skip
def test_every_rule_answers_from_10_to_10_to_the_300(L, R, pi):
    """Nobody beats Bayes by more than errors allow; nothing is above min(π, 1−π) or below 0."""
    model = SparseTokens(L, R, 1.15 * math.sqrt(2 * math.log(L / pi)) + 0.5, pi)
    bayes = oracle_error("bayes", model, rng=rng(11, R))
    for kind in ("attention", "largest", "excess", "pooled"):
        other = oracle_error(kind, model, rng=rng(12, R))
        spread = math.hypot(bayes.standard_error, other.standard_error)
        assert 0 <= other.error <= pi
        assert bayes.error <= 1.01 * other.error + 5 * spread + 1e-300
    assert 0 <= bayes.standard_error <= 0.03 * bayes.error


@pytest.mark.false_alarm(7e-6)
@pytest.mark.parametrize(("L", "pi"), [(1e3, 0.5), (1e12, 1e-8), (1e300, 0.5), (1e300, 1e-8)])
@pytest.mark.parametrize("share", [1.02, 1.1, 1.2])
def test_bayes_with_ten_needles_is_within_three_per_cent(L, pi, share):
    theta = share * math.sqrt(2 * math.log(L))
    one, two = (bayes_risk(L, 10, theta, pi, rng(k)) for k in (14, 15))
    for found in (one, two):
        assert found.standard_error <= 0.03 * found.error
    assert abs(one.error - two.error) <= Z * math.hypot(one.standard_error, two.standard_error)


@pytest.mark.parametrize("count", [3.0, 60.0, 1e4, 1e300])
def test_the_tallest_straws_have_their_law(count):
    """Φ(g₁)^count is uniform."""
    top = sample_straws(count, 4000, rng(13)).top
    u = np.exp(count * np.asarray(log_between(np.full(4000, -np.inf), top[:, 0])))
    assert np.abs(np.sort(u) - np.linspace(0, 1, 4000)).max() < 0.04
    assert (np.diff(top, axis=1) <= 0).all()


@pytest.mark.parametrize(
    ("options", "name"), [({"level": -1.0}, "level"), ({"level": math.nan}, "level")]
)
def test_bad_arguments_are_named(options, name):
    with pytest.raises(ValueError, match=name):
        oracle_error("excess", SparseTokens(10, 1, 2.0, 0.5), **options)
    with pytest.raises(ValueError, match="level"):
        oracle_error("bayes", SparseTokens(10, 1, 2.0, 0.5), level=1.0, rng=rng(0))
