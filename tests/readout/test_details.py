"""What small changes to the room would spoil: names of laws, and names in refusals."""

import numpy as np
import pytest

from needle.data.classifiers import pooled
from needle.data.tokens import SparseTokens
from needle.readout.longbags import long_bag_law
from needle.readout.pipeline import strength_in_law
from needle.readout.scores import judge
from needle.readout.subsampling import subsampled
from needle.readout.transfer import simulate_transfer

MODEL = SparseTokens(L=100, R=1, theta=5.0, pi=0.5)


def test_laws_are_called_by_what_they_are():
    assert subsampled(MODEL, 50, temperature=2.0, cos=0.9).name == "subsampled attention"
    assert long_bag_law(MODEL, temperature=2.0, cos=0.9).name == "long bags"


@pytest.mark.parametrize("steps", [-1, 3])
def test_a_query_is_learned_in_two_steps_at_most(steps):
    with pytest.raises(ValueError, match=rf"^steps = {steps}"):
        strength_in_law(100, 6.0, 100, 10, np.random.default_rng(0), steps=steps)


def test_refusals_name_their_argument():
    with pytest.raises(ValueError, match=r"^scores = 3"):
        judge(3)
    law = pooled(MODEL)
    with pytest.raises(ValueError, match=r"^d = 1 "):
        simulate_transfer(law, law, 1, 2.0, 0.1, np.random.default_rng(0))
