"""Stored results: found by their parameters, refused by name, spelled as they were written."""

import math
from types import SimpleNamespace

import pytest

from utils import results
from utils.results import Estimate, Stored, agreements, stored

TEXT = """# about: a test: of what is read
# date: 2026-01-01
L,loss,lr,quantity,estimate,standard_error,trials,seed
10,square,0.5,error,0.25,0.01,40,7
10,square,0.5,loss,1.5,nan,40,7
100,square,,error,0.125,0.02,40,7
100,1e-3,0.5,error,0.375,0.03,40,7
"""


@pytest.fixture
def run(tmp_path, monkeypatch) -> Stored:
    (tmp_path / "test.csv").write_text(TEXT, encoding="utf-8")
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    return stored("test")


def test_points_facts_and_estimates_are_those_of_the_file(run):
    assert run.facts == {"about": "a test: of what is read", "date": "2026-01-01"}
    assert (run.name, run.seed, len(run.points)) == ("test", 7, 3)
    assert run.points[0] == {"L": 10, "loss": "square", "lr": 0.5}
    assert [type(run.points[0][name]) for name in ("L", "loss", "lr")] == [int, str, float]
    assert run.points[1]["lr"] == ""
    assert run.points[2]["loss"] == 1e-3
    assert run.estimates[0]["error"] == Estimate(0.25, 0.01, 40)
    assert float(run.estimates[0]["error"]) == 0.25
    assert math.isnan(run.estimates[0]["loss"].standard_error)


def test_a_point_is_found_by_all_of_its_parameters(run):
    assert [point["loss"] for point, _ in run.at(L=100)] == ["square", 1e-3]
    assert float(run.only(L=100, loss="square")["error"]) == 0.125
    assert len(run.at()) == 3


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda run: run.at(L=11), "{'L': 11} are not allowed: test has none"),
        (lambda run: run.at(L=10, loss=1e-3), "test has none"),
        (lambda run: run.at(width=1), "test has none"),
        (lambda run: run.only(L=100), "2 points of test have them"),
        (lambda run: stored("no_such"), "must be one of \\['test'\\]"),
    ],
)
def test_what_is_not_there_is_refused_by_name(run, call, message):
    with pytest.raises(ValueError, match=message):
        call(run)


def test_every_z_score_of_the_book_names_its_claim_and_trials():
    rows = [SimpleNamespace(**row) for row in agreements()]
    assert len(rows) > 500
    assert all(row.claim and row.quantity and math.isfinite(row.z) for row in rows)
