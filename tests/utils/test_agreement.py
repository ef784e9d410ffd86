"""The judge is judged: how often it refuses the truth, and how surely it refuses an error."""

import json
from dataclasses import fields

import numpy as np
import pytest
from scipy import stats

from needle.data.tokens import Tokens
from needle.kit.records import Alignment, Readout
from needle.oracle.rules import OracleError
from utils.agreement import MIME, Agreement, AgreementError, agree, extrapolate
from utils.results import Estimate, stored

READOUT = Readout(0.1, 0.2, 0.3, 1.0, 2.0, -0.5)


def refused(*args, **kwargs) -> bool:
    try:
        agree(*args, claim="test", **kwargs)
    except AgreementError:
        return True
    return False


def readouts(rng, trials=6, spread=0.01, shift=0.0):
    numbers = np.array([0.1, 0.2, 0.3, 1.0, 2.0, -0.5])
    return [Readout(*(numbers + shift + spread * rng.normal(size=6))) for _ in range(trials)]


@pytest.mark.false_alarm(0.0001)
@pytest.mark.parametrize(("trials", "rows"), [(2, 1), (4, 5), (30, 3)])
def test_refuses_true_claims_as_often_as_stated(trials, rows):
    """1000 true claims on normal data: binomial at the stated rate, not at three times that."""
    rng = np.random.default_rng(trials)
    wrong = sum(
        refused(np.ones(rows), rng.normal(1, 3, (trials, rows)), false_alarm=0.03)
        for _ in range(1000)
    )
    stated = 1 - (1 - 0.03 / rows) ** rows
    assert stats.binomtest(wrong, 1000, stated).pvalue > 1e-4
    assert stats.binomtest(wrong, 1000, 3 * stated).pvalue < 1e-2


@pytest.mark.false_alarm(0.0001)
def test_refuses_true_extrapolations_no_more_often_than_stated():
    """1000 true claims, 4 trials at each size, unequal spread; one-sided binomial check at 1e-4."""
    rng, sizes = np.random.default_rng(5), (50, 100, 200)
    wrong = 0
    for _ in range(1000):
        trials = [2 + 7 / d + d**-0.5 * rng.normal(size=4) for d in sizes]
        wrong += refused(2.0, trials, sizes=sizes, false_alarm=0.03)
    assert stats.binomtest(wrong, 1000, 0.03, alternative="greater").pvalue > 1e-4


def test_sizes_take_stored_estimates_as_they_take_trials():
    rng, sizes = np.random.default_rng(21), (50, 100, 200)
    trials = [{"x": 2 + 7 / d + rng.normal(size=30), "y": rng.normal(size=30)} for d in sizes]
    kept = [
        {k: Estimate(float(v.mean()), float(v.std(ddof=1)) / 30**0.5, 30) for k, v in group.items()}
        for group in trials
    ]
    theory = {"x": 2.0, "y": 0.0}
    live, stored = (agree(theory, group, sizes=sizes, claim="a") for group in (trials, kept))
    assert repr(live) == repr(stored)
    for name in theory:
        assert stored[name].z == pytest.approx(live[name].z, rel=1e-9)
    with pytest.raises(AgreementError):
        agree({"x": 60.0}, kept, sizes=sizes, claim="a")


@pytest.mark.false_alarm(5e-05)
def test_refuses_a_shift_of_five_standard_errors_more():
    """A shift 5 standard errors beyond the limit passes with probability Φ(−5) ≈ 3e-7."""
    rng = np.random.default_rng(6)
    limit = stats.norm.isf(1e-4 / 2 / 3)
    shift = np.array([0, 0, (limit + 5) / np.sqrt(400)])
    assert all(refused(np.zeros(3), shift + rng.normal(size=(400, 3))) for _ in range(50))


@pytest.mark.parametrize("trials", [3, 10])
def test_few_trials_are_judged_by_student(trials):
    """|t| just inside and just outside the quantile, built without chance."""
    quantile = stats.t.isf(1e-4 / 2, trials - 1)
    x = np.linspace(-1, 1, trials)
    error = x.std(ddof=1) / np.sqrt(trials)
    inside = agree(0.0, x + 0.999 * quantile * error, claim="inside")
    assert inside["value"].z == pytest.approx(inside.limit, rel=1e-3)
    assert refused(0.0, x + 1.001 * quantile * error)


