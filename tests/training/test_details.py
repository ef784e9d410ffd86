"""What small changes to the room would spoil: names in refusals, literal steps one by one."""

import numpy as np
import pytest

from needle.data.tokens import SparseTokens
from needle.training.batch import gradient
from needle.training.onepass import predict_training
from needle.training.walk import simulate_training

MODEL = SparseTokens(L=4, R=1, theta=4.0, pi=0.5)
RATES = {"lr_q": 2.0, "lr_w": 2.0, "lr_b": 1.0}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"lr_q": -1.0}, r"^lr_q = -1"),
        ({"lr_w": -1.0}, r"^lr_w = -1"),
        ({"start": (-0.1, 0.1)}, r"^start = .*-0\.1"),
        ({"start": (0.1, -0.1)}, r"^start = .*-0\.1"),
    ],
)
def test_refusals_name_their_argument(change, words):
    with pytest.raises(ValueError, match=words):
        predict_training(MODEL, [0.1], **RATES | change)


def test_a_label_for_each_bag():
    X, q = np.ones((3, 2, 2)), np.zeros(2)
    with pytest.raises(ValueError, match=r"^y "):
        gradient(X, np.ones(2), q, q, 0.0)


@pytest.mark.parametrize("d", [5, 8])
def test_literal_steps_are_as_many_as_bags(d):
    """The bags of a block are drawn in advance; steps that are looked at by hand are the same."""
    found = simulate_training(MODEL, d, [0.0, 2.0], np.random.default_rng(3), **RATES)
    assert [record.samples for record in found] == [0.0, 2.0]
    assert found[0].query_norm == pytest.approx(0.1) and found[1].query_norm != found[0].query_norm
    longer = simulate_training(MODEL, d, [2.0, 4.0], np.random.default_rng(3), **RATES)
    assert longer[1].readout_norm != longer[0].readout_norm > found[0].readout_norm
