"""What small changes to the room would spoil and no theorem notices: ends, names, options."""

import numpy as np
import pytest

from needle.data.tokens import SparseTokens
from needle.steps.chance import imbalance
from needle.steps.colored import whiten
from needle.steps.scatter import predict_spread


def test_a_share_is_inside():
    for pi in (0.0, 1.0):
        with pytest.raises(ValueError, match=f"^pi = {pi}"):
            imbalance(pi)


def test_tokens_that_lie_in_a_plane_cannot_be_whitened():
    X = np.random.default_rng(0).standard_normal((20, 4, 3))
    X[..., 2] = X[..., 0]
    with pytest.raises(ValueError, match=r"^X is not allowed: .* in every direction$"):
        whiten(X, -np.ones(20))


def test_weights_of_the_classes_change_the_spread_of_unequal_ones_only():
    even, rare = (SparseTokens(8, 2, 3.0, pi) for pi in (0.5, 0.2))
    assert predict_spread(even, 2.0, balanced=True) == pytest.approx(predict_spread(even, 2.0))
    plain, balanced = (np.array(predict_spread(rare, 2.0, balanced=b)) for b in (False, True))
    assert np.all(np.abs(balanced / plain - 1) > 0.05)
