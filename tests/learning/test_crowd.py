"""Bags with many needles: the sums against their recursion, W against drawn bags and other nets."""

from __future__ import annotations

import math

import numpy as np
import pytest

from needle.data.tokens import SparseTokens
from needle.learning import crowd, posterior, verdicts
from needle.learning.amp import subset_weights
from needle.learning.crowd import Crowd
from needle.learning.limit import learning_thresholds, predict_learning
from needle.learning.posterior import Handful, channel, log_subsets
from needle.learning.verdicts import bayes_error
from needle.oracle.separation import oracle_error


def recursion(rows: np.ndarray, R: int) -> tuple[np.ndarray, np.ndarray]:
    """log e_{R−1} and log e_R of log weights (tokens, bags), one token after the other."""
    e = np.full((R + 1, rows.shape[1]), -np.inf)
    e[0] = 0.0
    for row in rows:
        e[1:] = np.logaddexp(e[1:], row + e[:-1])
    return e[R - 1], e[R]


@pytest.mark.parametrize("r", [0.05, 1.0, 4.0, 12.0])
@pytest.mark.parametrize(("straws", "needles"), [(40, 44), (48, 0), (1, 46)])
def test_the_circle_gives_the_symmetric_sums(straws, needles, r):
    """With at most 48 tokens of each kind nothing is approximate but the circle."""
    R, bags = 45, Crowd(straws, needles)
    rows = np.concatenate([r * r * side.signal + r * side.extreme for side in bags.sides])
    for ours, exact in zip(bags.log_e(r, R), recursion(rows, R), strict=True):
        assert np.allclose(ours, exact, rtol=1e-12, atol=1e-7)


def test_nodes_of_the_others_have_the_moments_of_what_they_stand_for():
    """Sums over all tokens, extreme and others, at a common x: mean and variance are exact."""
    for straws, needles, R, r in ((2000, 100, 101, 1.5), (10**6, 3000, 3001, 2.0)):
        bags = Crowd(straws, needles)
        x, variance = bags._common(r, R - 0.5)
        one, bulk, *_ = bags._tilt(r, R)
        kept = crowd._kept(one, bulk, x)[0]
        assert kept.mean() == pytest.approx(R - 0.5, abs=0.15 * math.sqrt(variance))
        assert kept.std() == pytest.approx(math.sqrt(variance), rel=0.05)


@pytest.mark.slow
@pytest.mark.false_alarm(0.0001)
@pytest.mark.parametrize(("L", "R"), [(300, 60), (120, 100)])
def test_the_weight_is_that_of_drawn_bags(L, R):
    """|z| < 4.5 at four strengths each: a false alarm with probability 6·10⁻⁵; not 5 % off."""
    rng, bag = np.random.default_rng(L), channel(L, R)
    for r in (0.6, 1.4, 2.5, 4.0):
        logits = r * rng.standard_normal((3000, L))
        logits[:, :R] += r * r
        weight = subset_weights(logits, R)[0][:, :R].mean(axis=1)
        error = weight.std() / math.sqrt(len(weight))
        theory = math.exp(bag.log_weight(r * r))
        assert abs(theory - weight.mean()) < 4.5 * error < abs(1.05 * theory - weight.mean())


@pytest.mark.parametrize(("L", "R"), [(60, 45), (1000, 50), (1000, 500), (10**6, 1000)])
def test_weights_of_independent_nets_agree(L, R, monkeypatch):
    mine, sobol = Crowd(L - R, R - 1), crowd.qmc.Sobol
    monkeypatch.setattr(crowd.qmc, "Sobol", lambda d, rng: sobol(d, rng=11))
    other = Crowd(L - R, R - 1, 12)
    for r in (0.3, 1.5, 2.5, 3.5, 5.0):
        assert posterior._rest(mine, r, R) == pytest.approx(posterior._rest(other, r, R), rel=1e-4)


@pytest.mark.parametrize("L", [100, 2000])
def test_forty_needles_are_a_crowd_as_well(L):
    """At the border of the two nets they agree."""
    few, many = Handful(L - 40, 39), Crowd(L - 40, 39)
    for r in (0.3, 1.5, 3.0, 5.0):
        assert posterior._rest(few, r, 40) == pytest.approx(posterior._rest(many, r, 40), rel=3e-4)


@pytest.mark.parametrize(
    ("L", "R"),
    [
        *((60, 45), (100, 99)),
        *(
            pytest.param(L, R, marks=pytest.mark.slow)
            for L, R in ((1000, 50), (10**12, 45), (10**4, 50), (1000, 500))
        ),
    ],
)
def test_area_theorem(L, R):
    bag = channel(L, R)
    area = R * bag.end**2 / 2 - float(bag.free(bag.end**2))
    assert area == pytest.approx(log_subsets(L, R), rel=1e-4)
    assert math.exp(float(bag.log_weight(0.0))) == pytest.approx(R / L, rel=1e-9, abs=0)


@pytest.mark.slow
@pytest.mark.false_alarm(7e-6)
@pytest.mark.parametrize(
    "model",
    [SparseTokens(300, 45, 0.5, 0.5), SparseTokens(60, 50, 0.25, 0.4)],
    ids=str,
)
def test_bayes_error_of_many_needles(model, monkeypatch):
    """The mean over 16 nets is that of drawn bags, and our net is near it.

    One net is 1.5 % off, their mean and the simulation 0.4 % each: |z| < 5 refuses what is 7 % off.
    (The 16 nets make 0.4 of the variance: Student's law with some 90 degrees, 3·10⁻⁶.)
    """
    simulated = oracle_error("bayes", model, rng=np.random.default_rng(3), trials=4000)
    ours, sobol = float(bayes_error(model, model.theta)), crowd.qmc.Sobol
    monkeypatch.setattr(verdicts, "_bags", verdicts._bags.__wrapped__)
    nets = []
    for seed in range(100, 116):
        monkeypatch.setattr(crowd.qmc, "Sobol", lambda d, rng, seed=seed: sobol(d, rng=seed))
        nets.append(float(bayes_error(model, model.theta)))
    mean = np.mean(nets)
    error = math.hypot(simulated.standard_error, np.std(nets, ddof=1) / 4)
    assert abs(mean - simulated.error) < 5 * error
    for share in (0.93, 1.07):
        assert abs(share * mean - simulated.error) > 5 * error
    assert ours == pytest.approx(mean, rel=0.08)


@pytest.mark.parametrize(
    ("L", "R"),
    [
        (10**6, 999_999),
        *(pytest.param(L, R, marks=pytest.mark.slow) for L, R in ((10**6, 30_000), (10**12, 60))),
    ],
)
@pytest.mark.parametrize("alpha", [pytest.param(1e-9, marks=pytest.mark.slow), 0.3, 1e6])
def test_any_number_of_needles_is_taken(L, R, alpha):
    model = SparseTokens(L, R, 0.5, 0.3)
    best = predict_learning(model, alpha)
    assert 0 <= best.cos <= 1 and 0 <= best.test_error <= 0.3
    assert best.free_entropy >= -1e-12
    assert not math.isfinite(learning_thresholds(model).algorithm) or L > 10**6


def test_a_faint_crowd_is_seen_by_its_sum():
    model = SparseTokens(1000, 500, 0.3, 0.5)
    below, above = bayes_error(model, [0.99 * verdicts.FAINT, 1.01 * verdicts.FAINT])
    assert 0.5 > below > above > 0.49
    assert below == pytest.approx(above, abs=2e-3)
