"""The sampler against the definition of the model."""

from dataclasses import FrozenInstanceError
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from needle.data.tokens import SparseTokens
from utils.agreement import agree


@st.composite
def models(draw):
    L = draw(st.integers(2, 12))
    return SparseTokens(
        L, draw(st.integers(1, L)), draw(st.floats(0, 5)), draw(st.floats(0.05, 0.95))
    )


@settings(max_examples=50, deadline=None)
@given(models(), st.integers(1, 20), st.integers(1, 5), st.integers(0, 2**32))
def test_shapes_labels_and_places(model, n, d, seed):
    X, y, where = model.sample(n, d, np.random.default_rng(seed))
    assert X.shape == (n, model.L, d)
    assert set(y) <= {-1, 1}
    assert where.dtype == bool
    np.testing.assert_array_equal(where.sum(axis=1), model.R * (y > 0))


@settings(max_examples=30, deadline=None)
@given(models(), st.integers(0, 2**32))
def test_theta_adds_the_signal_and_touches_nothing_else(model, seed):
    silent = SparseTokens(model.L, model.R, 0.0, model.pi)
    X, y, where = model.sample(8, 3, np.random.default_rng(seed))
    Z, y0, where0 = silent.sample(8, 3, np.random.default_rng(seed))
    np.testing.assert_array_equal(y, y0)
    np.testing.assert_array_equal(where, where0)
    np.testing.assert_allclose(X[:, :, 0] - Z[:, :, 0], model.theta * where, atol=1e-12)
    np.testing.assert_array_equal(X[:, :, 1:], Z[:, :, 1:])


def test_a_seed_repeats_and_another_differs():
    model = SparseTokens(L=5, R=2, theta=1.0, pi=0.4)
    first, again, other = (model.sample(6, 4, np.random.default_rng(s)) for s in (1, 1, 2))
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a, b)
    assert not np.array_equal(first.X, other.X)


@pytest.mark.false_alarm(0.0001)
def test_moments():
    model, rng = SparseTokens(L=8, R=3, theta=1.5, pi=0.3), np.random.default_rng(3)
    θ, R, L, π = model.theta, model.R, model.L, model.pi
    theory = {
        "share of positives": π,
        "mean along ξ": π * θ * R / L,
        "mean across ξ": 0.0,
        "second moment along ξ": 1 + π * θ**2 * R / L,
        "second moment across ξ": 1.0,
        "two tokens along ξ": π * θ**2 * R * (R - 1) / (L * (L - 1)),
        "mean token squared": 1 / L + π * (θ * R / L) ** 2,
    }

    def trial():
        X, y, _ = model.sample(500, 2, rng)
        along, across = X[:, :, 0], X[:, :, 1]
        numbers = [
            (y > 0).mean(),
            along.mean(),
            across.mean(),
            (along**2).mean(),
            (across**2).mean(),
            ((along.sum(axis=1) ** 2 - (along**2).sum(axis=1)) / (L * (L - 1))).mean(),
            (along.mean(axis=1) ** 2).mean(),
        ]
        return dict(zip(theory, numbers, strict=True))

    agree(theory, [trial() for _ in range(40)], claim="moments-of-tokens")


@pytest.mark.false_alarm(1e-05)
def test_every_subset_of_places_is_equally_likely():
    """χ² over the 10 subsets of 2 places in 5, refused at 1e-5."""
    model = SparseTokens(L=5, R=2, theta=1.0, pi=0.9)
    _, y, where = model.sample(20000, 1, np.random.default_rng(4))
    found = np.array([tuple(np.flatnonzero(row)) for row in where[y > 0]])
    counts = [np.all(found == subset, axis=1).sum() for subset in combinations(range(5), 2)]
    assert stats.chisquare(counts).pvalue > 1e-5


@pytest.mark.false_alarm(1e-05)
def test_noise_is_standard_normal():
    """Kolmogorov–Smirnov on 40000 entries of negatives, refused at 1e-5."""
    X, y, _ = SparseTokens(4, 1, 3.0, 0.5).sample(2000, 10, np.random.default_rng(5))
    assert stats.kstest(X[y < 0].ravel(), "norm").pvalue > 1e-5


def test_snr():
    assert SparseTokens(L=100, R=4, theta=2.5, pi=0.1).snr == 1.0


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"L": 1}, "L"),
        ({"L": 2.5}, "L"),
        ({"R": 0}, "R"),
        ({"R": 11}, "R"),
        ({"theta": -0.1}, "theta"),
        ({"theta": np.inf}, "theta"),
        ({"pi": 0}, "pi"),
        ({"pi": 1}, "pi"),
        ({"pi": None}, "pi"),
    ],
)
def test_bad_models_are_refused_by_name(change, name):
    with pytest.raises(ValueError, match=f"^{name} = "):
        SparseTokens(**{"L": 10, "R": 2, "theta": 1.0, "pi": 0.5, **change})


def test_bad_samples_are_refused_by_name():
    model = SparseTokens(L=10, R=2, theta=1, pi=0.5)
    for n, d, rng, name in [(0, 1, 0, "n"), (1, 0, 0, "d"), (1, 1, 0, "rng"), (1, 1, None, "rng")]:
        with pytest.raises(ValueError, match=f"^{name} = "):
            model.sample(n, d, rng)


def test_models_are_frozen_plain_and_hashable():
    model = SparseTokens(L=np.int64(10), R=2.0, theta=np.float32(1), pi=0.5)
    assert repr(model) == "SparseTokens(L=10, R=2, theta=1.0, pi=0.5)"
    assert hash(model) == hash(SparseTokens(10, 2, 1.0, 0.5))
    with pytest.raises(FrozenInstanceError):
        model.theta = 2.0


def test_all_tokens_may_carry_the_signal():
    _, y, where = SparseTokens(L=3, R=3, theta=1.0, pi=0.5).sample(50, 1, np.random.default_rng(6))
    assert where[y > 0].all()
    assert not where[y < 0].any()
