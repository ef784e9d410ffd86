"""Portraits of bags: estimates against the truth, assumptions against bags that break them."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.stats import binom, norm

import needle.bags.portrait as module
from needle.bags.arrays import as_bags
from needle.bags.assumptions import tails
from needle.bags.distance import distance, placement_auc, pooled_auc, training_error
from needle.bags.mixing import mixture
from needle.bags.portrait import CLEAR, estimate
from needle.data.tokens import SparseTokens
from needle.planning import Plan, PlanRow, Recipe
from utils.agreement import AgreementError, agree

RECIPE = Recipe(0.1, 0.9, 0.5, 0.5, 2.0, 0.1, 0.9)
MODEL = SparseTokens(L=30, R=2, theta=4.0, pi=0.3)


def portraits(model=MODEL, trials=60, n=200, d=30, change=lambda X, rng: X):
    found = []
    for k in range(trials):
        rng = np.random.default_rng([k, 3])
        X, y, _ = model.sample(n, d, rng)
        found.append(estimate(change(X, rng), y))
    return found


@cache
def kept(generator):
    """Drawn once for each source of random numbers: NEEDLE_SEED gives statistical tests another."""
    return portraits()


@pytest.fixture
def made():
    return kept(np.random.default_rng)


@pytest.mark.slow
@pytest.mark.false_alarm(0.0003)
def test_strength_and_needles_are_found(made):
    """False alarm 10⁻⁴ for the means, 2·10⁻⁴ for the intervals of δ and θ; other truths are
    refused."""
    assert all(one.separated for one in made)
    trials = {"R": np.array([one.R for one in made]), "theta": [one.theta for one in made]}
    agree({"R": 2.0, "theta": 4.0}, trials, claim="estimates")
    with pytest.raises(AgreementError):
        agree({"R": 2.1, "theta": 4.0}, trials, claim="estimates")
    inside = sum(one.delta_interval[0] < MODEL.snr < one.delta_interval[1] for one in made)
    strong = sum(one.theta_interval[0] < 4.0 < one.theta_interval[1] for one in made)
    fewest = binom.ppf(1e-4, len(made), 0.93)
    assert min(inside, strong) > fewest
    wrong = sum(one.delta_interval[0] < 1.25 * MODEL.snr < one.delta_interval[1] for one in made)
    assert wrong < fewest


@pytest.mark.slow
def test_rotated_scaled_and_shifted_bags_give_the_same(made):
    """Turns, scales and shifts change nothing; a linear map only what is shrunk differently."""
    rng = np.random.default_rng(5)
    A, shift = rng.normal(size=(30, 30)), 10 * rng.normal(size=30)
    X, y, _ = MODEL.sample(200, 30, np.random.default_rng([0, 3]))
    turned = estimate(7 * X @ np.linalg.qr(A)[0] + shift, y)
    assert turned.theta == pytest.approx(made[0].theta, rel=1e-5)
    assert turned.delta == pytest.approx(made[0].delta, rel=1e-5)
    found = estimate(X @ A + shift, y)
    for one in (found, made[0]):
        assert one.theta_interval[0] < 4.0 < one.theta_interval[1]
        assert one.delta_interval[0] < MODEL.snr < one.delta_interval[1]
    assert not found.assumptions[0].holds and made[0].assumptions[0].holds
    assert "whitened" in found.assumptions[0].words


@pytest.mark.slow
def test_broken_assumptions_are_told(made):
    assert all(a.holds for one in made for a in one.assumptions)

    def common(X, rng):
        return X + 0.5 * rng.standard_normal((len(X), 1, X.shape[2]))

    def heavy(X, rng):
        return X * np.sqrt(3 / rng.chisquare(5, size=(*X.shape[:2], 1)))

    (shared,), (wild,) = portraits(trials=1, change=common), portraits(trials=1, change=heavy)
    assert [a.holds for a in shared.assumptions] == [True, False, True]
    factor = 1 + 30 * 0.25  # 1 + Lρ/(1 − ρ) at ρ = 0.25/1.25
    assert shared.assumptions[1].value == pytest.approx(factor, rel=0.1)
    assert "share a common part" in shared.assumptions[1].words
    assert not wild.assumptions[2].holds and "heavy tails" in wild.assumptions[2].words
    assert "!! tails" in str(wild)


def test_no_strength_is_known_better_than_the_noise_it_is_measured_in():
    """The interval of a very strong θ is that of the noise level, from the tokens of negatives."""
    (found,) = portraits(SparseTokens(L=30, R=2, theta=30.0, pi=0.3), trials=1)
    low, high = found.theta_interval
    tokens = 30 * 200 * (1 - found.pi)
    shortest = 2 * 1.96 / np.sqrt(2 * tokens)
    assert shortest < np.log(high / low) < 1.3 * shortest
    assert low < 30 < high


def test_dense_signals_cannot_be_told_apart():
    for one in portraits(SparseTokens(L=30, R=30, theta=0.3, pi=0.5), trials=3):
        assert not one.separated and one.R is None
        assert "could not be told apart" in str(one)
        with pytest.raises(ValueError, match="R = None"):
            one.plan()


def test_no_signal_is_no_signal():
    found = portraits(SparseTokens(L=30, R=2, theta=0.0, pi=0.3), trials=12)
    assert sum(one.separated for one in found) == 0
    assert sum(one.delta_interval[0] == 0 for one in found) >= 8


@pytest.mark.slow
def test_a_portrait_feeds_the_plan(made, monkeypatch):
    asked = []
    row = PlanRow(4.0, 0.3, {}, "none", "", ())
    row = replace(row, recipes=dict.fromkeys(("pooled", "attention"), RECIPE))
    answer = Plan(30, 2, 30, 200, 0.3, "logistic", 4.0, 0.05, 0.05, (row,), ("one",), float)

    def planned(**options):
        asked.append(options)
        return answer

    monkeypatch.setattr(module, "plan", planned)
    said = made[0].plan()
    assert said.warnings[-1] == "one" and said.measured["pooled"] == made[0].auc
    made[0].plan(R=4, theta=3.0)
    assert asked[0]["theta"][1] == pytest.approx(made[0].theta * made[0].R / 2, abs=0.01)
    assert (asked[0]["L"], asked[0]["R"], asked[0]["d"], asked[0]["n"]) == (30, 2, 30, 200)
    assert (asked[1]["R"], asked[1]["theta"]) == (4, 3.0)


def test_ragged_bags_are_taken():
    rng = np.random.default_rng(0)
    bags, y = [], np.repeat([1, -1], [60, 100])
    for label in y:
        bag = rng.standard_normal((int(rng.integers(20, 60)), 20))
        if label > 0:
            bag[:2, 0] += 5.0
        bags.append(bag)
    found = estimate(bags, y)
    assert found.separated and found.theta == pytest.approx(5.0, abs=0.6)
    assert pytest.approx(2.0, abs=0.4) == found.R


def test_pieces_against_their_definitions():
    rng = np.random.default_rng(1)
    scores, y = np.round(rng.normal(size=200), 1), np.where(rng.random(200) < 0.4, 1, -1)
    yes, no = scores[y > 0][:, None], scores[y < 0]
    auc, error = placement_auc(scores, y)
    assert auc == pytest.approx(np.mean((yes > no) + 0.5 * (yes == no)), abs=1e-12)
    wins = (yes > no) + 0.5 * (yes == no)
    variances = (wins.mean(axis=1 - k).var(ddof=1) / wins.shape[k] for k in (0, 1))
    assert error == pytest.approx(np.sqrt(sum(variances)), rel=1e-9)
    for delta in (0.3, 2.0):
        D = delta**2 / np.sqrt(delta**2 + 0.7)
        assert distance(float(norm.cdf(D / np.sqrt(2))), 0.7) == pytest.approx(delta, rel=1e-9)
    heights = rng.standard_normal(100_000) + 4.0 * (rng.random(100_000) < 0.05)
    rho, mu, rho_error, mu_error, gain = mixture(heights)
    assert abs(rho - 0.05) < 4 * rho_error < 0.01 and abs(mu - 4) < 4 * mu_error < 0.2
    assert gain > 1000
    shifted = rng.standard_normal(100_000) + 0.3  # as if every token were a needle
    assert abs(mixture(shifted).gain) < CLEAR


@pytest.mark.parametrize(("delta", "d", "nu"), [(0.3, 30, 0.02), (1.5, 30, 0.02), (0.7, 300, 0.1)])
def test_the_error_of_training_is_the_slope_of_the_auc(delta, d, nu):
    """The AUC is Φ(δ⟨w, ξ⟩/(√2|w|)): its derivative in ⟨w, ξ⟩, times √ν."""

    def auc(along):
        return norm.cdf(delta * along / np.sqrt(2 * (delta**2 + d * nu)))

    step = 1e-5
    slope = (auc(delta + step) - auc(delta - step)) / (2 * step)
    found = training_error(float(auc(delta)), d, nu)
    assert found == pytest.approx(slope * np.sqrt(nu), rel=1e-8, abs=0)
    assert training_error(0.4, d, nu) == 0


def test_the_error_of_training_widens_the_interval(monkeypatch):
    """The two parts of the AUC's error, 0.03 and 0.04, add up in squares."""
    monkeypatch.setattr(module, "training_error", lambda *_: 0.04)
    monkeypatch.setattr(module, "pooled_auc", lambda *_: (0.7, 0.03, 0.02))
    X, y, _ = MODEL.sample(200, 30, np.random.default_rng(7))
    ends = tuple(distance(0.7 + side * 1.96 * 0.05, 30 * 0.02) for side in (-1, 1))
    assert estimate(X, y).delta_interval == pytest.approx(ends, rel=1e-12)


