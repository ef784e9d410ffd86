"""Long bags: chance in the balance of the classes turns the query."""

import numpy as np
import pytest

from needle.data.tokens import SparseTokens
from needle.steps import chance
from needle.steps.alignment import predict_alignment, simulate_alignment
from needle.steps.chance import chance_cosines, imbalance, predict_chance
from utils.agreement import AgreementError, agree

PAPER = SparseTokens(L=20, R=1, theta=5.0, pi=0.5)


def runs(model, d, trials, seed, **options):
    rng = np.random.default_rng(seed)
    found = [simulate_alignment(model, d, 2.0, rng, **options).query_cos for _ in range(trials)]
    return np.array(found)


LONG = {
    "loud": (SparseTokens(1000, 1, 8.0, 0.5), {"lr_b": 0.5}),
    "silent": (SparseTokens(1000, 2, 6.0, 0.5), {"lr_b": 4.0}),
    "rare": (SparseTokens(3000, 1, 14.0, 0.3), {"lr_b": np.log(3 / 7) / (0.3 - 0.5)}),
    "square": (SparseTokens(1000, 1, 9.0, 0.5), {"lr_b": 0.3, "loss": "square"}),
}


@pytest.mark.slow
@pytest.mark.false_alarm(1e-5)
@pytest.mark.parametrize("name", LONG)
def test_the_law_of_the_cosine_in_long_bags(name):
    """Mean, power and sign at L/d = 10 and 30 against exact runs; the fixed-L theory is refused,
    but where it is too near (silent, rare)."""
    model, options = LONG[name]
    s = runs(model, 100, 800, 1, **options)
    theory = predict_chance(model, 100, 2.0, **options)
    claimed = {"cos": theory.query_cos, "power": theory.power, "flipped": theory.flipped}
    agree(claimed, {"cos": s, "power": s**2, "flipped": s < 0}, claim="chance", false_alarm=1e-5)
    if name in ("loud", "square"):
        with pytest.raises(AgreementError):
            agree(
                predict_alignment(model, 2.0, **options).query_cos,
                s,
                claim="fixed",
                false_alarm=1e-5,
            )


@pytest.mark.slow
@pytest.mark.false_alarm(1e-5)
def test_the_power_of_noise_alone(monkeypatch):
    """Without signal (R = L) or imbalance noise alone turns the query, half of it g₂ and half g₃.

    Either missing or 20 % too strong is refused.
    """
    model, d = SparseTokens(L=4, R=4, theta=0.8, pi=0.5), 300
    options = {"lr_w": 0.01, "lr_b": 4.0}
    rng, normals, told = np.random.default_rng(17), chance._normals(), {"false_alarm": 1e-5}
    runs = (simulate_alignment(model, d, 1.0, rng, **options) for _ in range(10_000))
    square = np.array([run.query_cos**2 for run in runs])

    def power(factors):
        monkeypatch.setattr(chance, "_normals", lambda: np.array(factors)[:, None] * normals)
        return predict_chance(model, d, 1.0, **options).power

    agree(power([1, 1, 1, 1]), square, claim="power-of-noise", **told)
    for wrong in ([1, 1, 0, 1], [1, 1, 1, 0], [1, 1, 1.2, 1], [1, 1, 1, 1.2]):
        with pytest.raises(AgreementError):
            agree(power(wrong), square, claim="power-of-noise-corrupted", **told)


@pytest.mark.parametrize("loss", ["logistic", "square"])
@pytest.mark.parametrize("pi", [0.5, 0.2])
def test_wide_tokens_bring_the_limit_back(pi, loss):
    model = SparseTokens(L=10, R=3, theta=2.0, pi=pi)
    found = predict_chance(model, 10**9, 1.5, loss=loss)
    limit = predict_alignment(model, 1.5, loss=loss).query_cos
    assert found.query_cos == pytest.approx(limit, rel=2e-3)
    assert found.power == pytest.approx(limit**2, rel=4e-3)


@pytest.mark.parametrize(("pi", "lr_b", "loss"), [(0.5, 0.5, "logistic"), (0.3, 2.0, "square")])
def test_the_imbalance_against_the_points(pi, lr_b, loss):
    """The ratio of echo to noise of the quasi-random points, at a vanishing first step."""
    model, d = SparseTokens(400, 1, 1.0, pi), 10**8
    options = {"loss": loss, "lr_w": 1e-3, "lr_b": lr_b}
    _, echo = chance_cosines(model, d, 2.0, **options)
    spread = imbalance(pi, loss=loss, lr_b=lr_b) * np.sqrt((model.L - 1) / d)
    assert echo.std() == pytest.approx(abs(spread), rel=0.01)
    assert imbalance(0.5, loss="square", lr_b=1.0) == pytest.approx(0, abs=1e-9)


def test_less_than_one_sample_is_refused():
    for call in (chance_cosines, predict_chance):
        with pytest.raises(ValueError, match=r"^alpha0 = 0.1 is not allowed: alpha0·d = 0.3 "):
            call(PAPER, 3, 0.1)
    assert np.isfinite(predict_chance(PAPER, 3, 0.34).query_cos)