def test_records_leave_out_what_cannot_be_compared():
    rng = np.random.default_rng(7)
    found = agree(READOUT, readouts(rng), claim="readout")
    assert [row.name for row in found.rows] == [
        "test_error", "train_loss", "train_error", "signal", "norm", "bias",
    ]  # fmt: skip
    assert found.trials == 6
    alignment = Alignment(0.5, 1.0, 0.7, 2.0, 1.4)
    names = [row.name for row in agree(alignment, [alignment] * 3, claim="alignment").rows]
    assert names[:5] == [field.name for field in fields(Alignment)][:5]
    assert "rate" not in names


def test_fields_choose_the_rows():
    rng = np.random.default_rng(8)
    assert len(agree(READOUT, readouts(rng), claim="two", fields=["norm", "bias"]).rows) == 2
    with pytest.raises(ValueError, match="nonsense"):
        agree(READOUT, readouts(rng), claim="none", fields=["nonsense"])
    with pytest.raises(ValueError, match="rate"):
        agree(Alignment(1, 1, 1, 1, 1), [Alignment(1, 1, 1, 1, 1)] * 3, claim="a", fields=["rate"])


def test_every_form_of_input_gives_the_same_rows():
    rng = np.random.default_rng(9)
    trials = rng.normal([1.0, 2.0], 0.1, size=(7, 2))
    named = {"a": 1.0, "b": 2.0}
    mean, error = trials.mean(axis=0), trials.std(axis=0, ddof=1) / np.sqrt(7)
    forms = [
        (named, trials, {}),
        (named, [{"a": a, "b": b} for a, b in trials], {}),
        (named, {"a": trials[:, 0], "b": trials[:, 1]}, {}),
        ([1.0, 2.0], trials, {}),
        ([1.0, 2.0], list(trials), {}),
        ([[1.0], [2.0]], trials[:, :, None], {}),
        ([1.0, 2.0], mean, {"standard_error": error, "trials": 7}),
        (
            named,
            dict(zip("ab", mean, strict=True)),
            {"standard_error": dict(zip("ab", error, strict=True)), "trials": 7},
        ),
    ]
    found = [agree(theory, x, claim="same", **more) for theory, x, more in forms]
    for other in found:
        assert [row[1:] for row in other.rows] == [
            pytest.approx(row[1:], rel=1e-9) for row in found[0].rows
        ]


def test_standard_error_alone_means_a_normal_law():
    found = agree(1.0, 1.3, standard_error=0.1, claim="given")
    assert found["value"].z == pytest.approx(3)
    assert found.trials is None
    assert found.limit == pytest.approx(stats.norm.isf(0.5e-4))


def test_without_spread_only_equality_passes():
    equal = agree(0.25, [0.25, 0.25, 0.25], claim="equal")
    assert equal["value"].z == 0
    assert "recomputed: equal" in repr(equal)
    assert agree(0.3, [0.1 + 0.2] * 3, claim="rounded").holds
    assert refused(0.25, [0.26, 0.26])
    assert refused(0.25, [0.25 * (1 + 2e-9)] * 2) and not refused(0.25, [0.25 * (1 + 5e-10)] * 2)
    assert refused(0.0, 1e-6, standard_error=0.0)
    assert not refused(0.0, 1e-6, standard_error=0.0, exact=1e-5)


@pytest.mark.parametrize("scale", [1e-30, 1e-14, 1.0, 1e14])
def test_no_spread_is_too_small_for_statistics(scale):
    """A deviation of 10^4 standard errors is refused at any scale: there is no absolute floor."""
    assert refused(0.0, scale, standard_error=1e-4 * scale)
    assert not refused(0.0, scale, standard_error=scale)
    assert refused(0.0, scale * np.array([1, 1 + 1e-4, 1 - 1e-4]))
    assert refused(0.0, scale * np.ones(3))


