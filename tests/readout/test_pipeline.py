"""Heads trained end to end: the cheap routes against straws drawn one by one and stored tokens."""

import numpy as np
import pytest
from scipy.special import ndtri, softmax
from scipy.stats import sem

from needle.data.classifiers import attention
from needle.data.tokens import SparseTokens
from needle.readout import pipeline as endtoend
from needle.readout.fit import simulate_readout
from needle.readout.pipeline import (
    draw_coefficients,
    error_behind,
    literal_features,
    literal_queries,
    noise_blocks,
    sharpness,
    strength_at,
    strength_in_law,
    strength_on_tokens,
    train_readout,
)
from needle.steps.alignment import simulate_alignment
from needle.steps.rule import two_steps


@pytest.mark.false_alarm(1e-4)
@pytest.mark.parametrize("corruption", [0.0, 0.15])
def test_coefficients_have_the_law_of_straws_drawn_one_by_one(corruption):
    """Means and mean squares of (a, c, r) in both classes; a query 15 % better is refused."""
    model, n, rng = SparseTokens(400, 1, 9.0, 0.5), 4000, np.random.default_rng(1)
    y = np.repeat([1, -1], n)
    ours = draw_coefficients(model, y, rng, temperature=2.5, cos=0.4 * (1 + corruption))
    law = attention(model, temperature=2.5, cos=0.4)
    worst = 0.0
    for mine, theirs in zip(ours, law.coefficients(y, rng), strict=True):
        for part in (y > 0, y < 0):
            for power in (1, 2):
                p, q = mine[part] ** power, theirs[part] ** power
                worst = max(worst, abs(p.mean() - q.mean()) / (np.hypot(sem(p), sem(q)) + 1e-12))
    assert (worst > 4.5) == bool(corruption)


@pytest.fixture
def stored():
    """Noise in blocks, and the same tokens in one array of double precision."""
    L, d, n, theta = 60, 30, 50, 6.0
    rng = np.random.default_rng(2)
    y, noise = np.where(rng.random(n) < 0.5, 1, -1), lambda: noise_blocks(L, d, n, 3)
    X = np.concatenate([Z.astype(float) for _, Z in noise()])
    X[y > 0, 0, 0] += theta
    return X, y, noise, theta


def test_literal_queries_are_those_of_two_steps(stored):
    X, y, noise, theta = stored
    _, _, q = two_steps(X, y, lr_b=4.0)
    ours = literal_queries(noise, y, np.array([1.0, theta]))[1]
    assert ours @ q / np.linalg.norm(ours) / np.linalg.norm(q) == pytest.approx(1, abs=1e-9)


def test_literal_features_are_softmax_averages(stored):
    X, y, noise, theta = stored
    queries = np.random.default_rng(4).normal(size=(2, X.shape[2]))
    ours = literal_features(noise, y, np.array([1.0, theta]), queries)[:, 1]
    unit = queries[1] / np.linalg.norm(queries[1])
    theirs = np.einsum("nl,nld->nd", softmax(sharpness(X.shape[1]) * X @ unit, axis=1), X)
    assert ours == pytest.approx(theirs, abs=1e-5)


def test_strength_at_interpolates_and_stops_at_the_ends():
    assert strength_at([1.0, 2.0, 3.0], [0.4, 0.05, 0.001]) == pytest.approx(2)
    middle = strength_at([1.0, 3.0], [0.2, 0.01])
    share = (ndtri(0.2) - ndtri(0.05)) / (ndtri(0.2) - ndtri(0.01))
    assert middle == pytest.approx(1 + 2 * share)
    assert strength_at([1.0, 2.0], [0.4, 0.3]) == 2
    assert strength_at([1.0, 2.0], [0.02, 0.01]) == 1


