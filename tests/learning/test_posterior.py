"""The channel of one bag against brute force, exact identities and independent nets.

About 60 z-scores at |z| < 4.5 (two-sided 7e-6): a false alarm with probability below 5e-4, at fixed
seeds.
"""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit

from needle.data.tokens import SparseTokens
from needle.kit.records import ConvergenceError
from needle.learning import posterior
from needle.learning.posterior import Handful, channel, log_subsets, race
from needle.learning.verdicts import bayes_error
from needle.oracle.bayes import bayes_risk
from needle.oracle.detection import one_needle_bayes_error
from needle.oracle.separation import oracle_error

Z = 4.5


def brute_force(L: int, R: int, s: float, bags: int):
    """The weight on a needle and log(e_R/C(L, R)) on drawn bags, by sums over all R-subsets."""
    rng = np.random.default_rng(1000 * L + R)
    fields = math.sqrt(s) * rng.standard_normal((bags, L))
    fields[:, :R] += s
    subsets = list(combinations(range(L), R))
    logs = np.stack([fields[:, list(subset)].sum(axis=1) for subset in subsets])
    top = logs.max(axis=0)
    mass = np.exp(logs - top)
    with_first = mass[[0 in subset for subset in subsets]].sum(axis=0)
    evidence = top + np.log(mass.mean(axis=0)) - R * s / 2
    return with_first / mass.sum(axis=0), evidence


@pytest.mark.parametrize(
    ("L", "R"), [(2, 1), (8, 1), (60, 1), (5, 2), (9, 2), (7, 3), (6, 5), (4, 4)]
)
@pytest.mark.parametrize("s", [0.3, 2.0, 9.0])
def test_weight_and_evidence_match_sums_over_all_subsets(L, R, s):
    weight, evidence = brute_force(L, R, s, 40_000)
    bag = channel(L, R)
    for theory, sample in ((math.exp(bag.log_weight(s)), weight), (float(bag.free(s)), evidence)):
        error = sample.std() / math.sqrt(len(sample))
        assert abs(theory - sample.mean()) < Z * error + 1e-9


@pytest.mark.parametrize("L", [10, 200])
def test_the_race_is_the_laplace_integral(L):
    """W = ∫ a e^{−ta} φ(t)^{L−1} averaged over a, by adaptive quadrature in log t."""
    s, g = 3.0, np.linspace(-9, 9, 2001)
    mass = np.exp(-(g**2) / 2) / np.exp(-(g**2) / 2).sum()
    needle, straw = np.exp(s + math.sqrt(s) * g), np.exp(math.sqrt(s) * g)

    def integrand(log_t: float) -> float:
        t = math.exp(log_t)
        straws = (L - 1) * np.log(max(np.exp(-t * straw) @ mass, 1e-300))
        return float((t * needle * np.exp(-t * needle)) @ mass) * math.exp(straws)

    value = quad(integrand, -45, 25, limit=400, epsabs=1e-12)[0]
    assert race(L, s) == pytest.approx(value, rel=1e-7)


@pytest.mark.parametrize("L", [2, 10, 10**3, 10**6, 10**12])
@pytest.mark.parametrize("s", [1e-4, 0.7, 4.0, 30.0, 150.0])
def test_the_race_does_not_depend_on_its_step(L, s, monkeypatch):
    coarse = race(L, s)
    monkeypatch.setattr(posterior, "STEP", 0.2)
    assert coarse == pytest.approx(race(L, s), rel=2e-7, abs=0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("L", "R", "precision"),
    [(2, 1, 1e-6), (10**3, 1, 1e-6), (10**12, 1, 1e-6), (10, 2, 1e-4), (10**6, 2, 1e-4),
     (200, 5, 1e-4), (60, 12, 6e-4)],
)  # fmt: skip
def test_area_theorem(L, R, precision):
    """∫ ½R(1 − W) ds = log C(L, R): all that can be known is learned once."""
    bag = channel(L, R)
    area = R * bag.end**2 / 2 - float(bag.free(bag.end**2))
    assert area == pytest.approx(log_subsets(L, R), rel=precision)


@pytest.mark.parametrize(("L", "R"), [(10, 2), (200, 2), (10**6, 2), (200, 5)])
def test_weights_of_independent_nets_agree(L, R, monkeypatch):
    mine, sobol = Handful(L - R, R - 1), posterior.qmc.Sobol
    monkeypatch.setattr(posterior.qmc, "Sobol", lambda d, rng: sobol(d, rng=11))
    other = Handful(L - R, R - 1)
    for r in (0.6, 1.5, 3.0, 5.0):
        assert posterior._rest(mine, r, R) == pytest.approx(posterior._rest(other, r, R), rel=2e-4)


