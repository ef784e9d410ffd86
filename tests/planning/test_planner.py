"""Plans: their rows against the theory they rest on, against tokens, and as they are printed."""

import dataclasses
import json
import math

import numpy as np
import pytest

from needle import __main__ as command
from needle.data.tokens import SparseTokens
from needle.learning.limit import predict_learning
from needle.planning import planner
from needle.planning.answer import LEARNERS, advise
from needle.planning.planner import plan
from needle.planning.printed import GROUPS, percent
from needle.planning.tuner import RATE_W, Recipe
from needle.readout.fit import fit_readout
from needle.steps.rates import calibrated_rate
from needle.steps.rule import two_steps
from utils.agreement import AgreementError, agree

SMALL = {"L": 20, "R": 2, "d": 100, "n": 300, "pi": 0.3}


@pytest.fixture(scope="module")
def made():
    return plan(**SMALL)


@pytest.mark.slow
def test_rows_are_in_order_and_in_bounds(made):
    assert len(made.rows) == 8
    strengths = [row.theta for row in made.rows]
    assert strengths == sorted(strengths)
    for row in made.rows:
        assert row.silent == 0.3
        assert row.best_possible <= min(row.pooled, row.attention, row.twice) * 1.02
        assert max(row.pooled, row.attention, row.twice) < 0.305
        assert 0 < row.share < 1 and 0 <= row.cosine <= 1
        assert all(0.49 <= row.auc[name] <= 1 + 1e-9 for name in LEARNERS)
        assert row.advice.endswith(".") and row.advice.count("\n") == 0
    for name in ("pooled", "attention", "twice", "best_possible"):
        errors = [getattr(row, name) for row in made.rows]
        assert errors == sorted(errors, reverse=True)


@pytest.mark.slow
def test_the_range_brackets_success(made):
    assert made.rows[0].attention > made.error > made.rows[-1].attention
    needed = made.needed
    assert needed["best_possible"] < needed["twice"] < needed["attention"] < needed["pooled"]
    row = plan(**SMALL, theta=needed["attention"]).rows[0]
    assert row.attention == pytest.approx(made.error, rel=0.1)


@pytest.mark.slow
def test_the_best_learner_is_that_of_the_learning_curve(made):
    row = made.rows[3]
    best = predict_learning(SparseTokens(20, 2, row.theta, 0.3), 3.0)
    assert row.best_possible == pytest.approx(best.test_error, rel=1e-9)
    assert row.auc["best_possible"] > max(row.auc["pooled"], row.auc["attention"]) - 1e-3


@pytest.mark.slow
@pytest.mark.false_alarm(0.0001)
def test_literal_tokens_follow_the_plan():
    """Error of the advice on tokens in three sizes, extrapolated. False alarm 10⁻⁴; a plan for ten
    per cent more signal is refused."""
    row, stronger = plan(**SMALL, theta=[4.0, 4.4]).rows
    model = SparseTokens(20, 2, 4.0, 0.3)

    def run(d, k):
        rng = np.random.default_rng([d, k])
        X, y, _ = model.sample(3 * d, d, rng)
        rate = calibrated_rate(float(np.mean(y > 0)))
        q = two_steps(X, y, lr_w=RATE_W, lr_b=rate, balanced=row.balanced).q
        q *= row.twice_temperature / np.linalg.norm(q)

        def features(X):
            s = np.exp(X @ q - (X @ q).max(axis=1, keepdims=True))
            return np.einsum("nl,nld->nd", s / s.sum(axis=1, keepdims=True), X)

        fit = fit_readout(features(X), y, row.twice_ridge)
        X, y, _ = model.sample(1000, d, rng)
        return float(np.mean((features(X) @ fit.w + fit.b > 0) != (y > 0)))

    sizes = (50, 100, 150)
    trials = [np.array([run(d, k) for k in range(30)]) for d in sizes]
    agree(row.twice, trials, sizes=sizes, claim="plan-on-tokens")
    with pytest.raises(AgreementError):
        agree(stronger.twice, trials, sizes=sizes, claim="plan-on-tokens")


def test_a_row_does_not_depend_on_the_other_strengths():
    """The same numbers to the last digit, in whatever company and order a strength is asked for."""
    [alone], company = plan(**SMALL, theta=4.0).rows, plan(**SMALL, theta=[4.4, 4.0, 3.1])
    assert company.rows[1] == alone


@pytest.mark.slow
def test_what_is_needed_does_not_depend_on_the_strengths(made):
    assert plan(**SMALL, theta=7.0).needed == made.needed


@pytest.mark.slow
def test_a_share_can_be_imposed():
    row = plan(**SMALL, theta=4.0, alpha_share=0.25).rows[0]
    free = plan(**SMALL, theta=4.0).rows[0]
    assert row.share == pytest.approx(0.25)
    assert row.attention >= free.attention * 0.995


@pytest.mark.slow
def test_a_plain_case_has_no_warning_but_for_straws(made):
    assert made.warnings == ()
    assert any("straws" in text for row in made.rows for text in row.warnings)