@pytest.mark.slow
@pytest.mark.false_alarm(1e-4)
def test_readouts_in_law_err_like_those_of_the_feature_law():
    """A query 5 % worse is refused."""
    model, cos = SparseTokens(100, 1, 6.0, 0.5), 0.75
    law = attention(model, temperature=sharpness(100), cos=cos)
    rng = np.random.default_rng(6)
    theirs = [simulate_readout(law, 40, 2.0, 0.01, rng).test_error for _ in range(60)]
    for corruption in (0.0, 0.05):
        ours = [
            train_readout(model, 40, np.random.default_rng([5, k]), cos=cos * (1 - corruption))
            for k in range(60)
        ]
        z = (np.mean(ours) - np.mean(theirs)) / np.hypot(sem(ours), sem(theirs))
        assert (abs(z) > 4) == bool(corruption)


def test_the_error_of_a_readout_counts_both_classes():
    """w = 0: all that is left is the sign of the intercept."""
    model, rng, q = SparseTokens(50, 1, 5.0, 0.2), np.random.default_rng(7), np.eye(3)[0]
    w = np.array([0.0, 0.0, 1e-9])
    assert error_behind(model, w, 1.0, q, rng) == pytest.approx(0.8)
    assert error_behind(model, w, -1.0, q, rng) == pytest.approx(0.2)


def test_a_head_outside_the_first_strengths_is_sought_further_out():
    """Both kinds of heads; the same head from anywhere, up to the bend between two strengths."""
    near, rng = {"factors": (0.9, 1.0, 1.1)}, np.random.default_rng
    found = [
        (
            strength_in_law(50, centre, 5000, 60, rng(9), **near),
            strength_on_tokens(50, centre, 30, rng(9), **near),
        )
        for centre in (2.5, 6.0, 15.0)
    ]
    assert found[0] == pytest.approx(found[1], rel=0.01)
    assert found[2] == pytest.approx(found[1], rel=0.01)


@pytest.mark.parametrize(
    ("steps", "query", "alpha"), [(0, "given", 4.0), (1, "readout_cos", 2.0), (2, "query_cos", 2.0)]
)
def test_the_query_takes_the_steps_it_is_told(steps, query, alpha, monkeypatch):
    """No step: ξ itself and all samples for the readout; else the cosine of w⁽¹⁾ or of q⁽²⁾."""
    task, rng = SparseTokens(50, 1, 6.0, 0.5), np.random.default_rng(1)
    seen, alignment = [], simulate_alignment(task, 500, 2.0, rng, lr_b=4.0)
    monkeypatch.setattr(endtoend, "simulate_alignment", lambda *_, **__: alignment)
    monkeypatch.setattr(
        endtoend,
        "train_readout",
        lambda task, d, rng, **given: seen.append(given) or 0.5 / task.theta**2,
    )
    strength_in_law(50, 3.0, 500, 20, np.random.default_rng(0), steps=steps)
    cosine = 1.0 if query == "given" else getattr(alignment, query)
    assert all(given == {"cos": cosine, "alpha": alpha} for given in seen)


@pytest.mark.parametrize("factors", [(1.0,), (1.0, 0.9), (0.0, 1.0)])
def test_strengths_that_cannot_be_bracketed_are_refused(factors):
    with pytest.raises(ValueError, match=r"factors = .* is not allowed"):
        strength_in_law(50, 6.0, 100, 20, np.random.default_rng(0), factors=factors)


@pytest.mark.slow
@pytest.mark.false_alarm(1e-4)
def test_heads_on_tokens_need_the_strength_of_heads_in_law():
    """Four tenths more is refused."""
    run = {"L": 50, "d": 30, "centre": 7.0, "factors": (0.6, 0.8, 1.0, 1.25, 1.6)}
    rng = np.random.default_rng(8)
    law = [strength_in_law(**run, d_query=30, rng=rng) for _ in range(40)]
    tokens = [strength_on_tokens(**run, rng=rng) for _ in range(40)]
    for corruption in (1.0, 1.4):
        z = (np.mean(tokens) - corruption * np.mean(law)) / np.hypot(sem(tokens), sem(law))
        assert (abs(z) > 4) == (corruption > 1)


def test_more_than_one_needle_is_refused():
    model, rng = SparseTokens(50, 2, 5.0, 0.5), np.random.default_rng(0)
    with pytest.raises(ValueError, match=r"model\.R = 2 is not allowed"):
        draw_coefficients(model, np.array([1, -1]), rng, temperature=1.0, cos=0.5)
