"""The page "Your own numbers": what it reads off, against formulas, stored plans and `plan`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from needle.data.classifiers import pooled
from needle.data.tokens import SparseTokens
from needle.planning import plan
from needle.readout.capacity import predict_capacity
from needle.steps.rates import calibrated_cosine
from scripts.book import explore_surfaces as surfaces
from scripts.book.run_notebooks import ROOT
from scripts.check.browser import opened
from utils.explorers import placeholder, specification
from utils.explorers.numbers import BEYOND, BUDGET

pytestmark = pytest.mark.xdist_group("own numbers")
PAGE = "your_numbers"
COMPUTE = """async (settings) => {
    const base = new URL('/_static/explorers/', location.href);
    const module = await import(new URL('numbers.mjs', base));
    const { data } = await (await fetch(new URL('numbers.json', base))).json();
    const known = module.prepare(data);
    return settings.map((s) => module.compute(s, known));
}"""


def told(p: dict[str, Any]) -> Any:
    """Where the page answers: a rounded d can put a stored plan just outside its budgets."""
    return (p["n"] / p["d"] >= BUDGET[0]) & (p["n"] / p["d"] <= BUDGET[1])


@pytest.fixture(scope="module")
def page(chromium: Any, host: str) -> Any:
    """The page, opened once for all tests."""
    with opened(chromium, f"{host}/{PAGE}.html") as page:
        yield page


def computed(page: Any, settings: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return page.evaluate(COMPUTE, settings)


def test_the_page_holds_the_place_of_its_figure() -> None:
    source = (ROOT / "site" / f"{PAGE}.md").read_text(encoding="utf-8")
    assert placeholder("numbers", {}) in source


def test_formulas_are_those_of_python_at_a_thousand_settings(page: Any) -> None:
    rng = np.random.default_rng(0)
    sliders = specification("numbers")["sliders"]
    settings = [
        {s["name"]: s["stops"][rng.integers(len(s["stops"]))] for s in sliders} for _ in range(1000)
    ]
    for where, shown in zip(settings, computed(page, settings), strict=True):
        model = SparseTokens(where["L"], where["R"], where["theta"], where["pi"])
        cos = calibrated_cosine(model, where["n"] / where["d"])
        assert shown["cosine"] == pytest.approx(cos, rel=1e-9)
        capacity = predict_capacity(pooled(model))
        if capacity > BEYOND:
            assert (shown["capacity"]["pooled"] or BEYOND) > 0.99 * BEYOND
        else:
            assert shown["capacity"]["pooled"] == pytest.approx(capacity, rel=1e-5)


def test_the_browser_reads_what_python_reads(page: Any) -> None:
    """At all stored plans: errors of averaging and of two steps, at their strengths and nearby.

    Where a surface dips below the best learner the page shows that one's error instead.
    """
    p = surfaces.plans()
    rng, names = np.random.default_rng(1), ("L", "R", "pi", "d", "n")
    wanted, shown = [], []
    for _ in range(3):
        theta = p["theta"] * np.exp(rng.uniform(-0.05, 0.05, len(p["theta"])))
        where = p | {"theta": theta}
        inside = (np.abs(surfaces.coordinates(where)[:, -1]) < 1) & told(p)
        settings = [
            {name: float(where[name][k]) for name in (*names, "theta")}
            for k in np.flatnonzero(inside)
        ]
        found = computed(page, settings)
        read = surfaces.read(where, surfaces.steps())
        for learner in ("pooled", "split", "twice"):
            errors = [values["here"][learner] for values in found]
            floor = [
                e if e == v["here"]["best"] else 0.0 for e, v in zip(errors, found, strict=True)
            ]
            wanted += np.maximum(read[learner][inside], floor).tolist()
            shown += errors
    assert len(wanted) >= 1000
    assert shown == pytest.approx(wanted, rel=2e-3, abs=1e-7)


def test_the_best_learner_and_the_choice_are_those_of_the_plans(page: Any) -> None:
    """The best from tables alone: nine of ten to an eighth of an error, all to 0.005. The choice,
    at the plans that the surfaces were made from."""
    p = {name: values[told(surfaces.plans())] for name, values in surfaces.plans().items()}
    names = ("L", "R", "pi", "d", "n", "theta")
    settings = [{name: float(p[name][k]) for name in names} for k in range(len(p["theta"]))]
    found = computed(page, settings)
    best = np.array([values["here"]["best"] for values in found])
    seen = p["best"] > 1e-4
    gaps = np.abs(best[seen] / p["best"][seen] - 1)
    assert np.quantile(gaps, 0.9) < 0.125
    assert best == pytest.approx(p["best"], abs=5e-3)
    choices = ("none", "pooled", "attention", "twice")
    same = [v["choice"] == choices[int(c)] for v, c in zip(found, p["choice"], strict=True)]
    assert np.mean(same) >= 0.9


USUAL = [(100, 5.0, 8.0), (50, 4.0, 2.0), (200, 7.0, 4.0), (1000, 8.0, 3.0)]  # L, θ, n/d


def test_usual_questions_get_the_answers_of_plan(page: Any) -> None:
    """One needle in half of the bags: errors of `plan` to a sixth, and none below the best's."""
    settings = [
        {"L": L, "R": 1, "theta": theta, "pi": 0.5, "d": 1000, "n": round(1000 * alpha)}
        for L, theta, alpha in USUAL
    ]
    for where, shown in zip(settings, computed(page, settings), strict=True):
        [row] = plan(**where | {"theta": (where["theta"],)}).rows
        found = shown["here"]
        known = {"split": row.attention, "twice": row.twice}
        assert {key: found[key] for key in known} == pytest.approx(known, rel=0.17), where
        assert found["steps"] >= found["best"]


