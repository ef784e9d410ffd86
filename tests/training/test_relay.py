"""Three gradient steps learn two hops: cosines and error against literal steps."""

import math

import numpy as np
import pytest

from needle.training.relay import predict_relay, simulate_relay


@pytest.mark.false_alarm(6e-5)
@pytest.mark.parametrize(
    ("L", "m", "n", "theta", "kappa", "runs"),
    [
        (20, 20, 2000, (5, 5, 3), 5, 10),
        pytest.param(60, 20, 2000, (6, 6, 4), 5, 6, marks=pytest.mark.slow),
    ],
)
def test_three_steps_on_literal_tokens(L, m, n, theta, kappa, runs):
    """Cosines within 4.5 standard errors, the matching ones not at 20 % fewer bags."""
    law = predict_relay(L, m, n, theta=theta, kappa=kappa)
    fewer = predict_relay(L, m, round(0.8 * n), theta=theta, kappa=kappa)
    found = [
        simulate_relay(L, m, n, np.random.default_rng(seed), theta=theta, kappa=kappa)
        for seed in range(runs)
    ]
    for name in ("first_match", "query", "match", "test_error"):
        values = np.array([getattr(run, name) for run in found])
        se = values.std(ddof=1) / math.sqrt(runs)
        assert abs(values.mean() - getattr(law, name)) < 6 * se, name  # t with 5 or 9 degrees
        if name == "match":
            assert abs(values.mean() - getattr(fewer, name)) > 6 * se


def test_nothing_to_learn_is_not_learned():
    for theta, kappa in (((5, 0, 3), 5), ((5, 5, 3), 0)):
        law = predict_relay(20, 20, 2000, theta=theta, kappa=kappa)
        assert (law.query, law.match, law.test_error) == (0, 0, 0.5)
    blind = predict_relay(20, 20, 2000, theta=(0, 5, 3), kappa=5)
    assert blind.query == 0
    assert blind.test_error > 0.4


def test_the_number_of_bags_it_takes():
    """The query needs n ~ L³m²; more bags, better cosines."""
    laws = [predict_relay(30, 40, n, theta=(6, 6, 3), kappa=8) for n in (100, 1000, 10**4, 10**6)]
    for name in ("first_match", "query", "match"):
        values = [getattr(law, name) for law in laws]
        assert values == sorted(values)
        assert values[-1] > 0.99
