"""Whatever is computed in blocks of bounded memory is what it is in one piece, in every block.

The blocks of `laws`, `separation`, `steps` and of the tokens of `batch` are tested
beside these modules. Where a block draws, the same is drawn here by hand, block after block.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from experiments import depth
from needle.bags import arrays
from needle.bags import units as whitening
from needle.bags.arrays import Bags
from needle.data import noise
from needle.data.tokens import SparseTokens
from needle.learning import amp
from needle.oracle import recurrence
from needle.readout import pipeline as endtoend
from needle.training import descent as training_descent
from needle.training import flow as training_flow
from needle.training import walk as training

MODEL = SparseTokens(9, 2, 2.5, 0.4)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_weights_of_subsets(monkeypatch):
    logits = 3 * rng().standard_normal((23, 9))
    whole = amp.subset_weights(logits, 2)
    monkeypatch.setattr(amp, "ENTRIES", 5 * 9 * 2)
    for ours, exact in zip(amp.subset_weights(logits, 2), whole, strict=True):
        np.testing.assert_array_equal(ours, exact)


def test_products_with_tokens_that_are_drawn_again(monkeypatch):
    where = (rng(1).random(40 * 9) < 0.2).astype(float)
    x, u = rng(2).standard_normal(12), rng(3).standard_normal(40 * 9)
    kept = amp.Literal(where, 12, 2.0, rng(4))
    products = kept.times(x), kept.transposed(u)
    monkeypatch.setattr(amp, "KEPT", 0)
    monkeypatch.setattr(amp, "BLOCK", 50 * 12)
    drawn = amp.Literal(where, 12, 2.0, rng(4))
    assert drawn.kept is None and len(list(drawn._draw())) == 8
    for _ in range(2):
        np.testing.assert_allclose(drawn.times(x), products[0], atol=1e-5)
        np.testing.assert_allclose(drawn.transposed(u), products[1], atol=1e-4)


def test_literal_queries_and_features(monkeypatch):
    L, d, n, thetas = 11, 6, 30, np.array([1.0, 4.0])
    y = np.where(rng(5).random(n) < 0.5, 1, -1)

    def both():
        queries = endtoend.literal_queries(lambda: endtoend.noise_blocks(L, d, n, 3), y, thetas)
        found = endtoend.literal_features(
            lambda: endtoend.noise_blocks(L, d, n, 4), y, thetas, queries
        )
        return queries, found

    whole = both()
    monkeypatch.setattr(endtoend, "_BLOCK", 7 * L * d)
    assert len(list(endtoend.noise_blocks(L, d, n, 3))) == 5
    for ours, exact in zip(both(), whole, strict=True):
        np.testing.assert_allclose(ours, exact, rtol=1e-4, atol=1e-5)


def test_every_block_of_tokens_has_its_own_labels(monkeypatch):
    """Needles of height 100 stand in the positive bags, and in no other, of all seven blocks."""
    monkeypatch.setattr(training_descent, "_BLOCK", 4 * 9 * 8)
    loud = SparseTokens(9, 2, 100.0, 0.4)
    X, y = training_descent.draw_tokens(loud, 26, 8, rng(9))
    np.testing.assert_array_equal((X[:, :, 0] > 50).sum(axis=1), np.where(y > 0, 2, 0))
    assert len(np.unique(X)) == X.size


def test_the_drift_of_the_flow(monkeypatch):
    cloud = training_flow.sample_cloud(MODEL, 6, 0)
    state = training_flow.State(0.3, 0.2, 1.0, 1.5, 0.4, -0.2)
    options = (state, MODEL, cloud, "logistic", training_flow.Rates(1.0, 1.0, 1.0))
    whole = training_flow.drift(*options)
    monkeypatch.setattr(training_flow, "_BLOCK", 100)
    np.testing.assert_allclose(training_flow.drift(*options), whole, rtol=1e-10)


def test_the_noise_of_every_trial(monkeypatch):
    L, trials = 13, 24
    monkeypatch.setattr(noise, "_BLOCK", 7 * (L - 2))
    drawn = noise.sample_noise(L, 2, trials, rng(10), method="direct")
    blocks = list(drawn._blocks())
    assert [len(block) for block in blocks] == [7, 7, 7, 3]
    g = rng(drawn.seed).standard_normal((trials, L - 2))
    np.testing.assert_array_equal(np.concatenate(blocks), g)
    scale, (total,) = drawn.tilted(1.5, noise.one)
    np.testing.assert_allclose(total * np.exp(scale), np.exp(1.5 * g).sum(axis=1), rtol=1e-12)


@pytest.mark.parametrize("kind", depth.KINDS)
def test_the_scores_of_a_network(kind, monkeypatch):
    X, p = rng(11).standard_normal((23, 6, 4)), rng(12).standard_normal(depth.size(kind, 4))
    whole = depth.scores(kind, p, X)
    monkeypatch.setattr(depth, "_BLOCK", 5 * 6 * 6)
    np.testing.assert_allclose(depth.scores(kind, p, X), whole, rtol=1e-12)


@pytest.mark.parametrize("units", ["common", "own"])
@pytest.mark.parametrize("kept_as", [np.asarray, csr_array])
def test_the_moments_of_tokens(units, kept_as, monkeypatch):
    tokens = rng(13).standard_normal((60, 3)) * [1.0, 5.0, 0.2] + 1
    tokens[rng(14).random((60, 3)) < 0.4] = 0
    bags, y = Bags(kept_as(tokens), np.arange(0, 61, 4)), np.where(np.arange(15) % 3, -1, 1)
    whole = whitening.moments(bags, y, units)
    monkeypatch.setattr(arrays, "_BLOCK", 7 * 3)
    ours = whitening.moments(bags, y, units)
    for part in ("mean", "spread", "level", "gram", "ledoit_wolf"):
        exact = getattr(whole, part)
        np.testing.assert_allclose(getattr(ours, part), exact, rtol=1e-10, atol=1e-12)


def test_every_bag_of_a_recurrence_is_judged(monkeypatch):
    """The state of a bag is its first token: what the threshold meets is drawn here by hand."""
    met, choose = [], recurrence.best_threshold

    def spy(values, cost):
        met.append(values)
        return choose(values, cost)

    monkeypatch.setattr(recurrence, "_BLOCK", 7 * 9)
    monkeypatch.setattr(recurrence, "_state", lambda h, *_: h[:, 0])
    monkeypatch.setattr(recurrence, "best_threshold", spy)
    recurrence.recurrence_error(MODEL, "linear", rng(15), trials=24)
    again, parts = rng(15), []
    for label in (1, -1):
        first = []
        for n in (7, 7, 7, 3):
            h = again.standard_normal((n, 9))
            if label > 0:
                h[np.argsort(again.random((n, 9)), axis=1).argsort(axis=1) < 2] += MODEL.theta
            first.append(h[:, 0])
        parts.append(np.concatenate(first))
    halves = [np.concatenate([part[k : k + 12] for part in parts]) for k in (0, 12)]
    for values, half in zip(met, halves, strict=True):
        np.testing.assert_array_equal(values, half)


@pytest.mark.parametrize("method", ["dense", "exact"])
def test_every_step_of_descent_meets_a_bag_of_its_own(method, monkeypatch):
    """24 steps in blocks of 7 bags see these bags in this order, and each of them once."""
    seen, pull = [], training._pull

    def spy(gradient, s, v, b, y):
        seen.append((v, y))
        return pull(gradient, s, v, b, y)

    d, still = 8, training.Rates(0.0, 0.0, 0.0)
    monkeypatch.setattr(training, "_pull", spy)
    monkeypatch.setattr(training, "_BLOCK", 7 * 9 * d)
    monkeypatch.setattr(training, "_EXACT_BLOCK", 7 * 9)
    w, q = np.eye(d)[:2]
    list(getattr(training, f"_{method}")(MODEL, d, 24, rng(16), "logistic", still, q, w))
    again, due = rng(16), []
    for n in (7, 7, 7, 3):
        bags = MODEL.sample(n, d if method == "dense" else 3, again)
        due += zip(bags.X[:, :, 0], bags.y, strict=True)
        if method == "exact":
            again.chisquare([d - 3, d - 4], (n, 2)), again.standard_normal(n)
    assert len(seen) == len(due) == 24
    for (v, y), (tokens, label) in zip(seen, due, strict=True):
        np.testing.assert_allclose(v, tokens, atol=1e-12)
        assert y == label