def test_nothing_is_told_of_bags_without_tables(page: Any) -> None:
    """And at random settings no error of two steps lies below that of the best learner."""
    ten = {"L": 10, "R": 1, "theta": 5.0, "pi": 0.5, "d": 1000, "n": 1000}
    rng, sliders = np.random.default_rng(2), specification("numbers")["sliders"]
    others = [{s["name"]: rng.choice(s["stops"]).item() for s in sliders} for _ in range(600)]
    nothing, *found = computed(page, [ten, *others])
    assert set(nothing["here"].values()) == {None}
    assert "10 tokens with 1 needles" in nothing["advice"]
    seen = [v["here"] for v in found if v["here"]["steps"] is not None and "hard" not in str(v)]
    assert len(seen) > 100 and all(here["steps"] >= here["best"] for here in seen)


def test_plans_that_were_left_out_are_as_near_as_the_figure_says() -> None:
    """Ten parts in turn. A factor is of an error; averaging has a law of its own."""
    assert np.quantile(surfaces.off("pooled"), 0.9) < 1.1
    for learner in ("split", "twice"):
        assert np.median(surfaces.off(learner)) < 1.2
        assert np.quantile(surfaces.off(learner), 0.9) < 3
    assert "of attention" in surfaces.how()


def test_a_sentence_of_advice_follows_the_sliders(page: Any) -> None:
    inside = page.locator('[data-explorer="numbers"]')
    assert inside.locator("svg").count() == 2
    sentence, status = inside.locator(".explorer-sentence"), inside.locator(".explorer-status")
    assert "Use attention" in sentence.inner_text()
    assert "exact" in status.inner_text() and "left out" in status.inner_text()
    inside.locator('input[name="theta"]').press("Home")
    assert "far below" in sentence.inner_text()
    page.get_by_role("button", name="Reset").click()
    inside.locator('input[name="n"]').press("End")
    inside.locator('input[name="d"]').press("Home")
    assert "No plan is stored for 5000 bags per dimension" in sentence.inner_text()
    assert page.failures == page.complaints == []
