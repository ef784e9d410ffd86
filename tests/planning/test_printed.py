"""What a plan says, word by word, of rows made by hand; and a small plan, every number of it."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy.special import ndtr

from needle.data.law import Scores
from needle.data.tokens import SparseTokens
from needle.planning import plan
from needle.planning.answer import Plan, PlanRow
from needle.planning.planner import _Desk
from needle.planning.printed import html, percent
from needle.planning.tuner import Recipe, Tuner
from needle.steps.alignment import predict_alignment
from needle.steps.rates import RATE_W, calibrated_rate


def by_hand(twice: bool = True, measured: dict[str, float] | None = None) -> Plan:
    """Two strengths, one warning of both rows and one of the whole plan."""
    recipes = {
        "pooled": Recipe(0.25, 0.8, 0.3, 0.0, 0.0, 0.5, 0.0),
        "attention": Recipe(0.1234, 0.95, 0.6, 0.63, 2.34, 0.0123, 0.7),
        "twice": Recipe(0.0456, 0.987, 0.876, 1.0, 3.21, 0.234, 0.8),
        "best_possible": Recipe(0.0009, 0.999, 0.99, 0.0, 4.0, 0.0, 0.95),
    }
    if not twice:
        del recipes["twice"]
    rows = (
        PlanRow(4.0, 0.3, recipes, "twice", "Do this.", ("it is steep",)),
        PlanRow(5.5, 0.3, recipes, "pooled", "Do <that>.", ("it is steep", "it is late")),
    )
    needed = {"pooled": math.inf, "attention": 4.567, "twice": math.nan, "best_possible": 3.0}
    return Plan(
        20, 2, 100, 250, 0.3, "logistic", 4.2365, 0.05, 0.05, rows, ("bags are few",),
        needed.__getitem__, measured or {},
    )  # fmt: skip


TEXT = """\
250 bags of 20 tokens in 100 dimensions (α = 2.5), 30 % positive with 2 needles
each; logistic loss, calibrated bias rate 4.237.

θ = 4: Do this.
θ = 5.5: Do <that>.

errors, share of the query and recall in per cent
                       data split                all data twice         best
  θ always mean  error query sharp ridge  error sharp ridge   AUC rec.  known
  4   30.0 25.0   12.3    63   2.3 0.012    4.6   3.2  0.23 0.987   88   0.09
5.5   30.0 25.0   12.3    63   2.3 0.012    4.6   3.2  0.23 0.987   88   0.09
recall at 5% false alarms

Strength needed for an error of 5 %: averaging out of reach, attention, data
  split 4.57, best learner 3.