def test_a_measured_theory_adds_its_own_error():
    """Two joint standard errors are two in Welch's law; without the theory's they would be four."""
    rng = np.random.default_rng(3)
    trials, more = rng.normal(size=20), rng.normal(size=20)
    (whole, error), own = extrapolate((10, 20), [trials, more]), trials.std(ddof=1) / 20**0.5
    forms = [
        (trials.mean(), own, {"simulations": trials}),
        (whole, error, {"simulations": [trials, more], "sizes": (10, 20)}),
        (0.3, 0.2, {"simulations": OracleError(0.3, 0.2)}),
    ]
    for mean, spread, options in forms:
        theory = OracleError(float(mean - 4 * spread), float(3**0.5 * spread))
        z = agree(theory, claim="measured", **options)["value"].z
        assert 1.7 < z <= 2.0 + 1e-9
        assert agree(float(theory), claim="forgotten", false_alarm=1e-9, **options)["value"].z > 2.9
    degrees = 16 * 19  # (1 + 3)² over 1²/19
    expected = stats.norm.isf(stats.t.sf(2, degrees))
    measured = OracleError(float(trials.mean() - 4 * own), float(3**0.5 * own))
    assert agree(measured, trials, claim="welch")["value"].z == pytest.approx(expected)


def test_exact_is_asked_of_every_trial():
    with pytest.raises(ValueError, match=r"exact = 1\.0 is not allowed"):
        agree(1.0, [[1.0, 5.0], [1.0, 5.0]], sizes=(10, 20), exact=1.0, claim="vacuous")
    assert not refused(1.0, [1.0, 1.0 + 9e-7], exact=1e-6)
    assert refused(1.0, [1.0 - 2e-6, 1.0 + 2e-6], exact=1e-6)  # the mean alone would pass
    assert not refused(100.0, [100.0, 100.0 + 9e-5], exact=1e-6)
    assert refused(0.0, 1e-5, standard_error=1.0, exact=1e-6)


def test_records_that_carry_their_standard_error():
    exact = {"a": OracleError(0.10), "b": 0.20}
    runs = {"a": OracleError(0.12, 0.01), "b": OracleError(0.19, 0.01)}
    found = agree(exact, runs, claim="carried")
    assert (found["a"].z, found["b"].z) == pytest.approx((2.0, -1.0))
    assert found.trials is None
    assert agree(exact["a"], runs["a"], claim="one")["value"].z == pytest.approx(2.0)
    assert refused(exact, runs | {"a": OracleError(0.15, 0.01)})
    both = agree(OracleError(0.10, 0.04), OracleError(0.15, 0.03), claim="two-measured")
    assert both["value"].z == pytest.approx(1.0)
    with pytest.raises(ValueError, match="trials"):
        agree(exact, {"a": runs["a"], "b": 0.19}, claim="half")


@pytest.mark.parametrize(
    ("theory", "trials"),
    [
        (1.0, [1.0]),
        (1.0, []),
        (1.0, [1.0, np.nan]),
        (np.nan, [1.0, 2.0]),
        (None, [1.0, 2.0]),
        ("name", [1.0, 2.0]),
        ({}, [1.0, 2.0]),
        ({"a": None}, {"a": [1.0, 2.0]}),
        ({"a": 1.0}, {"b": [1.0, 2.0]}),
        ({"a": 1.0}, [{"a": 1.0}, {"a": None}]),
        ([1.0, 2.0], np.ones((3, 3))),
        (1.0, np.ones((3, 1))),
        (READOUT, [READOUT]),
        (READOUT, [READOUT, Readout(0.1, 0.2, 0.3, 1, 2, -0.5, converged=False)]),
    ],
)
def test_refuses_what_is_no_evidence(theory, trials):
    with pytest.raises((ValueError, TypeError)):
        agree(theory, trials, claim="bad")


@pytest.mark.parametrize("claim", ["Two Words", "snake_case", "-x", "x-", "x--y", "", "2x", None])
def test_claims_are_kebab_case(claim):
    with pytest.raises(ValueError, match="claim"):
        agree(1.0, [1.0, 1.0], claim=claim)