@pytest.mark.slow
def test_warnings_say_where_the_theory_is_strained():
    wide = plan(L=2000, R=3, d=64, n=300, pi=0.05, theta=9.0, balanced=False)
    assert "L = 2000 is large against d = 64" in wide.warnings[0]
    assert "only about 15 positive bags" in wide.warnings[1]
    assert "bias rates as slow as 0.5" in wide.rows[0].warnings[0]
    tiny = plan(L=4, R=1, d=100, n=50, pi=0.5, theta=3.0)
    assert any("αL" in text for text in tiny.warnings)
    hard = plan(L=500, R=1, d=100, n=20, pi=0.5, theta=6.0).rows[0]
    assert any("hard phase" in text for text in hard.warnings)


def test_advice_covers_every_case():
    def recipe(error, auc=0.5):
        return Recipe(error, auc, 0.05, 0.5, 2.0, 0.1, 0.9)

    said = {
        "nobody does better": (0.3, recipe(0.3), recipe(0.3), recipe(0.3), recipe(0.3)),
        "enough for a ranking": (0.05, recipe(0.05, 0.8), recipe(0.05), None, recipe(0.049)),
        "message passing": (0.3, recipe(0.3), recipe(0.29), recipe(0.3), recipe(0.01)),
        "pooling beats": (0.3, recipe(0.1), recipe(0.15), recipe(0.15), recipe(0.1)),
        "as good as": (0.3, recipe(0.1), recipe(0.1), recipe(0.1), recipe(0.1)),
        "all data twice": (0.3, recipe(0.3), recipe(0.1), recipe(0.05), recipe(0.01)),
        "50 % of the data": (0.3, recipe(0.3), recipe(0.05), None, recipe(0.01)),
        "50 % of the data for": (0.3, recipe(0.3), recipe(0.05), recipe(0.1), recipe(0.01)),
    }
    for words, case in said.items():
        assert words in advise(*case)[1], words


@pytest.mark.slow
def test_it_prints_the_same_everywhere(made, capsys, monkeypatch):
    asked = {}

    def recorded(**options):
        asked.update(options)
        return made

    monkeypatch.setattr(planner, "plan", recorded)
    arguments = [word for name, value in SMALL.items() for word in (f"--{name}", str(value))]
    arguments = ["plan", *arguments, "--theta", "3.5", "4.5"]
    assert command.main(arguments) == 0
    assert capsys.readouterr().out.rstrip("\n") == repr(made)
    assert command.main([*arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(made.as_dict()))
    assert asked == {
        **SMALL, "theta": [3.5, 4.5], "alpha_share": None, "loss": "logistic", "error": None,
        "false_alarms": 0.05, "verbose": True,
    }  # fmt: skip
    text, html = repr(made), made._repr_html_()
    assert max(map(len, text.splitlines())) <= 80
    heads = [word for group, names in GROUPS for word in (group, *names)]
    for word in (*heads, percent(made.rows[1].twice)):
        assert word in text and word in html
    assert text.index("Use attention") < text.index("averaging")  # advice first


@pytest.mark.slow
def test_what_is_out_of_reach_is_said_and_is_no_number(made):
    needs = {**made.needed, "pooled": math.inf, "twice": math.nan}
    far = dataclasses.replace(made, search=needs.get)
    found = json.loads(json.dumps(far.as_dict(), allow_nan=False))["needed"]
    assert found["pooled"] is None and found["twice"] is None
    assert found["attention"] == pytest.approx(made.needed["attention"])
    assert "averaging out of reach, attention" in repr(far)


def test_the_command_refuses_with_the_usual_error(capsys):
    arguments = ["plan", "--L", "10", "--R", "12", "--d", "50", "--n", "100", "--pi", "0.5"]
    assert command.main(arguments) == 2
    assert capsys.readouterr().err == (
        "error: R = 12 is not allowed: R must be an integer in [1, 10]\n"
    )


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"L": 1}, "L"),
        ({"d": 0}, "d"),
        ({"n": 2.5}, "n"),
        ({"pi": 0.001}, "pi"),
        ({"theta": -1.0}, "theta"),
        ({"theta": []}, "theta"),
        ({"alpha_share": 1.0}, "alpha_share"),
        ({"loss": "hinge"}, "loss"),
        ({"error": 0.4}, "error"),
        ({"false_alarms": 1.0}, "false_alarms"),
    ],
)
def test_bad_input_is_named(changed, name):
    with pytest.raises(ValueError, match=f"{name} = "):
        plan(**{**SMALL, **changed})


@pytest.mark.slow
def test_extremes_are_survived():
    for setting in (
        {"L": 2, "R": 1, "d": 2, "n": 4, "pi": 0.5},
        {"L": 30, "R": 30, "d": 50, "n": 100, "pi": 0.6},
        {"L": 10**5, "R": 1, "d": 1000, "n": 5000, "pi": 0.5},
    ):
        row = plan(**setting, theta=2.0).rows[0]
        assert math.isfinite(row.attention) and row.attention <= row.silent + 1e-6