@pytest.mark.parametrize(
    ("bags", "labels", "words"),
    [
        ([], [], "bags"),
        (5, [1], "bags"),
        ([np.zeros((3, 2)), np.zeros((3, 4))] * 8, [1, -1] * 8, r"bags\[1\]"),
        (np.zeros((20, 3, 4)), [1, 0, 2, 0] * 5, "labels"),
        (np.zeros((20, 3, 4)), [1] * 20, "labels = 1 throughout"),
        (np.zeros((20, 3, 4)), [1] * 18 + [-1] * 2, "6 of"),
        (np.full((20, 3, 4), np.nan), [1, -1] * 10, r"bags\[0\]"),
    ],
)
def test_bad_input_is_named(bags, labels, words):
    with pytest.raises(ValueError, match=words):
        estimate(bags, labels)
    if words == "bags":
        with pytest.raises(ValueError, match="vary"):
            estimate(np.zeros((20, 3, 4)), [1, -1] * 10)


@pytest.mark.false_alarm(1e-4)
def test_noise_has_no_pooled_auc_where_tokens_are_few():
    """240 tokens of negatives in 200 dimensions: whitened with its judges inside it said .8.

    The mean of 12 draws is within 3.9 standard errors of one half, and would not be at .66.
    """
    found = []
    for seed in range(12):
        rng = np.random.default_rng([seed, 9])
        y = rng.permutation(np.repeat([1, -1], 24))
        bags = as_bags(rng.normal(size=(48, 10, 200)))
        found.append(pooled_auc(bags, y, bags.means())[0])
    error = np.std(found, ddof=1) / np.sqrt(12)
    assert abs(np.mean(found) - 0.5) < 3.9 * error < 0.16


