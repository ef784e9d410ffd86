"""What small changes to the room would spoil: bags far apart, strengths far out, names."""

import numpy as np
import pytest

from needle.data.tokens import SparseTokens
from needle.kit.records import Learning
from needle.learning.amp import subset_weights
from needle.learning.limit import all_solutions
from needle.learning.norms import simulate_guessing
from needle.learning.posterior import FAR, Handful


@pytest.mark.parametrize("R", [1, 2])
def test_bags_of_very_different_strengths_do_not_touch_each_other(R):
    far = np.array([[0.0, 1.0, 2.0], [-2000.0, -2001.0, -2002.0]])
    weights, log_e = subset_weights(far, R)
    for bag in range(2):
        alone, log_alone = subset_weights(far[bag : bag + 1], R)
        assert weights[bag] == pytest.approx(alone[0]) and log_e[bag] == pytest.approx(log_alone[0])


def test_without_signal_nothing_is_learned():
    model = SparseTokens(L=10, R=1, theta=0.0, pi=0.3)
    assert all_solutions(model, 2.0) == [Learning(0.0, 0.3, 0.0, 1)]


@pytest.mark.parametrize(("straws", "needles", "R"), [(4, 1, 2), (40, 2, 3)])
def test_both_ways_to_sum_over_subsets_meet(straws, needles, R):
    """Products of weights, and beyond `FAR` their logarithms."""
    bags = Handful(straws, needles)
    near, far = bags.log_e(FAR, R), bags.log_e(np.nextafter(FAR, np.inf), R)
    for a, b in zip(near, far, strict=True):
        assert a == pytest.approx(b, rel=1e-9)


def test_refusals_name_their_argument():
    with pytest.raises(ValueError, match=r"^alpha = 0"):
        simulate_guessing(SparseTokens(4, 1, 3.0, 0.5), 10, 0.0, np.random.default_rng(0))