def test_groups_of_straws_carry_the_exact_mean():
    """The mean weight of 10⁵ straws is e^{s/2}, of which the largest carry most at s = 9."""
    for r, precision in ((0.5, 1e-3), (1.5, 1e-2)):
        rows, count = Handful(10**5, 0).log_weights(r)
        total = (count[:, None] * np.exp(rows)).sum(axis=0).mean()
        assert total == pytest.approx(10**5 * math.exp(r**2 / 2), rel=precision)


def test_one_needle_through_the_net_is_the_race():
    bags = Handful(199, 0)
    for r in (0.5, 1.5, 3.0, 5.0):
        low, high = bags.log_e(r, 1)
        weight = float(np.exp(posterior._needle(r, r * r + low - high)).mean())
        assert weight == pytest.approx(race(200, r * r), rel=2e-4)


@pytest.mark.slow
@pytest.mark.false_alarm(7e-6)
@pytest.mark.parametrize(
    "model",
    [
        SparseTokens(10, 1, 5.0, 0.5), SparseTokens(10, 1, 3.0, 0.2), SparseTokens(2, 1, 1.0, 0.3),
        SparseTokens(200, 2, 5.0, 0.5), SparseTokens(10**6, 1, 6.0, 0.5),
        SparseTokens(10**6, 3, 5.0, 0.3), SparseTokens(10, 9, 1.0, 0.3),
        SparseTokens(8, 8, 0.5, 0.4), SparseTokens(10**12, 1, 8.0, 0.5),
    ],
    ids=str,
)  # fmt: skip
def test_bayes_error_is_the_oracle(model):
    simulated = oracle_error("bayes", model, rng=np.random.default_rng(3), trials=10_000)
    errors = bayes_error(model, model.theta * np.array([1.0, 1.1]))  # and a tenth off
    right, wrong = np.abs(errors - simulated.error)
    assert right < Z * simulated.standard_error + 2e-4 < wrong


@pytest.mark.parametrize(
    ("L", "theta", "pi"), [(10, 5.0, 0.5), (100, 5.0, 1e-6), (100, 5.0, 1e-4), (1000, 20.0, 0.5)]
)
def test_bayes_error_is_right_where_positives_or_errors_are_rare(L, theta, pi):
    """A net of negatives has no false alarms of 10⁻⁶: they are counted among positives."""
    found = float(bayes_error(SparseTokens(L, 1, theta, pi), theta))
    assert found == pytest.approx(one_needle_bayes_error(L, theta, pi), rel=5e-4)


@pytest.mark.parametrize("theta", [4.0, 5.0, 7.0])
def test_several_needles_are_drawn_where_they_are_missed(theta):
    """On both sides of the error at which a net no longer has such needles."""
    risk = bayes_risk(1000, 4, theta, 0.5, np.random.default_rng(8), 20_000).error
    found = float(bayes_error(SparseTokens(1000, 4, theta, 0.5), theta))
    assert found == pytest.approx(risk, rel=0.04)


@pytest.mark.slow
def test_bayes_error_falls_from_knowing_nothing():
    model = SparseTokens(50, 2, 5.0, 0.3)
    errors = bayes_error(model, np.linspace(0, 8, 30))
    assert errors[0] == 0.3
    assert (np.diff(errors) < 1e-4).all()
    assert errors[-1] < 1e-3


def test_log_mean_sigmoid_far_out():
    t = np.array([-200.0, -45.0, -3.0, 0.0, 4.0])
    for r in (0.4, 3.0):
        g = np.linspace(-20, 20 + r, 40_001)
        exact = [expit(one + r * g) @ np.exp(-(g**2) / 2) * (g[1] - g[0]) for one in t]
        expected = np.log(exact) - math.log(2 * math.pi) / 2
        assert np.allclose(posterior._needle(r, t), expected, atol=1e-4)


@pytest.mark.parametrize(
    ("L", "R", "strength"), [(1000, 999, 1.0), (1000, 20, 4.0), (100, 30, 2.0)]
)
def test_errors_rarer_than_one_in_the_net_are_not_told(L, R, strength):
    """999 of 1000 at strength 1: the net said 2e-176 where about 1e-56 is right."""
    with pytest.raises(ConvergenceError, match="rarer than one") as reached:
        bayes_error(SparseTokens(L, R, 1.0, 0.5), strength)
    assert 0 <= reached.value.estimate < 0.01
    assert 0.07 < bayes_error(SparseTokens(1000, 20, 1.0, 0.5), 2.0) < 0.09
