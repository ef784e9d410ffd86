"""Bags of unequal length, the learner with scikit-learn's interface, and the yardsticks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.special import softmax
from scipy.stats import norm
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import check_estimator

from utils import bags as bags_module
from utils.alignment import two_steps
from utils.bag_learner import NeedleClassifier, query, whitening
from utils.bags import Bags, as_bags, benchmark, digit_bags
from utils.model import SparseTokens
from utils.rates import RATE_W, calibrated_rate
from utils.yardsticks import Gated, fit_gated, fit_noisy_or, fit_pooling, gated_gradient, noisy_or

FALSE_ALARM = 1e-4


def ragged(rng: np.random.Generator, n: int = 40, d: int = 5, strength: float = 3.0) -> tuple:
    """Bags of three to nine tokens, the first token of positives a needle."""
    y = np.where(rng.permutation(n) < n // 2, 1, -1)
    tokens = [rng.normal(size=(rng.integers(3, 10), d)) for _ in range(n)]
    for bag, label in zip(tokens, y, strict=True):
        bag[0, 0] += strength * (label > 0)
    return tokens, y


def test_sums_over_bags_are_sums_over_bags() -> None:
    tokens, _ = ragged(np.random.default_rng(0))
    bags = as_bags(tokens)
    heights = bags.tokens[:, 1] * 30  # exponentials that would overflow without care
    assert np.allclose(bags.means(), [bag.mean(axis=0) for bag in tokens])
    expected = [softmax(30 * bag[:, 1]) @ bag for bag in tokens]
    assert np.allclose(bags.attended(heights), expected)
    assert np.allclose(bags.largest(heights), [30 * bag[:, 1].max() for bag in tokens])
    some = bags.take(np.array([3, 0, 17]))
    assert all(
        np.array_equal(a, tokens[k])
        for a, k in zip(np.split(some.tokens, some.starts[1:-1]), (3, 0, 17), strict=True)
    )


@pytest.mark.parametrize(
    "X",
    [[], "bags", [np.zeros((2, 3)), np.zeros((2, 4))], [np.zeros(3)], [np.full((2, 2), np.nan)]],
)
def test_what_is_no_bag_is_refused(X: object) -> None:
    with pytest.raises(ValueError, match="X"):
        as_bags(X)


def test_the_query_is_that_of_two_steps_where_lengths_agree() -> None:
    rng = np.random.default_rng(1)
    X, y, _ = SparseTokens(L=7, R=2, theta=3.0, pi=0.3).sample(90, 6, rng)
    expected = two_steps(X, y, lr_w=RATE_W, lr_b=calibrated_rate(float(np.mean(y > 0)))).q
    found = query(as_bags(X), y)
    assert np.allclose(found, expected / np.linalg.norm(expected))
    assert np.allclose(query(as_bags(X), -y), found)  # both steps turn their sign
    assert not np.allclose(query(as_bags(X), rng.permutation(y)), found, atol=0.1)


def test_a_token_repeated_changes_nothing() -> None:
    """Means and attention do not depend on how often a whole bag is repeated inside itself."""
    tokens, y = ragged(np.random.default_rng(2))
    twice = [np.concatenate([bag, bag]) for bag in tokens]
    assert np.allclose(query(as_bags(tokens), y), query(as_bags(twice), y))


@pytest.mark.false_alarm(FALSE_ALARM)
def test_whitened_negatives_are_white() -> None:
    """Held against fresh tokens of the same law; 1.1 times the true root is refused."""
    rng = np.random.default_rng(3)
    root = np.array([[2.0, 0, 0], [1, 0.5, 0], [0.3, 0.2, 1]])

    def draw(n):
        return as_bags([1 + rng.normal(size=(20, 3)) @ root.T for _ in range(n)])

    white = whitening(draw(3000), -np.ones(3000))
    fresh = white(draw(2000)).tokens
    limit = norm.isf(FALSE_ALARM / 6)
    error = np.sqrt(2 / len(fresh) + 2 / 60_000)
    z = (fresh.var(axis=0) - 1) / error
    assert np.abs(z).max() < limit
    assert np.abs(((1.1**2 * fresh.var(axis=0)) - 1) / error).max() > 3 * limit


def test_scikit_learn_accepts_the_classifier() -> None:
    check_estimator(NeedleClassifier(cv=2, sharpness=(0.0, 1.0), ridge=0.01))


def test_it_cross_validates_on_bags_and_finds_the_needle() -> None:
    tokens, y = ragged(np.random.default_rng(4), n=160, strength=5.0)
    X = np.stack([bag[:3] for bag in tokens])
    model = NeedleClassifier(sharpness=(0.0, 2.0), ridge=0.01, cv=3)
    assert cross_val_score(model, X, y, cv=4).mean() > 0.85
    model.fit(tokens, y)
    assert model.sharpness_ == 2.0
    looked = [
        weight.argmax() == 0
        for weight, label in zip(model.attention(tokens), y, strict=True)
        if label > 0
    ]
    assert np.mean(looked) > 0.9
    assert set(NeedleClassifier().fit(tokens, np.where(y > 0, "a", "b")).predict(tokens)) == {
        "a",
        "b",
    }


def test_a_share_keeps_the_query_from_the_readout() -> None:
    tokens, y = ragged(np.random.default_rng(5), n=80)
    options = {"sharpness": 1.0, "ridge": 0.1}
    split = NeedleClassifier(share=0.5, **options).fit(tokens, y)
    order = np.random.default_rng(0).permutation(80)
    own = [tokens[k] for k in order[:40]]
    alone = NeedleClassifier(**options).fit(own, y[order[:40]])
    assert np.allclose(split.query_, alone.query_)
    assert not np.allclose(split.coef_, alone.coef_)


@pytest.mark.parametrize(
    ("name", "value"),
    [("sharpness", -1.0), ("ridge", 0.0), ("share", 1.5), ("cv", 1), ("shrinkage", 2)],
)
def test_bad_settings_are_refused_by_name(name: str, value: object) -> None:
    tokens, y = ragged(np.random.default_rng(6))
    with pytest.raises(ValueError, match=name):
        NeedleClassifier(**{name: value}).fit(tokens, y)


def test_gradients_by_hand_are_those_of_finite_differences() -> None:
    tokens, y = ragged(np.random.default_rng(7), n=12)
    bags, rng = as_bags(tokens), np.random.default_rng(8)
    point = rng.normal(size=6) * 0.3

    def value(p):
        return noisy_or(p, bags, y, 0.1)[0]

    assert np.allclose(
        noisy_or(point, bags, y, 0.1)[1], approx_fprime(point, value, 1e-6), atol=1e-4
    )
    shapes = ((4, 5), (4, 5), (4,), (5,), (1,))
    sizes = np.cumsum([int(np.prod(s)) for s in shapes])[:-1]

    def model(p):
        return Gated(*(x.reshape(s) for x, s in zip(np.split(p, sizes), shapes, strict=True)))

    point = rng.normal(size=50) * 0.4

    def value(p):
        return gated_gradient(model(p), bags, y, 0.1)[0]

    found = np.concatenate([part.ravel() for part in gated_gradient(model(point), bags, y, 0.1)[1]])
    assert np.allclose(found, approx_fprime(point, value, 1e-6), atol=1e-4)


def test_every_yardstick_learns_an_easy_task() -> None:
    tokens, y = ragged(np.random.default_rng(9), n=300, strength=6.0)
    bags = as_bags(tokens)
    train, test = np.arange(200), np.arange(200, 300)
    seen, rng = bags.take(train), np.random.default_rng(0)
    fits = [fit_pooling(seen, y[train], 0.01, pool=pool) for pool in ("mean", "max")]
    fits += [fit_noisy_or(seen, y[train], 1e-3), fit_gated(seen, y[train], 1e-3, rng)]
    errors = [np.mean((score(bags.take(test)) > 0) != (y[test] > 0)) for score in fits]
    assert max(errors[1:]) < 0.12
    assert errors[0] < 0.3


@pytest.mark.false_alarm(FALSE_ALARM)
def test_digit_bags_hide_what_they_say() -> None:
    rng = np.random.default_rng(10)
    bags, y, hidden = digit_bags(500, 30, 3, rng, needle=7, pi=0.3)
    assert (bags.sums(hidden.astype(int)) == np.where(y > 0, 3, 0)).all()
    images, names = bags_module.digits()
    kinds = {image.tobytes(): name for image, name in zip(images, names, strict=True)}
    drawn = np.array([kinds[token.tobytes()] for token in bags.tokens])
    assert ((drawn == 7) == hidden).all()
    first = hidden.reshape(500, 30)[y > 0][:, :15].sum()
    n = 3 * int((y > 0).sum())  # where the needles lie: half of them in the first half
    z = (first - n / 2) / np.sqrt(n / 4)
    assert abs(z) < norm.isf(FALSE_ALARM / 2)
    assert abs(first * 1.2 - n / 2) / np.sqrt(n / 4) > norm.isf(FALSE_ALARM / 2)


def test_missing_bags_say_how_to_get_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(bags_module, "__file__", str(tmp_path / "utils" / "bags.py"))
    with pytest.raises(FileNotFoundError, match="make bags"):
        benchmark("musk1")
    with pytest.raises(ValueError, match="name"):
        benchmark("musk3")


def test_one_token_a_bag_is_a_table() -> None:
    table = np.random.default_rng(11).normal(size=(5, 2))
    bags = as_bags(table)
    assert isinstance(bags, Bags)
    assert np.array_equal(bags.attended(table[:, 0]), table)
