"""The landing page: six moments by mouse, keyboard and thumb; its numbers are those of the book."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bs4 import BeautifulSoup
from scipy import stats

from needle import SparseTokens, predict_alignment
from scripts.check.browser import opened
from tests.site.line import burden

WORDS, SHIFT = 60, 0.05  # of a moment, and how far all that moves while the page loads
MOMENTS = ["find", "average", "compete", "grow", "learn", "cost"]
MOVES = """() => new Promise(done => {
    let sum = 0;
    new PerformanceObserver(list => { for (const e of list.getEntries()) sum += e.value; })
        .observe({ type: 'layout-shift', buffered: true });
    setTimeout(() => done(sum), 300);
})"""


def told(page: Any, name: str) -> str:
    return page.locator(f"[data-explorer=moment-{name}] .told").inner_text()


def test_six_moments_of_few_words_and_what_a_newcomer_asks(site: Path) -> None:
    page = BeautifulSoup((site / "intro.html").read_text(encoding="utf-8"), "html.parser").article
    moments = page.select(".moment")
    assert [m["data-explorer"] for m in moments] == [f"moment-{name}" for name in MOMENTS]
    for moment in moments:
        text = " ".join(p.get_text() for p in moment.select(".words p, .lesson"))
        assert len(text.split()) <= WORDS, moment["data-explorer"]
    doors = [link["href"] for link in page.select(".doors a")]
    assert doors == ["chapters/01_model.html", "statements.html", "your_numbers.html"]
    text = page.get_text()
    assert "Barnfield" in text and "@inproceedings{barnfield2026" in text
    assert page.select_one("noscript img")["alt"]


@pytest.mark.parametrize("width", [1280, 380])
def test_each_moment_answers_the_keyboard_and_nothing_jumps(
    chromium: Any, host: str, site: Path, width: int
) -> None:
    with opened(chromium, f"{host}/intro.html", width=width, height=800) as page:
        assert page.evaluate(MOVES) <= SHIFT
        assert burden(site, page.requests_seen)[0] <= 900_000
        for name in MOMENTS:
            place = page.locator(f"[data-explorer=moment-{name}]")
            before = [told(page, name), place.locator("svg").first.inner_html()]
            place.locator("input[type=range]").focus()
            for _ in range(3):
                page.keyboard.press("ArrowRight")
            after = [told(page, name), place.locator("svg").first.inner_html()]
            assert before[1] != after[1], name
            assert name == "find" or before[0] != after[0], name
        assert page.evaluate("() => document.documentElement.scrollWidth") <= width
        assert page.complaints == page.failures == []


def test_a_needle_can_be_found_by_a_click_and_by_keys(chromium: Any, host: str) -> None:
    with opened(chromium, f"{host}/intro.html") as page:
        hit = page.locator("[data-explorer=moment-find] .hit")
        hit.click(position={"x": 40, "y": 60})
        assert re.match(r"(Found it|That was a straw): [01] of 1", told(page, "find"))
        page.get_by_role("button", name="Next bag").click()
        hit.focus()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("Enter")
        assert re.match(r"(Found it|That was a straw): [012] of 2", told(page, "find"))


def test_what_the_moments_say_is_what_the_library_computes(chromium: Any, host: str) -> None:
    with opened(chromium, f"{host}/intro.html") as page:
        error, strength = re.findall(r"\d+(?:\.\d+)?", told(page, "average"))[1::2][:2]
        gap = 5 / np.sqrt(10)
        assert float(error) == pytest.approx(100 * stats.norm.cdf(-gap / 2), rel=0.03)
        assert float(strength) == pytest.approx(2 * stats.norm.isf(0.05) * np.sqrt(10), rel=0.005)
        model = SparseTokens(L=10, R=1, theta=3.0, pi=0.2)
        cosine = predict_alignment(model, 5.0, lr_w=0.5, lr_b=0.5).query_cos
        said = re.search(r"is (−?[\d.]+):", told(page, "learn"))
        assert said is not None
        assert float(said[1].replace("−", "-")) == pytest.approx(cosine, abs=0.006)