Mind: bags are few.
Mind, at θ = 4, 5.5: it is steep.
Mind, at θ = 5.5: it is late."""
CELLS = ["30.0", "25.0", "12.3", "63", "2.3", "0.012", "4.6", "3.2", "0.23", "0.987", "88", "0.09"]


def test_the_text_is_this():
    assert repr(by_hand()) == TEXT
    told = repr(by_hand(measured={"attention": 0.91234, "pooled": 0.7}))
    assert "Measured on these bags, AUC: attention, data split 0.912, averaging 0.700." in told
    wide = repr(by_hand(twice=False))
    assert "  4   30.0 25.0   12.3    63   2.3 0.012      –     –     –   –    –   0.09" in wide


def test_the_page_is_this():
    """Advice, table and notes word by word; what is chosen is bold."""
    shown = html(by_hand())
    body = shown[shown.index("<tbody>") : shown.index("</tbody>")]
    cells = re.findall(r"<td[^>]*>(.*?)</td>", body)
    bold = [[cell == f"<b>{x}</b>" for x in CELLS] for cell in ("<b>4.6</b>", "<b>25.0</b>")]
    told = [f"<b>{x}</b>" if b else x for row in bold for x, b in zip(CELLS, row, strict=True)]
    assert cells == ["4", *told[:12], "5.5", *told[12:]]
    heads = re.findall(r"<th(?: [^>]*)?>(.*?)</th>", shown)
    assert heads == [
        *("", "data split", "all data twice", "best", "θ", "always", "averaging"),
        *("error", "query", "sharp", "ridge", "error", "sharp", "ridge", "AUC", "recall", "known"),
    ]
    assert re.findall(r'colspan="(\d)"', shown) == ["3", "4", "5", "1"]
    assert re.findall(r"<p>(.*?)</p>", shown) == [
        "250 bags of 20 tokens in 100 dimensions (α = 2.5), 30 % positive with 2 needles each; "
        "logistic loss, calibrated bias rate 4.237.",
        "<b>θ = 4.</b> Do this.",
        "<b>θ = 5.5.</b> Do &lt;that&gt;.",
        "Strength needed for an error of 5 %: averaging out of reach, attention, data split 4.57, "
        "best learner 3.",
        "Mind: bags are few.",
        "Mind, at θ = 4, 5.5: it is steep.",
        "Mind, at θ = 5.5: it is late.",
    ]
    assert "Errors, share of the query and recall (at 5% false alarms) in per cent." in shown
    assert "Do this.</p><p><b>" in shown
    made = by_hand()
    split = replace(made, rows=(replace(made.rows[0], choice="attention"),))
    assert "<b>12.3</b>" in html(split) and "<b>4.6</b>" not in html(split)


def test_small_errors_have_two_decimals_of_a_per_cent():
    assert [percent(x) for x in (0.0099, 1e-4, 0.01, math.nan)] == ["0.99", "0.01", "1.0", "–"]


@pytest.mark.parametrize("loss", ["logistic", "square"])
def test_the_cosine_is_that_of_the_plan_s_own_loss(loss):
    found = Tuner(10, 1, 100, 150, 0.7, loss=loss).cosine(4.0, 1.5)
    steps = {"lr_w": RATE_W, "lr_b": calibrated_rate(0.7, loss)}
    limit = predict_alignment(SparseTokens(10, 1, 4.0, 0.7), 1.5, loss=loss, **steps)
    assert found == limit.query_cos > 0.5


def test_as_a_dictionary_it_is_numbers_and_text():
    found = json.loads(json.dumps(by_hand(measured={"pooled": 0.7}).as_dict(), allow_nan=False))
    rows = found.pop("rows")
    assert found == {
        "L": 20, "R": 2, "d": 100, "n": 250, "pi": 0.3, "loss": "logistic", "rate": 4.2365,
        "error": 0.05, "false_alarms": 0.05, "warnings": ["bags are few"],
        "measured": {"pooled": 0.7},
        "needed": {"pooled": None, "attention": 4.567, "twice": None, "best_possible": 3.0},
    }  # fmt: skip
    assert [row["theta"] for row in rows] == [4.0, 5.5] and rows[1]["choice"] == "pooled"
    assert rows[0]["recipes"]["twice"]["temperature"] == 3.21


# error, AUC, recall, share, sharpness, ridge, cosine; pooling and the best learner have no search
SMALL = {
    "pooled": (0.28248, 0.6917, 0.2831, 0.0, 0.0, 0.0316, 0.0),
    "attention": (0.12343, 0.9424, 0.8449, 0.6173, 1.434, 0.0515, 0.7803),
    "twice": (0.0864, 0.9694, 0.9157, 1.0, 1.375, 0.0966, 0.8694),
    "best_possible": (0.06636, 0.9801, 0.9478, 0.0, 3.882, 0.0, 0.9706),
}


def test_a_small_plan_number_by_number():
    """To the digits that the search keeps; any change of a recipe, a rate or a rule shows."""
    made = plan(L=10, R=1, d=100, n=150, pi=0.7, theta=4.0, false_alarms=0.1)
    [row] = made.rows
    assert made.warnings == () and row.silent == pytest.approx(0.3)
    assert row.choice == "twice" and row.warnings == ()
    for name, (error, auc, recall, share, T, ridge, cos) in SMALL.items():
        one = row.recipes[name]
        assert (one.error, one.auc, one.recall) == pytest.approx((error, auc, recall), rel=0.01)
        assert (one.share, one.cosine) == pytest.approx((share, cos), rel=0.02)
        assert one.temperature == pytest.approx(T, rel=0.05)
        assert one.ridge == pytest.approx(ridge, rel=0.1)
        assert not one.balanced
    strained = plan(L=20, R=2, d=2, n=30, pi=0.3, theta=2.0, alpha_share=0.5).warnings
    assert strained == (
        "L = 20 is large against d = 2: the theory lets d grow first; expect a less reliable "
        "query than predicted",
        "only about 9 positive bags: expect large scatter",
    )
    assert plan(L=16, R=2, d=2, n=68, pi=0.3, theta=2.0, alpha_share=0.5).warnings == ()


def test_the_intercept_scatters_by_its_surplus():
    """The chance of b, and an error averaged over it, by hand."""
    desk = Tuner(10, 1, 100, 150, 0.7)
    assert desk.chance(0.5) == pytest.approx(math.sqrt(1 / (0.21 * 75)))
    assert Tuner(10, 1, 100, 150, 0.7, loss="square").chance(1.0) == pytest.approx(
        2 * math.sqrt(0.21 / 150)
    )
    assert desk.silent == pytest.approx(math.log(0.3))


SCALES = {"pooled": 3.0, "attention": 1.5, "twice": 1.4, "best_possible": 0.5}


def desk(L: int = 10, **scales: float) -> _Desk:
    """A desk whose learners err on e^{−θ/scale} of new bags."""
    made, known = _Desk(Tuner(L, 1, 100, 150, 0.5), 100, 0.05), SCALES | scales

    def recipe(name: str, theta: float) -> Recipe | None:
        found = known[name]
        error = math.exp(-theta / found) if found else math.nan
        return Recipe(error, 0.5, 0.5, 0.5, 1.0, 1.0, 0.5) if found else None

    made.recipe = recipe
    made.tuner.quick_error = lambda theta: math.exp(-theta / known["attention"])
    return made


def test_what_is_needed_is_where_the_error_is_the_one_asked_for():
    for name, scale in SCALES.items():
        assert desk().needed(name) == pytest.approx(scale * math.log(20), rel=0.01)
    assert desk(twice=0.0).needed("twice") == math.inf
    long = desk(20_000)
    assert math.isnan(long.needed("twice"))
    assert long.needed("attention") == pytest.approx(1.5 * math.log(20), rel=0.01)


@pytest.mark.parametrize("best", [0.5, 1.2])
def test_the_range_goes_from_the_best_learner_to_success(best: float):
    """Six strengths around success and two before it; or eight evenly where both are near."""
    found = desk(best_possible=best).default_range()
    high = found[-1] / 1.5
    solved, start = 1.5 * math.log(20), 0.9 * best * math.log(20)
    assert 0.97 * solved < high < 1.3**0.125 * 1.03 * solved
    assert len(found) == 8 and found == sorted(found)
    assert found[0] == pytest.approx(start, rel=0.05)
    steps = [b / a for a, b in pairwise(found[2:])]
    ratio = 2**0.2 if best == 0.5 else (found[-1] / found[0]) ** (1 / 7)
    assert steps == pytest.approx([ratio] * 5, rel=0.05)
    if best == 0.5:
        assert found[2] == pytest.approx(0.75 * high, rel=0.05)
        assert found[1] == pytest.approx(math.sqrt(found[0] * found[2]), rel=0.05)


def test_recipes_are_compared_over_the_chance_of_the_intercept():
    y, one = np.array([1.0, -1.0]), np.ones(2)
    scores = Scores(y, np.array([0.5, -1.0]), one, np.array([0.3, 0.7]))
    tuner = Tuner(10, 1, 100, 150, 0.7)
    b = tuner.chance(0.5)
    wrong = [0.3 * ndtr(-(0.5 + s)) + 0.7 * ndtr(-1.0 + s) for s in (b, -b)]
    assert tuner.shaken(scores, 0.5) == pytest.approx(sum(wrong) / 2)
    assert 0.05 < tuner.quick_error(4.0) < 0.3
