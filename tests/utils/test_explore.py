"""Explorers show what the modules of the chapters compute, and bring what a page needs."""

import json
import math

import numpy as np
import pytest

from needle.kit.records import ConvergenceError
from utils import explorers as explore
from utils.explorers import bundle, placeholder, specification, values
from utils.explorers.base import Explorer, integers, stops, uniform
from utils.explorers.values import EXPLORERS

NAMES = sorted(EXPLORERS)
SLOW = {"numbers"}  # whole plans
COMPUTED = [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in NAMES]


@pytest.mark.parametrize("name", NAMES)
def test_an_explorer_starts_on_its_stops(name):
    spec = specification(name)
    given = {slider["name"]: slider["stops"] for slider in spec["sliders"]}
    assert {*given, *(["draw"] if spec["again"] else [])} == set(spec["start"])
    for key, allowed in given.items():
        assert spec["start"][key] in allowed and list(allowed) == sorted(set(allowed))
        assert len(allowed) > 1
    assert json.loads(json.dumps(spec, allow_nan=False)) == spec


@pytest.mark.parametrize("name", COMPUTED)
def test_what_is_shown_can_be_sent(name):
    shown = values(name, {})
    assert shown["of"] == EXPLORERS[name].start
    assert json.loads(json.dumps(shown, allow_nan=False)) == shown
    assert "xact" in shown["how"]


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPUTED)
def test_a_widget_carries_one_whole_module_and_stays_the_same_text(name):
    widget = explore.explore(name)
    assert "import " not in bundle(name) and bundle(name).count("export ") == 1
    for _ in range(2):
        data, _ = explore.explore(name)._repr_mimebundle_()
        assert data["text/plain"] == f"explore('{name}')"
        assert data["text/html"] == placeholder(name, {})
    slider = EXPLORERS[name].sliders[0]
    other = next(stop for stop in slider.stops if stop != EXPLORERS[name].start[slider.name])
    widget.params = {**widget.params, slider.name: other}
    assert widget.values == values(name, {slider.name: other})


def test_wrong_names_are_refused():
    with pytest.raises(ValueError, match="name = 'straw' is not allowed"):
        explore.explore("straw")
    with pytest.raises(ValueError, match="parameter = 'thet' is not allowed"):
        explore.explore("needle", thet=3.0)
    with pytest.raises(ValueError, match="parameter = 'thet'"):
        values("needle", {"thet": 3.0})


def test_a_solver_that_fails_is_said_not_raised(monkeypatch):
    def fails(parameters):
        raise ConvergenceError("no luck")

    found = EXPLORERS["needle"]
    broken = Explorer(found.title, found.sliders, found.start, fails)
    monkeypatch.setitem(EXPLORERS, "needle", broken)
    assert values("needle", {})["error"] == "No number here: no luck"


def test_a_start_of_ones_own_reaches_the_page():
    widget = explore.explore("needle", theta=6.0)
    assert widget.params["theta"] == widget.spec["start"]["theta"] == 6.0
    assert "&quot;theta&quot;: 6.0" in widget._repr_mimebundle_()[0]["text/html"]


def test_stops_are_round_and_rise():
    assert stops(0, 1, 5) == (0.0, 0.25, 0.5, 0.75, 1.0)
    assert integers(10, 30) == (10, 12, 15, 20, 25, 30)


def test_uniform_numbers_are_uniform_and_their_own():
    u = uniform(3, np.arange(20_000))
    counts = np.bincount((u * 20).astype(int), minlength=20)
    assert abs(((counts - 1000) ** 2 / 1000).sum() - 19) < 5 * math.sqrt(38)
    assert abs(np.corrcoef(u[:-1], u[1:])[0, 1]) < 0.03
    assert abs(np.corrcoef(u, uniform(4, np.arange(20_000)))[0, 1]) < 0.03
    assert not (uniform(1, [0]) == uniform(2, [0])).any()


def test_equal_weights_are_averaging():
    shown = values("needle", {"T": 0.0, "L": 100, "R": 3, "theta": 5.0})
    assert shown["attended"] == pytest.approx(shown["pooled"]) == pytest.approx(1.5)
    assert shown["share"] == pytest.approx(0.03)


def test_an_aligned_sharp_query_finds_a_long_needle():
    shown = values("needle", {"T": 8.0, "cos": 1.0, "R": 1, "theta": 10.0, "L": 100})
    assert shown["share"] > 0.99
    assert int(np.argmax(shown["height"])) == shown["needles"][0]
    same, other = (values("needle", {"R": 1, "L": 100, "theta": θ}) for θ in (0.0, 5.0))
    assert np.all(same["height"])
    raised = np.subtract(other["height"], same["height"])
    assert raised[other["needles"]] == pytest.approx([5.0]) and raised.sum() == pytest.approx(5.0)
    turned = values("needle", {"T": 8.0, "cos": -1.0, "R": 1, "theta": 10.0, "L": 100})
    assert turned["share"] < 1e-6


@pytest.mark.slow
def test_own_numbers_are_those_of_the_plan():
    from needle.planning.planner import plan

    where = {"L": 100, "R": 2, "theta": 5.0, "pi": 0.2, "n": 600, "d": 100}
    shown = values("numbers", where)
    made = plan(L=100, R=2, d=100, n=600, pi=0.2, theta=5.0, balanced=False)
    [row] = made.rows
    assert shown["advice"] == row.advice and shown["choice"] == row.choice
    assert shown["warnings"] == [*made.warnings, *row.warnings]
    assert shown["here"]["steps"] == min(row.attention, row.twice)
    assert shown["steps"] == sorted(shown["steps"], reverse=True)
    assert shown["strengths"][0] < 5.0 < shown["strengths"][-1]
