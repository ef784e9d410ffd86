"""What a reader does with a page: follow links, search, fold, print, move by keyboard."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest

from scripts.book.pdf import SETTLED
from scripts.check.browser import opened, settle
from tests.site.conftest import CHAPTERS
from tests.site.line import COLD, SECOND, burden
from tests.site.looks import TEXT_CONTRAST, background, contrast


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colors_of_the_models_stand_out(chromium: Any, host: str, theme: str) -> None:
    with opened(chromium, f"{host}/{CHAPTERS[0]}.html", theme=theme, formulas=False) as page:
        ground = background(page)
        for model in (
            "vectorized",
            "pooled",
            "attention",
            "message",
            "elementwise",
            "noise",
            "bayes",
        ):
            color = page.evaluate(
                "name => { const e = document.body.appendChild(document.createElement('i'));"
                "e.style.color = `var(--c-${name})`; return getComputedStyle(e).color; }",
                model,
            )
            ink = np.array([int(value) for value in re.findall(r"\d+", color)[:3]])
            assert contrast(ink, ground) > TEXT_CONTRAST, model  # it is the colour of words, too


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_links_stay_legible_under_the_mouse(chromium: Any, host: str, theme: str) -> None:
    ink = "e => getComputedStyle(e).color.match(/\\d+/g).slice(0, 3).map(Number)"
    with opened(chromium, f"{host}/{CHAPTERS[0]}.html", theme=theme, formulas=False) as page:
        for kind in ("article p a.reference", "details.code > summary"):
            place = page.locator(kind).first
            before = place.evaluate(ink)
            place.hover()
            hovered = place.evaluate(ink)
            assert hovered != before
            assert contrast(np.array(hovered), background(page)) > TEXT_CONTRAST, kind


SEARCHES = [  # what a reader types, and the sections that answer
    ("capacity", "06_capacity.html"),
    ("sqrt(2 log L)", "03_separation.html#(how-a-softmax-freezes|both-logarithms-are-right)"),
    ("log L", "03_separation.html"),
    ("anti-alignment", "04_alignment.html#(when-the-query-turns|what-an-anti-aligned)"),
    ("learning rate", "04_alignment.html#three-learning-rates"),
    (
        "how many samples",
        "(07_length.html#long-sequences|05_test_error.html#what-a-budget-buys|12_planning.html#one-call"
        "|09_learning.html#the-ladder|10_training.html#how-many-samples)",
    ),
    ("temperature", "03_separation.html#the-best-sharpness"),
    ("data reuse", "08_again.html"),
    ("Bayes", "(03_separation.html#how-close-to-bayes|09_learning.html$)"),
    ("class imbalance", "05_test_error.html#rare-signals"),
    ("θ̂ √L", "03_separation.html"),
    ("how do I choose the ridge", "(05_test_error.html#ridge|12_planning.html#share-and-ridge)"),
    ("what does theta mean", "notation.html"),
    ("how many samples do I need", "12_planning.html#one-call"),
    ("ROC curve", "05_test_error.html#rare-signals"),
    ("why does softmax beat averaging", "03_separation.html"),
]


def test_search_finds_the_section(chromium: Any, host: str, site: Path) -> None:
    """Among the first three, with a line of its text: no TeX, no words of the toolbar."""
    with opened(chromium, f"{host}/search.html?q=zebra") as page:
        missed = []
        for query, answer in SEARCHES:
            page.goto(f"{host}/search.html?q={quote(query)}")
            page.wait_for_selector("ul.search li a")
            found = page.eval_on_selector_all("ul.search li a", "all => all.map(a => a.href)")
            if not any(re.search(answer, link) for link in found[:3]):
                missed.append((query, found[:3]))
            snippets = page.locator("ul.search li p.context").all_inner_texts()[:3]
            assert min(map(len, snippets)) > 40
            assert [text for text in snippets if "\\" in text or "Binder" in text] == []
        assert missed == []
        assert page.failures == page.complaints == []
        cold, second, _ = burden(site, page.requests_seen)
        assert cold <= COLD
        assert second <= SECOND


def test_search_says_when_there_is_nothing(chromium: Any, host: str) -> None:
    with opened(chromium, f"{host}/search.html?q=zebra") as page:
        page.wait_for_selector(".search-summary")
        assert "Nothing" in page.locator(".search-summary").inner_text()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_focus_is_seen(chromium: Any, host: str, theme: str) -> None:
    """Every stop of the first sixty changes its outline, shadow or border when it has the focus."""
    look = """e => [e, e.firstElementChild ?? e].map(x => getComputedStyle(x)).map(
        s => s.outlineStyle + s.boxShadow + s.border).join()"""
    with opened(chromium, f"{host}/{CHAPTERS[0]}.html", theme=theme, formulas=False) as page:
        unseen = []
        for _ in range(60):
            page.keyboard.press("Tab")
            stop = page.evaluate_handle("() => document.activeElement").as_element()
            focused = stop.evaluate(look)
            stop.evaluate("e => e.blur()")
            if focused == stop.evaluate(look):
                unseen.append(stop.evaluate("e => e.outerHTML.slice(0, 90)"))
            stop.evaluate("e => e.focus()")
        assert unseen == []


def test_a_choice_in_the_old_menu_of_mathjax_is_forgotten(chromium: Any, host: str) -> None:
    context = chromium.new_context()
    choice = json.dumps({"renderer": "SVG", "explorer": True})
    context.add_init_script(f"localStorage['MathJax-Menu-Settings'] = '{choice}'")
    page = context.new_page()
    missing = []
    page.on("response", lambda r: r.status >= 400 and missing.append(r.url))
    page.goto(f"{host}/{CHAPTERS[0]}.html")
    page.wait_for_selector("mjx-container")
    page.wait_for_load_state("networkidle")
    assert missing == []
    assert page.evaluate("() => localStorage['MathJax-Menu-Settings']") is None
    context.close()


TOP = "id => document.getElementById(id).getBoundingClientRect().top"
PLACES = """() => [...document.querySelectorAll('article section > p')]
    .map(e => e.getBoundingClientRect().top + scrollY)"""
AT_THE_END = "() => innerHeight + scrollY >= document.documentElement.scrollHeight - 2"


@pytest.mark.parametrize("target", ["how-close-to-bayes", "figure-3-9", "exercises"])
def test_a_link_into_the_page_lands_on_its_target(chromium: Any, host: str, target: str) -> None:
    """Mathematics that comes late moves everything; the reader who waits still gets there."""
    page = chromium.new_page()
    held: list[Any] = []
    page.route("**/tex-mml-chtml.js*", lambda route: held.append(route))
    page.goto(f"{host}/chapters/03_separation.html#{target}", wait_until="commit")
    page.wait_for_selector("footer", state="attached")
    before = page.evaluate(PLACES)
    held[0].continue_()
    settle(page)
    page.evaluate(SETTLED)
    moved = [abs(now - then) for now, then in zip(page.evaluate(PLACES), before, strict=True)]
    assert max(moved) > 100
    assert -5 <= page.evaluate(TOP, target) <= 150 or page.evaluate(AT_THE_END)
    page.close()


def test_who_has_moved_is_not_sent_back(chromium: Any, host: str) -> None:
    page = chromium.new_page()
    page.goto(f"{host}/chapters/03_separation.html#exercises", wait_until="commit")
    page.wait_for_function("() => scrollY > 0")
    page.mouse.wheel(0, -1_000_000)
    page.wait_for_function("() => scrollY === 0")
    settle(page)
    page.evaluate(SETTLED)
    assert page.evaluate(TOP, "exercises") > 2000  # what grows above may move the page, no more
    page.close()


THEMES = """() => { window.themes = [];
    new MutationObserver(() => themes.push(document.documentElement.dataset.theme)).observe(
        document, { attributes: true, subtree: true, attributeFilter: ['data-theme'] }) }"""


@pytest.mark.parametrize("stored", [None, "auto", "light", "dark"])
@pytest.mark.parametrize("system", ["light", "dark"])
def test_no_other_theme_flashes(chromium: Any, host: str, system: str, stored: str | None) -> None:
    """The page has one theme from its first paint on: the chosen one, else that of the system."""
    context = chromium.new_context(color_scheme=system)
    choice = "localStorage.clear();" if stored is None else f"localStorage.mode = '{stored}';"
    context.add_init_script(f"{choice} ({THEMES})()")
    page = context.new_page()
    page.goto(f"{host}/references.html")
    page.wait_for_load_state("networkidle")
    wanted = stored if stored in ("light", "dark") else system
    assert set(page.evaluate("() => themes")) == {wanted}
    assert page.evaluate("() => document.documentElement.dataset.theme") == wanted
    context.close()


def test_the_first_solution_opens_by_keyboard(chromium: Any, host: str) -> None:
    """By the second skip link and at most forty Tabs."""
    with opened(chromium, f"{host}/{CHAPTERS[2]}.html", formulas=False) as page:
        for _ in range(2):
            page.keyboard.press("Tab")
        assert page.evaluate("() => document.activeElement.textContent") == "Skip to the exercises"
        page.keyboard.press("Enter")
        arrived = "() => document.activeElement.matches('div.solution button.toggle-button')"
        tabs = 0
        while not page.evaluate(arrived):
            page.keyboard.press("Tab")
            tabs += 1
            assert tabs <= 40
        inside = page.locator("div.solution div.cell").first
        assert not inside.is_visible()
        page.keyboard.press("Enter")
        assert inside.is_visible()


@pytest.mark.parametrize("side", ["primary", "secondary"])
def test_a_drawer_closes_behind_a_choice(chromium: Any, host: str, side: str) -> None:
    """The sections of the page, or the book: there also after the way back."""
    drawer = f"() => document.getElementById('pst-{side}-sidebar-checkbox').checked"
    with opened(
        chromium, f"{host}/{CHAPTERS[0]}.html", width=380, height=800, formulas=False
    ) as page:
        page.locator(f"button.{side}-toggle").first.click()
        assert page.evaluate(drawer)
        choice = page.locator(f".bd-sidebar-{side} a[href]:visible").nth(3)
        with page.expect_navigation():
            choice.click()
        if side == "primary":
            page.go_back()
            settle(page)
        assert not page.evaluate(drawer)


def test_plates_stand_side_by_side_or_below_each_other(chromium: Any, host: str) -> None:
    """Two plates that can be read side by side share a row; on a telephone each has its own."""
    plate = '<div class="plate" style="--pixels: 700px"><img width="700" height="400"></div>'
    markup = f'<figure class="book-figure"><div class="plates">{plate}{plate}</div></figure>'
    for width, rows in ((1280, 1), (380, 2)):
        with opened(chromium, f"{host}/{CHAPTERS[0]}.html", width=width, formulas=False) as page:
            tops = page.evaluate(
                "html => { const a = document.querySelector('article');"
                "a.insertAdjacentHTML('afterbegin', html);"
                "return [...a.querySelectorAll('.plates > .plate')].slice(0, 2)"
                ".map(p => Math.round(p.getBoundingClientRect().top)) }",
                markup,
            )
            assert len(set(tops)) == rows
