"""Two layers by hand: gradients, literal runs, training to a stationary point."""

import numpy as np
import pytest
from scipy.special import softmax

from experiments.depth import KINDS, objective, scores, size, train, unpack
from needle.data.tokens import SparseTokens


@pytest.mark.parametrize("loss", ["logistic", "square"])
@pytest.mark.parametrize("kind", KINDS)
def test_gradients_by_hand(kind, loss):
    rng = np.random.default_rng(10)
    X, y = rng.normal(size=(6, 5, 3)), np.array([1, -1, 1, 1, -1, -1.0])
    p = rng.normal(size=size(kind, 3))
    gradient = objective(kind, p, X, y, 0.1, loss)[1]
    for k, e in enumerate(1e-6 * np.eye(len(p))):
        up, down = (objective(kind, p + side * e, X, y, 0.1, loss)[0] for side in (1, -1))
        assert gradient[k] == pytest.approx((up - down) / 2e-6, abs=1e-7), k


def test_two_layers_literally():
    """Token by token; with u = 0 one layer is left."""
    rng, d = np.random.default_rng(11), 4
    X, p = rng.normal(size=(3, 5, d)), rng.normal(size=size("two layers", d))
    (q, w, first), b, u = unpack("two layers", p, d)
    for x, z in zip(X, scores("two layers", p, X), strict=True):
        A = softmax(np.outer(x @ first, x @ first), axis=1)
        Y = x + u * A @ x
        assert z == pytest.approx(softmax(Y @ q) @ Y @ w + b)
    p[-2] = 0
    plain = np.concatenate([q, w, [b]])
    np.testing.assert_allclose(scores("two layers", p, X), scores("one layer", plain, X))
    np.testing.assert_allclose(scores("one layer", plain, X)[0], softmax(X[0] @ q) @ X[0] @ w + b)


def test_training_finds_a_stationary_point():
    rng = np.random.default_rng(12)
    X, y, _ = SparseTokens(8, 1, 6.0, 0.5).sample(60, 5, rng)
    for kind in KINDS:
        found = train(kind, X, y, 0.05, rng, starts=1)
        assert np.abs(objective(kind, found.parameters, X, y, 0.05)[1]).max() < 1e-3
        assert found.train_loss < 0.3
