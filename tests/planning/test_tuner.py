"""The search for a recipe: against brute force on the same laws, and its laws against full ones."""

import numpy as np
import pytest

from needle.data.classifiers import attention, pooled
from needle.data.tokens import SparseTokens
from needle.planning.tuner import RATE_W, Tuner, descend
from needle.readout.limit import predict_readout
from needle.readout.reuse import predict_reuse


def tuner(L=60, R=2, pi=0.3, alpha=4.0, **options):
    return Tuner(L, R, 1000, round(1000 * alpha), pi, **options)


def test_descent_ends_where_no_step_helps():
    rng = np.random.default_rng(0)
    for _ in range(20):
        root = rng.normal(size=(3, 3))
        A = root @ root.T + 0.3 * np.eye(3)

        def bowl(p, A=A):
            return float(np.subtract(p, 2) @ A @ np.subtract(p, 2))

        place = descend(bowl, (-5, 5, 0), (-9,) * 3, (9,) * 3, (4, 2, 1))
        ways = [*np.eye(3, dtype=int), np.array([0, 1, 1])]
        assert all(
            bowl(np.add(place, s * way)) >= bowl(place) - 2e-3 for way in ways for s in (1, -1)
        )


def test_descent_stays_inside():
    def slope(place):
        assert -2 <= place[0] <= 4 and -3 <= place[1] <= 1
        return -sum(place)

    assert descend(slope, (0, 0), (-2, -3), (4, 1), (4, 1)) == (4, 1)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["logistic", "square"])
def test_nothing_on_the_lattice_is_much_better(loss):
    desk = tuner(loss=loss)
    found = desk.split(4.5)
    errors = [
        desk._errors(4.5, (share, T, ridge), False)
        for share in range(3, 25, 3)
        for T in range(0, 10, 2)
        for ridge in range(-10, 5, 3)
    ]
    assert desk._errors(4.5, found.place, False) < min(errors) + 0.02


@pytest.mark.parametrize("loss", ["logistic", "square"])
def test_a_recipe_keeps_what_it_promises(loss):
    """The error of few nodes is that of many, and the cosine that of the two steps."""
    desk = tuner(loss=loss, share=0.7)
    found = desk.split(4.5)
    assert found.share == 0.7
    assert found.cosine == desk.cosine(4.5, 0.7 * 4.0)
    law = attention(desk.model(4.5), temperature=found.temperature, cos=found.cosine)
    full = predict_readout(law, 0.3 * 4.0, found.ridge, loss=loss).test_error
    assert found.error == pytest.approx(full, rel=0.01)
    searched = np.exp(desk._errors(4.5, found.place, False))
    assert searched == pytest.approx(found.error, rel=0.05)


@pytest.mark.slow
def test_all_data_twice_is_the_theory_of_reuse():
    desk = tuner(L=20, alpha=2.0)
    found = desk.twice(4.5, desk.split(4.5))
    full = predict_reuse(
        desk.model(4.5), 2.0, found.ridge, temperature=found.temperature, lr_w=RATE_W,
        lr_b=desk.rate,
    )  # fmt: skip
    assert found.error == pytest.approx(full.test_error, rel=0.01)


def test_pooling_has_its_best_ridge():
    desk = tuner()
    found = desk.average(6.0)
    law = pooled(SparseTokens(60, 2, 6.0, 0.3))
    errors = [predict_readout(law, 4.0, ridge).test_error for ridge in np.geomspace(1e-4, 10, 26)]
    assert found.error < min(errors) * 1.003
    assert found.error == pytest.approx(predict_readout(law, 4.0, found.ridge).test_error, rel=1e-9)


def test_beyond_the_memory_of_reuse_there_is_none():
    assert Tuner(20_000, 1, 100, 400, 0.5).twice(9.0, tuner().split(4.5)) is None
