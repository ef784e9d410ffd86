"""Labels from one direction: the law against draws, known capacities, fits against the limit."""

import math

import numpy as np
import pytest
from scipy import optimize, stats
from scipy.special import expit, ndtr

from needle.data.teachers import teacher
from needle.readout.capacity import predict_capacity
from needle.readout.fit import simulate_readout
from needle.readout.limit import order_parameters, predict_readout

CASES = [
    (2.0, 0.5, "logistic"), (1.0, -2.0, "probit"), (3.0, 0.7, "sign"), (0.0, -1.0, "logistic"),
    (4.0, -6.0, "logistic"), (0.5, -5.0, "logistic"), (30.0, 0.0, "logistic"),
]  # fmt: skip
LINKS = {"logistic": expit, "probit": ndtr, "sign": lambda t: 1.0 * (t > 0)}


@pytest.mark.false_alarm(6e-5)  # of eight z below 4.5
@pytest.mark.parametrize(("gamma", "offset", "link"), CASES)
def test_draws_and_nodes_have_the_law_of_the_definition(gamma, offset, link):
    law, rng = teacher(gamma, offset, link), np.random.default_rng(1)
    c = rng.standard_normal(200_000)
    label = np.where(rng.random(len(c)) < LINKS[link](gamma * c + offset), 1, -1)
    F, y = law.sample(len(c), 2, rng)
    node = law.nodes
    for f in (
        lambda y, c: y,
        lambda y, c: y * c,
        lambda y, c: (y > 0) * c**2,
        lambda y, c: (y < 0) * c**3,
    ):
        direct, drawn = f(label, c), f(y, F[:, 0])
        error = max(direct.std(), 1e-3) / len(c) ** 0.5
        assert abs(drawn.mean() - direct.mean()) < 4.5 * 2**0.5 * error
        assert abs(node.weight @ f(node.y, node.c) - direct.mean()) < 4.5 * error
    assert stats.kstest(F[:, 0], "norm").pvalue > 1e-6
    assert stats.kstest(F[:, 1], "norm").pvalue > 1e-6


def test_steep_links_are_resolved():
    """Capacities from a fine trapezoidal rule, as for logistic regression in high dimension."""
    G = np.linspace(-10, 10, 4001)
    weight = stats.norm.pdf(G) * (G[1] - G[0])
    for gamma in (0.0, 1.0, 9.0):
        share = 2 * weight * expit(gamma * G)

        def repair(t, share=share):
            z = t * G
            return share @ ((1 + z**2) * ndtr(-z) - z * stats.norm.pdf(z))

        best = optimize.minimize_scalar(
            repair, bounds=(0, 30), method="bounded", options={"xatol": 1e-9}
        )
        assert 1 / predict_capacity(teacher(gamma), intercept=False) == pytest.approx(
            best.fun, rel=1e-6
        )
    assert predict_capacity(teacher(0.0), intercept=False) == pytest.approx(2)
    assert predict_capacity(teacher(1.0, link="sign")) == math.inf


@pytest.mark.false_alarm(1e-4)
@pytest.mark.parametrize(
    "loss",
    [pytest.param(loss, marks=pytest.mark.slow) for loss in ("logistic", "hinge")] + ["square"],
)
def test_fits_approach_the_limit(loss):
    law, rng = teacher(2.0, 0.5), np.random.default_rng(2)
    limit = predict_readout(law, 4.0, 0.05, loss=loss)
    names = ("test_error", "train_loss", "signal", "norm", "bias")
    groups = []
    for d in (60, 120):
        runs = [simulate_readout(law, d, 4.0, 0.05, rng, loss=loss) for _ in range(60)]
        groups.append(np.array([[getattr(run, name) for name in names] for run in runs]))
    found = 2 * groups[1].mean(0) - groups[0].mean(0)
    error = np.hypot(2 * groups[1].std(0), groups[0].std(0)) / 60**0.5
    expected = np.array([getattr(limit, name) for name in names])
    assert np.all(np.abs(found - expected) < 4.5 * error), (found - expected) / error
    assert np.any(np.abs(found - 1.1 * expected) > 4.5 * error)


def test_across_the_teacher_nothing_is_learned():
    found = order_parameters(teacher(2.0, 0.5), 4.0, 0.05)
    assert abs(found.kappa) < 1e-9 < found.nu


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("gamma", lambda: teacher(-1.0)),
        ("gamma", lambda: teacher(0.0, link="sign")),
        ("offset", lambda: teacher(1.0, math.nan)),
        ("offset", lambda: teacher(1.0, 50.0, "sign")),
        ("link", lambda: teacher(link="cube")),
        ("rng", lambda: teacher().coefficients(np.ones(2), None)),
    ],
)
def test_bad_input_is_named(name, call):
    with pytest.raises(ValueError, match=f"^{name} = "):
        call()
