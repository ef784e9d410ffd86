"""Whatever is computed in blocks of bounded memory is what it is in one piece, in every block.

The blocks of `alignment`, `laws`, `noise` and of the gradient of `training_batch` are tested beside
these modules.
"""

from __future__ import annotations

import numpy as np
import pytest

from utils import amp, endtoend, training_batch, training_flow, training_rounds
from utils.model import SparseTokens

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


@pytest.mark.parametrize("with_readout", [False, True])
def test_a_round_on_tokens(with_readout, monkeypatch):
    X, y, _ = MODEL.sample(25, 8, rng(6))
    q = rng(7).standard_normal(8)
    w = rng(8).standard_normal(8) if with_readout else None
    whole = training_rounds._collect(X, y, q, w)
    monkeypatch.setattr(training_rounds, "_BLOCK", 4 * 9 * 8)
    np.testing.assert_allclose(training_rounds._collect(X, y, q, w), whole, rtol=1e-10)


def test_every_block_of_tokens_has_its_own_labels(monkeypatch):
    """Needles of height 100 stand in the positive bags, and in no other, of all seven blocks."""
    monkeypatch.setattr(training_batch, "_BLOCK", 4 * 9 * 8)
    loud = SparseTokens(9, 2, 100.0, 0.4)
    X, y = training_batch._tokens(loud, 26, 8, rng(9))
    np.testing.assert_array_equal((X[:, :, 0] > 50).sum(axis=1), np.where(y > 0, 2, 0))
    assert len(np.unique(X)) == X.size


def test_the_drift_of_the_flow(monkeypatch):
    cloud = training_flow.sample_cloud(MODEL, 6, 0)
    state = training_flow.State(0.3, 0.2, 1.0, 1.5, 0.4, -0.2)
    options = (state, MODEL, cloud, "logistic", training_flow.Rates(1.0, 1.0, 1.0))
    whole = training_flow.drift(*options)
    monkeypatch.setattr(training_flow, "_BLOCK", 100)
    np.testing.assert_allclose(training_flow.drift(*options), whole, rtol=1e-10)