def test_other_arguments_are_checked():
    for bad in (0, 1, -1, np.nan):
        with pytest.raises(ValueError, match="false_alarm"):
            agree(1.0, [1.0, 1.0], claim="x", false_alarm=bad)
    with pytest.raises(ValueError, match="trials"):
        agree(1.0, 1.0, standard_error=0.1, trials=1, claim="x")
    with pytest.raises(ValueError, match="±"):
        agree(1.0, 1.0, standard_error=-0.1, claim="x")
    for sizes in ([100], [100, 100], [100, -1], [1, 2, 3]):
        with pytest.raises(ValueError, match="size"):
            extrapolate(sizes, [[1.0, 2.0]] * min(len(sizes), 2))


def test_the_error_carries_the_table():
    with pytest.raises(AgreementError) as caught:
        agree({"good": 0.0, "bad": 1.0}, {"good": [-1.0, 1.0], "bad": [0.0, 1e-9]}, claim="parts")
    found = caught.value.agreement
    assert isinstance(found, Agreement)
    assert isinstance(caught.value, AssertionError)
    assert not found.holds
    assert "bad" in str(caught.value)
    assert found["good"].z == 0
    assert found._repr_mimebundle_()[MIME]["verdict"] == "disagrees"
    with pytest.raises(AgreementError) as caught:
        agree(1.0, [2.0, 2.0], claim="flat")
    found = caught.value.agreement
    assert found["value"].z == np.inf
    record = found._repr_mimebundle_()[MIME]
    assert json.dumps(record, allow_nan=False) and record["rows"][0]["z"] is None
    assert "+inf" in repr(found)


def test_the_verdict_line_says_what_it_rests_on():
    found = agree(0.0, -0.25, standard_error=0.1, claim="one-line", false_alarm=1e-3)
    page = found._repr_mimebundle_()["text/html"]
    summary, table = page.split("</summary>")
    for text in ("<code>one-line</code>", "agrees", "max |z| 2.5 ≤ 3.3", "false alarm: 1 in 1,000"):
        assert text in summary
    assert page.startswith('<details class="agreement"><summary>')
    assert table.startswith('<table class="agreement">') and table.endswith("</table></details>")
    with pytest.raises(AgreementError, match=r"DISAGREES: max \|z\| 9.0 > 3.9 in 1 row"):
        agree(0.0, 0.9, standard_error=0.1, claim="one-line")


def test_what_the_notebook_stores():
    rng = np.random.default_rng(10)
    bundle = agree(READOUT, readouts(rng), claim="stored-claim")._repr_mimebundle_()
    record = bundle[MIME]
    assert record == json.loads(json.dumps(record, allow_nan=False))
    assert record["claim"] == "stored-claim"
    assert record["verdict"] == "agrees"
    assert record["trials"] == 6
    assert record["false_alarm"] == 1e-4
    assert record["rows"][0]["quantity"] == "test_error"
    assert set(record["rows"][0]) == {
        "quantity", "theory", "simulation", "z", "standard_error", "trials",
    }  # fmt: skip
    assert bundle["text/html"].count("<tr>") == 7
    assert "false alarm: 1 in 10,000" in bundle["text/plain"]
    escaped = agree({"<b>": 1.0}, {"<b>": [1.0, 1.0]}, claim="x")._repr_mimebundle_()
    assert "<b>" not in escaped["text/html"]


def test_print_is_stable_against_rounding():
    rng = np.random.default_rng(11)
    trials = rng.normal(1.0, 0.1, size=50)
    first = agree(1.0, trials, claim="stable")._repr_mimebundle_()
    assert agree(1.0 + 1e-11, trials * (1 + 1e-12), claim="stable")._repr_mimebundle_() == first


def test_zeros_carry_no_minus_sign():
    cells = agree(0.0, -1e-9, standard_error=1e-3, claim="nothing")["value"].cells()
    assert (cells["simulation"], cells["z"]) == ("0.0000", "+0.0")
    assert agree(-0.5, -0.5, standard_error=0.1, claim="some")["value"].cells()["theory"] == "-0.50"


