"""The report on bags: what is measured, tested, counted, promised and withheld."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import combinations, permutations

import numpy as np
import pytest
from scipy.stats import binom, norm

from needle.bags import chance, reporting
from needle.bags.arrays import Bags, as_bags
from needle.bags.chance import evidence
from needle.bags.counting import COUNTS, Count, _likelihood, _posterior, count_needles
from needle.bags.folds import auc, blocks, splits
from needle.bags.leaks import shared_tokens
from needle.bags.logistic import readouts
from needle.bags.nesting import RIDGES, SCALES, TAUS, nested
from needle.bags.permuted import crossed, halves, labelings, neutral
from needle.bags.planting import needle_chances, planted_error
from needle.bags.reporting import report
from needle.bags.verdict import Report
from needle.data.tokens import SparseTokens
from needle.readout.fit import fit_readout

FALSE_ALARM = 1e-4


def hidden(n: int, L: int, d: int, theta: float, seed: int, R: int = 1) -> tuple[Bags, np.ndarray]:
    rng = np.random.default_rng(seed)
    X, y, _ = SparseTokens(L=L, R=R, theta=theta, pi=0.5).sample(n, d, rng)
    return as_bags(X), y


@pytest.fixture(scope="module")
def found() -> Report:
    return report(*hidden(120, 20, 8, 5.0, 0))


@pytest.mark.slow
def test_it_says_that_attention_pays(found: Report) -> None:
    assert found.advice.startswith("Attention pays")
    assert set(found.measured) == {"pooled", "needle", "max", "noisy_or", "gated", "size"}
    assert found.signal.pvalue == 0.005 and found.independence == pytest.approx(1, abs=0.2)
    assert found.needles.found.R == 1 and found.needles.told
    for one in found.measured.values():
        assert one.interval[0] <= one.error <= one.interval[1] and 0 <= one.auc <= 1
    assert found.measured["size"].auc == 0.5
    gap = found.promised["needle"] - found.measured["needle"].error
    assert abs(gap) < 0.05 and found.withheld == ""
    assert not any("leak" in text for text in found.warnings)
    text, html = str(found), found._repr_html_()
    assert max(map(len, text.splitlines())) <= 80
    assert found.advice in html and "two-step attention" in text
    page = found.page()
    assert page.startswith("<!doctype html>") and "<svg" in page
    assert "src=" not in page and "<link" not in page


@pytest.mark.slow
def test_the_model_of_a_report_is_fitted(found: Report) -> None:
    bags, y = hidden(200, 20, 8, 5.0, 1)
    assert np.mean((found.model.decision_function(bags) > 0) != (y > 0)) < 0.25
    assert found.figure().axes


@pytest.mark.slow
def test_the_same_seed_gives_the_same_report() -> None:
    bags, y = hidden(60, 6, 5, 4.0, 2)
    one, two, other = (report(bags, y, random_state=seed) for seed in (1, 1, 2))
    assert one.signal == two.signal and one.difference == two.difference
    assert {k: m.error for k, m in one.measured.items()} == {
        k: m.error for k, m in two.measured.items()
    }
    assert one.difference != other.difference


def told(one: Report) -> dict:
    """Everything a report says but the seconds."""
    found = {name: (m.auc, m.error, m.interval) for name, m in one.measured.items()}
    score = one.model.scorer_
    parts = {"query": score.query.tolist(), "coef": score.coef.tolist()}
    names = ("differences", "signal", "needles", "promised", "longer", "advice", "warnings")
    return found | parts | {name: getattr(one, name) for name in names}


@pytest.mark.slow
def test_an_executor_gives_the_same_report() -> None:
    """Two threads, pieces in any order; and pairs of learners are judged on the same folds."""
    bags, y = hidden(60, 6, 5, 4.0, 2)
    alone = report(bags, y, random_state=1)
    with ThreadPoolExecutor(2) as executor:
        assert told(report(bags, y, random_state=1, executor=executor)) == told(alone)
    gaps, names = alone.differences, list(alone.measured)
    assert set(gaps) == set(permutations(names, 2)) and alone.difference == gaps["needle", "pooled"]
    for (one, other), (gap, (low, high)) in gaps.items():
        assert low <= gap <= high
        back, (low_back, high_back) = gaps[other, one]
        assert (gap, low, high) == pytest.approx((-back, -high_back, -low_back))
    rivals = [alone.measured[name].error for name in ("max", "gated")]
    assert gaps["max", "gated"][0] == pytest.approx(rivals[0] - rivals[1])


@pytest.mark.slow
def test_labels_of_any_kind_and_groups_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reporting, "_rivals", lambda bags: ())
    bags, y = hidden(60, 6, 5, 6.0, 3)
    groups = np.repeat(np.arange(20), 3)
    made = report(list(bags), np.where(y > 0, "sick", "healthy"), groups=groups)
    assert made.model.classes_.tolist() == ["healthy", "sick"]
    for bad, words in (
        ({"groups": groups[:5]}, "groups of shape"),
        ({"groups": np.arange(60) % 2}, "at least three groups"),
        ({"random_state": -1}, "random_state"),
        ({"executor": 4}, "executor = 4"),
    ):
        with pytest.raises(ValueError, match=words):
            report(bags, y, **bad)


def test_no_block_splits_a_group_and_labels_are_even() -> None:
    rng = np.random.default_rng(0)
    y = np.where(rng.random(200) < 0.3, 1, -1)
    groups = rng.integers(40, size=200)
    block = blocks(y, 5, rng, groups)
    assert all(len(np.unique(block[groups == g])) == 1 for g in np.unique(groups))
    shares = [np.mean(y[block == k] > 0) for k in range(5)]
    assert max(shares) - min(shares) < 0.15
    plain = blocks(y, 5, rng)
    counts = [np.sum(y[plain == k] > 0) for k in range(5)]
    assert max(counts) - min(counts) <= 1
    assert len(splits(5, np.repeat([1, -1], [3, 9]), 0)) == 3


@pytest.mark.false_alarm(FALSE_ALARM)
def test_noise_has_no_signal_where_tokens_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """N ≈ d: at most as many of 40 draws below 5 % as the binomial law allows; and a needle is
    found at the same size."""
    monkeypatch.setattr(chance, "count_needles", lambda *_: Count(1, None, 0.0))
    low = 0
    for seed in range(40):
        rng = np.random.default_rng([seed, 1])
        bags = as_bags(rng.normal(size=(30, 4, 60)))
        y = rng.permutation(np.repeat([1, -1], 15))
        low += evidence(bags, y, rng, permutations=19, shuffles=0)[0].pvalue <= 0.05
    assert low <= binom.isf(FALSE_ALARM, 40, 0.05)
    bags, y = hidden(60, 4, 60, 9.0, 4)
    assert evidence(bags, y, np.random.default_rng(0), shuffles=0)[0].pvalue < 0.02


@pytest.mark.slow
def test_a_needle_that_only_a_noisy_or_sees_is_found() -> None:
    """One token far out along an axis, the others moved back: the means of bags are alike."""
    rng = np.random.default_rng(13)
    y, tokens = np.resize([1, -1], 160), rng.normal(size=(160, 30, 4))
    tokens[y > 0, 0, 0] += 6
    tokens[y > 0, 1:, 0] -= 6 / 29
    signal, _ = evidence(as_bags(tokens), y, np.random.default_rng(0), shuffles=0)
    assert signal.auc["noisy_or"] > 0.8 > 0.6 > signal.auc["mean"]
    assert signal.pvalue == 0.005


def test_permutations_stay_within_halves_and_groups() -> None:
    rng = np.random.default_rng(1)
    y = np.where(rng.random(60) < 0.4, 1, -1)
    half = halves(y, rng)
    found = labelings(y, half, 50, rng)
    for k in (0, 1):
        assert (found[half == k].sum(axis=0) == y[half == k].sum()).all()
    assert (found[:, 0] == y).all() and len(np.unique(found, axis=1).T) > 45
    groups = np.repeat(np.arange(20), 3)
    whole = np.repeat(y[:20], 3)
    found = labelings(whole, halves(whole, rng, groups), 20, rng, groups)
    assert (found.reshape(20, 3, 21).std(axis=1) == 0).all()
    mixed = labelings(y, half, 20, rng, groups)
    assert (mixed.reshape(20, 3, 21).sum(axis=1).std(axis=1) == 0).all()


def test_a_token_is_never_seen_by_a_query_that_knew_it() -> None:
    bags, y = hidden(40, 5, 6, 3.0, 5)
    half = np.arange(40) % 2
    white = neutral(bags)
    [(_, before)] = crossed(bags, y[:, None], half, white)
    changed = np.where(np.arange(40) == 7, -y, y)  # bag 7 is in half 1
    [(_, after)] = crossed(bags, changed[:, None], half, white)
    same = (before == after).all(axis=1)
    assert same[half[bags.owner] == 1].all() and not same[half[bags.owner] == 0].any()


def test_the_likelihood_of_bags_is_that_of_all_subsets() -> None:
    """e_R and the posterior by enumeration, tokens in bins."""
    rng = np.random.default_rng(2)
    place = rng.integers(40, size=7)
    tally = np.bincount(place, minlength=40)[None].astype(float)
    ratio = rng.exponential(size=(1, 40))
    r = ratio[0, place]
    for R in (1, 2, 3):
        terms = [(np.prod(r[list(S)]), S) for S in combinations(range(7), R)]
        total = sum(t for t, _ in terms)
        assert _likelihood(tally, ratio, R)[0] == pytest.approx(np.log(total / len(terms)))
        odds = [sum(t for t, S in terms if k in S) / total for k in range(7)]
        assert _posterior(tally, ratio, R)[0, place] == pytest.approx(odds)
    share = np.log(0.75 + 0.25 * r).sum()
    assert _likelihood(tally, ratio, 0.25)[0] == pytest.approx(share)
    short = np.bincount(place[:2], minlength=40)[None].astype(float)
    assert _likelihood(short, ratio, 3)[0] == pytest.approx(np.log(np.prod(r[:2])))


@pytest.mark.parametrize("R", [1, 3])
def test_needles_are_counted_without_their_law(R: int) -> None:
    """Needles that scatter twice as much as straws, whose law nobody tells."""
    rng = np.random.default_rng(R)
    X, y, where = SparseTokens(L=30, R=R, theta=6.0, pi=0.5).sample(240, 12, rng)
    X += where[:, :, None] * rng.normal(size=X.shape)
    bags, half = as_bags(X), np.arange(240) % 2
    [(_, heights)] = crossed(bags, y[:, None], half, neutral(bags))
    found = count_needles(bags, y, heights[:, 0], half)
    assert found.R == R and found.gain > 20
    assert 1 in COUNTS and 1.0 not in map(type, COUNTS)


def test_planted_needles_promise_what_is_found() -> None:
    """Needles that scatter: a Gaussian plan is ten times too low, planting within half."""
    rng = np.random.default_rng(6)
    X, y, where = SparseTokens(L=30, R=1, theta=6.0, pi=0.5).sample(300, 20, rng)
    X += where[:, :, None] * 1.7 * rng.normal(size=X.shape)
    bags, block = as_bags(X), np.arange(300) % 5
    run = nested(bags, y, block)
    [(_, heights)] = crossed(bags, y[:, None], block % 2, neutral(bags))
    count = count_needles(bags, y, heights[:, 0], block % 2)
    chances = needle_chances(bags, y, block, run.models["attend"], count)
    said = planted_error(bags, y, block, run.models["needle"], chances, count, rng)
    error = np.mean((run.scores["needle"] > 0) != (y > 0))
    assert 0.04 < error < 0.25
    assert abs(said - error) < 3.9 * np.sqrt(error * (1 - error) / 300)


def test_nothing_in_a_nested_fold_sees_its_judge() -> None:
    """Scores of a block stay when its labels are turned round, and when other bags of it change."""
    bags, y = hidden(50, 5, 4, 4.0, 8)
    block = np.arange(50) % 5
    turned = np.where(block == 2, -y, y)
    one, two = nested(bags, y, block), nested(bags, turned, block)
    assert (one.scores["needle"][block == 2] == two.scores["needle"][block == 2]).all()
    assert not (one.scores["needle"] == two.scores["needle"])[block != 2].all()
    assert one.losses.shape == (len(SCALES), len(TAUS), len(RIDGES))


def test_a_path_of_readouts_is_the_readout_at_each_ridge() -> None:
    rng = np.random.default_rng(9)
    for n, p in ((60, 5), (30, 80)):
        F, y = rng.normal(size=(n, p)), np.where(rng.random(n) < 0.4, 1, -1)
        for lam, line in zip((0.01, 1.0), readouts(F, y, (0.01, 1.0)), strict=True):
            fit = fit_readout(F, y, lam)
            assert line.w == pytest.approx(fit.w, abs=2e-6)
            assert line.b == pytest.approx(fit.b, abs=2e-6)
        twice = readouts(np.vstack([F, F[:9]]), np.append(y, y[:9]), (0.1,))[0]
        weight = np.where(np.arange(n) < 9, 2.0, 1.0)
        assert readouts(F, y, (0.1,), weight=weight)[0].w == pytest.approx(twice.w, abs=1e-8)


def test_leaks_are_named() -> None:
    rng = np.random.default_rng(10)
    tokens = rng.normal(size=(40, 5, 3))
    bags = as_bags(tokens)
    assert shared_tokens(bags) == 0.0
    tokens[1, 0] = tokens[0, 0]
    tokens[3:, 1] = 0.0  # padding
    assert shared_tokens(as_bags(tokens)) == pytest.approx(2 / (200 - 37))
    assert shared_tokens(as_bags(tokens), np.arange(40) // 2) == 0.0


def test_an_area_is_the_share_of_pairs() -> None:
    rng = np.random.default_rng(11)
    s, y = np.round(rng.normal(size=50), 1), np.where(rng.random(50) < 0.5, 1, -1)
    wins = (s[y > 0][:, None] > s[y < 0]) + 0.5 * (s[y > 0][:, None] == s[y < 0])
    assert auc(s, y) == pytest.approx(wins.mean())
    assert norm.cdf(0) == auc(s, np.ones(50))


@pytest.mark.slow
def test_leaks_and_dependence_withhold_the_promise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reporting, "_rivals", lambda bags: ())
    rng = np.random.default_rng(12)
    y = np.where(np.arange(80) % 2, 1, -1)
    tokens = [rng.normal(size=(8 + 6 * (s > 0), 5)) + rng.normal(size=5) for s in y]
    for bag, s in zip(tokens, y, strict=True):
        bag[0, 0] += 4 * (s > 0)
        bag[1] = 0.5  # in every bag
    made = report(tokens, y)
    assert made.promised == {"pooled": None, "needle": None} and made.independence > 2
    assert "belong together" in made.withheld
    assert sum(text.startswith("leak: ") for text in made.warnings) == 2
    assert made.measured["size"].auc == 1.0


@pytest.mark.slow
def test_what_stands_in_the_way_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Heavy tails; sizes that tell the label where tokens do not; bags of one token."""
    monkeypatch.setattr(reporting, "_rivals", lambda bags: ())
    rng = np.random.default_rng(14)
    y = np.resize([1, -1], 100)
    tokens = rng.standard_t(3, size=(100, 12, 5))
    tokens[y > 0, 0, 0] += 12
    assert any("heavy tails" in text for text in report(tokens, y).warnings)
    normal = report(rng.normal(size=(100, 12, 5)) + 0.5 * (y > 0)[:, None, None], y)
    assert not any("tails" in text for text in normal.warnings)
    told = report([rng.normal(size=(8 + 6 * (s > 0) + k % 3, 5)) for k, s in enumerate(y)], y)
    assert told.advice.startswith("Bag size alone tells more than the tokens: its error is 0.0 %")
    still = report(np.zeros((20, 3, 4)), y[:20])
    assert still.advice.startswith("Nothing found") and "points away" not in str(still)
    lone = report(rng.normal(size=(100, 1, 5)) + 1.5 * (y > 0)[:, None, None], y)
    assert lone.advice.startswith("A bag is one token here") and lone.longer == {}


@pytest.mark.slow
@pytest.mark.false_alarm(0.001)
def test_noise_is_called_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many tokens of negatives as entries, twenty draws: none of these seeds speaks up, and at
    one alarm in a hundred three are one in a thousand."""
    monkeypatch.setattr(reporting, "_rivals", lambda bags: ())
    monkeypatch.setattr(reporting, "REPETITIONS", 1)  # of the folds, which do not decide this
    said = []
    for seed in range(20):
        rng = np.random.default_rng([seed, 2])
        y = rng.permutation(np.repeat([1, -1], 12))
        said.append(report(rng.normal(size=(24, 3, 36)), y).advice)
    assert sum(text.startswith("Nothing found") for text in said) >= 18