def test_independence_does_not_ask_for_the_spectrum():
    """Independent tokens with variances 1/k², divided by d once: .7, and 'keep apart'."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 20, 40)) / np.arange(1, 41)
    y = np.where(rng.random(300) < 0.5, 1, -1)
    found = estimate(X, y).assumptions[1]
    assert found.holds and found.value == pytest.approx(1.0, abs=0.1)
    X += 0.2 * rng.normal(size=(300, 1, 40)) / np.arange(1, 41)  # 1 + L·0.04
    shared = estimate(X, y).assumptions[1]
    assert not shared.holds and shared.value == pytest.approx(1.8, abs=0.2)
    drawn_once = rng.normal(size=(300, 20, 40))
    apart = drawn_once - 0.9 * drawn_once.mean(axis=1, keepdims=True)
    found = estimate(apart, y).assumptions[1]
    assert found.value < 0.3 and "keep apart" in found.words and "one of" not in found.words


def test_heavy_tails_are_no_needles():
    """Gains that shuffled labels reach too are not told apart, however large they are."""
    for seed in range(4):
        rng = np.random.default_rng([seed, 5])
        X = rng.standard_t(2.5, size=(120, 15, 8))
        y = rng.permutation(np.repeat([1, -1], 60))
        assert not estimate(X, y).separated


def test_a_rounded_number_of_needles_keeps_their_sum():
    X, y, _ = SparseTokens(L=30, R=2, theta=5.0, pi=0.4).sample(300, 20, np.random.default_rng(4))
    found = replace(estimate(X, y), R=1.7, theta=5.0, theta_interval=(4.0, 6.0))
    needles, (low, middle, high) = found.strengths()
    assert needles == 2
    assert (low, middle, high) == pytest.approx((3.4, 4.25, 5.1))


def test_every_kind_of_bags_gives_the_same_portrait():
    rng = np.random.default_rng(6)
    X, y, _ = SparseTokens(L=12, R=1, theta=5.0, pi=0.5).sample(80, 6, rng)
    objects = np.empty(80, dtype=object)
    objects[:] = list(X)
    first = estimate(X, y)
    names = np.where(y > 0, "sick", "healthy")
    for bags, labels in (
        (list(X), (y > 0).astype(int)), (as_bags(X), names), (objects, y > 0),
        ([csr_array(bag) for bag in X], y),
    ):  # fmt: skip
        again = estimate(bags, labels)
        assert again.delta == pytest.approx(first.delta) and pytest.approx(first.R) == again.R


def test_what_was_measured_travels_with_the_plan():
    """A portrait whose attention is worse than promised says so in its plan."""
    rng = np.random.default_rng(7)
    X, y, _ = SparseTokens(L=10, R=1, theta=5.0, pi=0.5).sample(300, 10, rng)
    found = replace(estimate(X, y), needle_auc=0.4)
    made = found.plan(theta=5.0)
    assert any("validate instead" in text for text in made.warnings)
    assert "Measured on these bags" in repr(made) and "validate instead" in repr(made)


def test_what_fails_is_said_by_the_number_that_shows_it():
    """Shared parts larger than all else; and rare values that are no taller than Gaussian ones."""
    rng = np.random.default_rng(3)
    y = np.resize([1, -1], 80)
    common = [rng.normal(size=(10, 4)) / 9 + rng.normal(size=(1, 4)) for _ in y]
    assert "acts like one of less than one token" in str(estimate(common, y))
    flat = np.sign(rng.normal(size=4000)) + 0.05 * rng.normal(size=4000)
    told = tails(flat).words
    assert "other tails (kurtosis 1.0, Gaussian 3)" in told and "clip" not in told
    assert "heavy tails (largest" in tails(rng.standard_t(2, 4000)).words
