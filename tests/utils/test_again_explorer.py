"""The table of Chapter 8's explorer, computed again in part from other populations."""

from __future__ import annotations

import numpy as np
import pytest

from needle.data.tokens import SparseTokens
from needle.training.batch import predict_descent
from utils.explorers.again import ALPHAS, DECAYS, FIELDS, TIMES, course
from utils.results import stored

WITHIN = {
    "test": 0.01,
    "cosine": 0.01,
    "length": 0.01,
}  # besides eight standard errors of three degrees of freedom
MIDDLES = [46, 57, 65, 75]  # steps between the later stops


def again(alpha, decay, steps):
    rates = dict.fromkeys(("lr_q", "lr_w", "lr_b"), 0.5)
    model, told = SparseTokens(20, 1, 5.0, 0.5), {"bags": 1500, "seed": 9, **rates}
    return predict_descent(model, alpha, steps, decay=decay, **told)


@pytest.mark.slow
@pytest.mark.false_alarm(3e-4)
@pytest.mark.parametrize(
    ("alpha", "decay", "steps"),
    [(0.5, 0.4, range(6, 41)), (2.0, 0.0, [*range(6, 41, 2), *MIDDLES]), (8.0, 0.1, range(6, 41))],
)
def test_stops_and_the_lines_between_them_are_right_to_a_per_cent(alpha, decay, steps):
    """A tenth more of an error, or the course at another decay, is refused."""
    run, rows = again(alpha, decay, list(steps)), course(alpha, decay)
    other = course(alpha, DECAYS[1] if decay == 0 else round(decay - 0.1, 1))
    at = np.log(np.array(list(steps)) / 2)

    def gaps(known, name, factor=1.0):
        found = np.array([float(getattr(one, FIELDS[name])) for one in run])
        error = np.array([getattr(one, FIELDS[name]).standard_error for one in run])
        drawn = np.exp(np.interp(at, np.log(TIMES), np.log(known[name])))
        print(name, f"{np.quantile(np.abs(drawn / found - 1), [0.5, 0.9, 1]).round(4)}")
        return np.max(np.abs(factor * drawn - found) / (WITHIN[name] * found + 8 * error))

    for name in WITHIN:
        assert gaps(rows, name) < 1, name
    assert gaps(rows, "test", 1.1) > 1
    assert max(gaps(other, name) for name in WITHIN) > 1


def test_the_table_states_standard_errors_below_two_per_cent():
    """At the best moment of each setting."""
    for alpha in ALPHAS:
        for decay in DECAYS:
            found = stored("again-time").only(alpha=alpha, decay=decay)
            assert float(found["scatter"]) < 0.02 * float(found["least"])
