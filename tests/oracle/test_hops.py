"""Two hops: the error of two layers on literal tokens, and the bound of one."""

import math

import numpy as np
import pytest
from scipy.special import ndtr

from needle.oracle.hops import (
    one_layer_bound,
    sample_hops,
    simulate_two_hops,
    two_hop_error,
    two_layers,
)


@pytest.mark.false_alarm(2e-5)
@pytest.mark.parametrize(
    ("L", "m", "theta", "kappa"),
    [(20, 12, (4, 5, 2), 5), (40, 30, (3, 6, 1), 4), (6, 2, (2, 3, 3), 1)],
)
def test_two_layers_on_literal_tokens(L, m, theta, kappa):
    """And not the error with θ₂ 10 % weaker."""
    n = 24_000
    seen = simulate_two_hops(L, m, np.random.default_rng(0), theta=theta, kappa=kappa, n=n)
    se = math.sqrt(seen * (1 - seen) / n)
    assert abs(seen - two_hop_error(L, m, theta=theta, kappa=kappa)) < 4.5 * se
    weaker = two_hop_error(L, m, theta=(theta[0], 0.9 * theta[1], theta[2]), kappa=kappa)
    assert abs(seen - weaker) > 4.5 * se or m == 2


def test_known_values_and_limits():
    assert two_hop_error(50, 60, theta=(5, 5, 2), kappa=8) == pytest.approx(0.0856, abs=1e-4)
    assert two_hop_error(200, 100, theta=(5, 6, 2), kappa=10) == pytest.approx(0.0743, abs=1e-4)
    assert two_hop_error(30, 200, theta=(5, 6, 1.5), kappa=10) == pytest.approx(0.1174, abs=1e-4)
    sure = two_hop_error(30, 50, theta=(20, 60, 2), kappa=300)
    assert sure == pytest.approx(float(ndtr(-2)), abs=1e-4)  # all found: the value's own noise
    for theta in ((0, 0, 0), (9, 9, 0), (9, 0, 9)):
        assert two_hop_error(30, 20, theta=theta, kappa=5) == pytest.approx(0.5, abs=1e-9)


def test_what_was_learned_badly_costs():
    exact, options = (
        two_hop_error(30, 40, theta=(6, 6, 3), kappa=8),
        {"theta": (6, 6, 3), "kappa": 8},
    )
    assert two_hop_error(30, 40, query_cos=0.8, **options) > exact
    assert two_hop_error(30, 40, match_cos=0.8, **options) > exact
    assert two_hop_error(30, 40, match_cos=0.0, **options) == pytest.approx(0.5, abs=1e-3)


@pytest.mark.false_alarm(5e-5)
@pytest.mark.parametrize(("m", "match"), [(40, 0.0), (40, 0.5), (8, 0.8), (3, -0.5)])
def test_a_match_that_errs_in_general_position(m, match):
    """M = match·1 + noise on literal tokens."""
    options, bad, rng = {"theta": (6, 6, 3), "kappa": 8}, [], np.random.default_rng(0)
    for _ in range(40):
        M = match * np.eye(m) + math.sqrt(1 - match**2) / math.sqrt(m) * rng.standard_normal((m, m))
        X, y, _ = sample_hops(20, m, 1000, rng, **options)
        bad.append(np.mean(two_layers(X, np.eye(2 * m + 2)[0], M) * y < 0))
    told = two_hop_error(20, m, match_cos=match, **options)
    assert abs(np.mean(bad) - told) < 5 * np.std(bad) / math.sqrt(39)


@pytest.mark.parametrize("theta2", [1.0, 30.0, 1000.0])
@pytest.mark.parametrize("m", [2, 3, 50, 1000])
def test_a_marker_that_says_nothing_is_a_coin(m, theta2):
    """κ = 0 on one side; a needle that all see, with κ ≫ √m, is found as often as the marker."""
    blind = two_hop_error(100, m, theta=(0.001, theta2, 3.0), kappa=0.0)
    assert blind == pytest.approx(0.5, abs=1e-12)
    faint = two_hop_error(100, m, theta=(0.001, theta2, 3.0), kappa=1e-3)
    assert 0.4 < faint <= 0.5
    clear = two_hop_error(20, m, theta=(30.0, 1000.0, 3.0), kappa=1e5)
    near = {2: 0.05, 3: 1e-3}.get(m, 1e-9)  # there u′ may be too near to u to tell
    assert clear == pytest.approx(float(ndtr(-3)), abs=near)


def revealed_error(m, theta2, k, rng, n):
    """What the bound bounds, by draws: all is known but which of two tokens is the needle.

    Seen through k orthonormal directions P they are two Gaussians at distance θ₂√2|P(u − u′)|.
    """
    u, other = (rng.standard_normal((n, m)) for _ in range(2))
    u, other = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (u, other))
    return float(ndtr(-theta2 * np.linalg.norm((u - other)[:, :k], axis=1) / math.sqrt(2)).mean())


@pytest.mark.false_alarm(3e-6)
@pytest.mark.parametrize(("m", "theta2", "heads"), [(100, 6.0, 1), (100, 6.0, 4), (20, 3.0, 2)])
def test_the_bound_lies_below_what_it_bounds_and_close(m, theta2, heads):
    bound = one_layer_bound(m, theta2, heads)
    revealed = revealed_error(m, theta2, 2 * heads, np.random.default_rng(0), n=40_000)
    assert bound < revealed < 1.5 * bound
    assert one_layer_bound(m, theta2, 10**6) == pytest.approx(float(ndtr(-theta2)))


def test_tokens_are_what_they_say():
    X, y, where = sample_hops(6, 5, 4000, np.random.default_rng(2), theta=(3, 4, 2), kappa=7)
    assert X.shape == (4000, 6, 12)
    assert (where == [1, 2, 3, 0, 0, 0]).all()
    assert X[:, 0, 0].mean() == pytest.approx(3, abs=0.08)
    assert (X[:, 0, 1:6] ** 2).sum(axis=1).mean() == pytest.approx(49 + 5, rel=0.02)
    assert (y * X[:, 1, -1]).mean() == pytest.approx(2, abs=0.08)
    assert (y * X[:, 2, -1]).mean() == pytest.approx(-2, abs=0.08)
    agreement = np.einsum("nk,nk->n", X[:, 0, 1:6], X[:, 1, 6:11]).mean()
    assert agreement == pytest.approx(28, rel=0.03)
    assert abs(np.einsum("nk,nk->n", X[:, 0, 1:6], X[:, 2, 6:11]).mean()) < 1
    assert two_layers(X, np.eye(12)[0]).shape == (4000,)
