"""Records: what theory and simulation are written into, number by number."""

import pickle

import numpy as np
import pytest

from needle.kit.records import Alignment, ConvergenceError, Measured


def test_an_alignment_of_its_parts():
    found = Alignment.of(3.0, 4.0, 1.5, 2.0, 0.1, 0.2, 0.3, rate=7.0)
    assert (found.readout_cos, found.readout_norm) == (0.6, 5.0)
    assert (found.query_cos, found.query_norm, found.query_overlap) == (0.75, 2.0, 1.5)
    assert (found.rate, found.signal, found.echo, found.noise) == (7.0, 0.1, 0.2, 0.3)
    assert Alignment.of(3.0, 4.0, 1.5, 2.0, 0.1, 0.2, 0.3).rate is None


def test_cosines_of_nothing_and_of_rounding():
    nothing = Alignment.of(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    assert nothing.readout_cos == nothing.query_cos == 0.0
    above = np.nextafter(2.0, 3.0)
    assert Alignment.of(1.0, 0.0, above, 2.0, 0, 0, 0).query_cos == 1.0
    assert Alignment.of(-1.0, 0.0, -above, 2.0, 0, 0, 0).query_cos == -1.0
    assert Alignment.of(-1.0, 0.0, -1.9, 2.0, 0, 0, 0).query_cos == -0.95


def test_a_measured_number():
    x = Measured.of(["1", "2", "6"])
    assert x == 3.0 and x.trials == 3
    assert x.standard_error == pytest.approx((7 / 3) ** 0.5, rel=1e-15)
    again = pickle.loads(pickle.dumps(x))
    assert (again, again.standard_error, again.trials) == (x, x.standard_error, 3)


def test_an_error_keeps_its_estimate():
    error = ConvergenceError("not yet", 1.5)
    assert str(error) == "not yet" and error.estimate == 1.5
    assert ConvergenceError("not yet").estimate is None
