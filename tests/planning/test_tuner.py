"""The search for a recipe: against brute force on the same laws, and its laws against full ones."""

import numpy as np
import pytest
from scipy.special import logit

from benchmarks.lattice import lattice, reached
from needle.data.classifiers import attention, pooled
from needle.data.tokens import SparseTokens
from needle.planning.search import downhill, lowest
from needle.planning.tuner import RATE_W, Tuner, _Search
from needle.readout.limit import predict_readout
from needle.readout.newton import settle
from needle.readout.retuned import retune
from needle.readout.reuse import predict_reuse, reuse_path
from needle.readout.saddle import Problem
from needle.steps.rule import two_steps


def tuner(L=60, R=2, pi=0.3, alpha=4.0, **options):
    return Tuner(L, R, 1000, round(1000 * alpha), pi, **options)


def test_descent_ends_at_the_bottom():
    rng = np.random.default_rng(0)
    for _ in range(20):
        root = rng.normal(size=(3, 3))
        A = root @ root.T + 0.3 * np.eye(3)
        place, least = downhill(
            lambda p, A=A: (float((p - 1) @ A @ (p - 1)) / 2, A @ (p - 1)),
            (-3, 3, 0), (-9,) * 3, (9,) * 3,
        )  # fmt: skip
        assert least < 0.02 and (place - 1) @ A @ (place - 1) < 0.04


def test_descent_stays_inside():
    def slope(place):
        assert (place >= [-2, -3]).all() and (place <= [4, 1]).all()
        return -float(sum(place)), -np.ones(2)

    assert downhill(slope, (0, 0), (-2, -3), (4, 1))[0].tolist() == [4, 1]


def test_a_plain_is_left_by_the_next_start():
    """A well at 3 that cannot be felt from −3: the second start finds it."""

    def well(p):
        deep = float(np.exp(-((p[0] - 3) ** 2)))
        return -deep, np.array([2 * (p[0] - 3) * deep])

    assert lowest(well, ([-3.0], [2.0]), (-9,), (9,), -0.5)[0] == pytest.approx(3, abs=0.2)


@pytest.mark.parametrize("loss", ["logistic", "square"])
@pytest.mark.parametrize("reused", [False, True])
def test_slopes_are_those_of_differences(loss, reused):
    """Slopes in share, sharpness and ridge against differences of the error itself; a slope that
    forgets how the saddle point moves is refused."""
    desk = tuner(loss=loss)
    search, place = _Search(desk, 4.5, reused), desk.start(4.5) + np.array([0.3, -0.2, 0.1])
    _, slopes = search(place)
    for axis in (1, 2) if reused else (0, 1, 2):
        step = 0.02 * np.eye(3)[axis]
        slope = (search(place + step)[0] - search(place - step)[0]) / 0.04
        assert slopes[axis] == pytest.approx(slope, rel=0.05, abs=0.01)


def test_the_square_loss_is_stationary_at_its_closed_form():
    law = attention(SparseTokens(60, 2, 4.5, 0.3), temperature=2.0, cos=0.8, resolution=72, bits=11)
    x, saddle = settle(Problem(law, law.nodes, 2.0, 0.05, True), "square")
    gradient, size, H = saddle.equations(x)
    assert np.abs(gradient / size).max() < 1e-10
    for k in range(5):
        step = 1e-5 * np.eye(5)[k]
        slope = (saddle.equations(x + step)[0] - saddle.equations(x - step)[0]) / 2e-5
        assert slope == pytest.approx(H[k], abs=1e-6 * np.abs(H).max())


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["logistic", "square"])
@pytest.mark.parametrize(("L", "R", "theta"), [(60, 2, 4.5), (300, 1, 6.0), (20, 5, 2.2)])
def test_a_lattice_finds_nothing_better(loss, L, R, theta):
    """Within five per cent of the best of six thousand places, by the lattice's own errors."""
    desk = tuner(L=L, R=R, loss=loss)
    found, other = desk.split(theta), lattice(desk, theta)
    errors = [reached(desk, theta, recipe) for recipe in (found, other)]
    assert errors[0] < 1.05 * errors[1]