def test_long_tables_show_the_loudest_rows():
    rng = np.random.default_rng(12)
    found = agree(np.zeros(40), rng.normal(size=(20, 40)), claim="long")
    assert "28 more rows" in repr(found)
    assert f"{max((row.z for row in found.rows), key=abs):+.1f}" in repr(found)
    assert len(found._repr_mimebundle_()[MIME]["rows"]) == 40


@pytest.mark.false_alarm(2e-05)
def test_extrapolation_is_unbiased_with_the_right_standard_error():
    """2000 fits: the mean within 4.42 errors (1e-5), the variance within its χ² bound (1e-5)."""
    rng, sizes, fits = np.random.default_rng(13), np.array([50, 100, 400]), 2000
    found = []
    for _ in range(fits):
        trials = [2 - 9 / d + d**-0.25 * rng.normal(size=8) for d in sizes]
        found.append(extrapolate(sizes, trials))
    value, error = np.transpose(found)
    spread = value.std(ddof=1)
    assert abs(value.mean() - 2) < 4.42 * spread / np.sqrt(fits)
    ratio = (error**2).mean() / spread**2
    low, high = stats.chi2.ppf([5e-6, 1 - 5e-6], fits - 1) / (fits - 1)
    assert low < 1 / ratio < high


def test_extrapolation_between_two_sizes_is_welch_s_test():
    """The line through two means is (d₂x₂ − d₁x₁)/(d₂ − d₁): scaled samples and SciPy's t-test."""
    rng = np.random.default_rng(16)
    small, large = rng.normal(1.0, 3.0, size=4), rng.normal(1.5, 1.0, size=7)
    found = agree(0.0, [small, large], sizes=[10, 30], claim="welch", false_alarm=1e-12)
    test = stats.ttest_ind(1.5 * large, 0.5 * small, equal_var=False)
    assert stats.norm.sf(abs(found["value"].z)) == pytest.approx(test.pvalue / 2, rel=1e-9)


def test_extrapolation_of_a_line_is_exact():
    sizes = [10, 30, 90]
    value, error = extrapolate(sizes, [[3 + 4 / d] * 5 for d in sizes])
    assert value == pytest.approx(3, abs=1e-12)
    assert error == pytest.approx(0, abs=1e-12)


def test_the_caption_counts_the_fewest_trials_at_any_size():
    rng = np.random.default_rng(15)
    found = agree(
        0.0, [rng.normal(size=n) for n in (9, 5, 7)], sizes=(10, 20, 40), claim="few-trials"
    )
    assert (found.trials, found.sizes) == (5, 3)
    assert "over 5 trials or more at each of 3 sizes" in repr(found)


def test_the_verdict_counts_the_fewest_trials_of_any_row():
    trials = {"many": [-1.0, 0.0, 1.0], "few": [-1.0, 1.0]}
    assert agree(dict.fromkeys(trials, 0.0), trials, claim="uneven").trials == 2


def test_sizes_extrapolate_every_field():
    rng, sizes = np.random.default_rng(14), (100, 200, 400)
    trials = [readouts(rng, trials=5, spread=0.02, shift=3 / d) for d in sizes]
    found = agree(READOUT, trials, sizes=sizes, claim="fields-at-infinity")
    norms = [[record.norm for record in group] for group in trials]
    assert (found["norm"].simulation, found["norm"].standard_error) == extrapolate(sizes, norms)
    assert len(found.rows) == 6


def test_named_tuples_are_records():
    tokens = Tokens(1.0, 2.0, 3.0)
    assert len(agree(tokens, [tokens, tokens], claim="tuple").rows) == 3


def test_extrapolation_of_trials_without_spread_is_held_exactly():
    flat = [[2.0] * 5, [2.0] * 5]
    assert agree(2.0, flat, sizes=[10, 20], claim="no-spread").rows[0].z == 0
    with pytest.raises(AgreementError):
        agree(2.1, flat, sizes=[10, 20], claim="no-spread")


def test_stored_results_by_their_parameters():
    run = stored("example")
    assert run.only(n=100) == run.at(n=100)[0][1]
    with pytest.raises(ValueError, match="2 points of example have them"):
        run.only()
    with pytest.raises(ValueError, match="example has none"):
        run.only(n=7)