@pytest.mark.parametrize("loss", ["logistic", "square"])
def test_a_recipe_keeps_what_it_promises(loss):
    """The error of few nodes is that of many, and the cosine that of the two steps."""
    desk = tuner(loss=loss, share=0.7)
    found = desk.split(4.5)
    assert found.share == 0.7
    assert found.cosine == desk.cosine(4.5, 0.7 * 4.0, found.balanced)
    law = attention(desk.model(4.5), temperature=found.temperature, cos=found.cosine)
    full = predict_readout(law, 0.3 * 4.0, found.ridge, loss=loss).test_error
    assert found.error == pytest.approx(full, rel=0.01)
    searched = _Search(desk, 4.5, False)
    place = logit(found.share), np.log2(found.temperature), np.log10(found.ridge)
    assert np.exp(searched(np.array(place))[0]) == pytest.approx(found.error, rel=0.06)


@pytest.mark.slow
def test_all_data_twice_is_the_theory_of_reuse():
    desk = tuner(L=20, alpha=2.0)
    found = desk.twice(4.5, desk.split(4.5))
    full = predict_reuse(
        desk.model(4.5), 2.0, found.ridge, temperature=found.temperature, lr_w=RATE_W,
        lr_b=desk.rate,
    )  # fmt: skip
    assert found.error == pytest.approx(full.test_error, rel=0.01)


@pytest.mark.slow
def test_no_ridge_nearby_is_better_for_seen_samples():
    """Against `reuse_path` at five ridges; a ridge half a decade off is four per cent worse."""
    model, steps = SparseTokens(20, 2, 4.0, 0.3), {"lr_w": RATE_W, "lr_b": 4.2}
    found = retune(model, 2.0, 0.002, temperature=1.2, resolution=192, bits=12, **steps)
    ridges = found.ridge * np.array([0.1, 0.3, 1.0, 3.0, 10.0])
    path = reuse_path(model, 2.0, ridges, temperature=1.2, resolution=192, bits=12, **steps)
    errors = [readout.test_error for readout, _ in path]
    assert found.readout.test_error == pytest.approx(errors[2], rel=0.01)
    assert found.readout.test_error < 1.005 * min(errors)


@pytest.mark.slow
@pytest.mark.false_alarm(4e-4)
def test_balanced_steps_help_where_positives_are_rare():
    """The query of balanced steps on tokens has the cosine of the recipe (24 runs, 4.2 s.e.)."""
    desk = Tuner(50, 2, 200, 1600, 0.08)
    found, plain = desk.split(5.0), Tuner(50, 2, 200, 1600, 0.08, balanced=False).split(5.0)
    assert found.balanced and not plain.balanced and found.error < 0.9 * plain.error
    assert not Tuner(50, 2, 200, 1600, 0.6).split(5.0).balanced
    cosines = []
    for seed in range(24):
        X, y, _ = SparseTokens(50, 2, 5.0, 0.08).sample(
            round(found.share * 8 * 300), 300, np.random.default_rng(seed)
        )
        q = two_steps(X, y, lr_w=RATE_W, lr_b=desk.rate, balanced=True).q
        cosines.append(q[0] / np.linalg.norm(q))
    error = np.std(cosines, ddof=1) / np.sqrt(len(cosines))
    assert abs(np.mean(cosines) - found.cosine) < 4.2 * error + 0.01
    assert np.mean(cosines) > plain.cosine + 0.02


def test_pooling_has_its_best_ridge():
    desk = tuner()
    found = desk.average(6.0)
    law = pooled(SparseTokens(60, 2, 6.0, 0.3))
    errors = [predict_readout(law, 4.0, ridge).test_error for ridge in np.geomspace(1e-4, 10, 26)]
    assert found.error < min(errors) * 1.003
    assert found.error == pytest.approx(predict_readout(law, 4.0, found.ridge).test_error, rel=1e-9)


def test_beyond_the_memory_of_reuse_there_is_none():
    assert Tuner(20_000, 1, 100, 400, 0.5).twice(9.0, tuner().split(4.5)) is None
