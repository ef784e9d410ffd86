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
from tests.site.test_pages import CONTRAST, violations

PLAIN = pytest.mark.xdist_group("plain")
THEME = "theme => { document.documentElement.dataset.theme = theme }"


@pytest.fixture(scope="module")
def plain(chromium: Any, host: str) -> Any:
    """A chapter whose formulas are TeX, opened once for all that do not look at these."""
    with opened(chromium, f"{host}/{CHAPTERS[0]}.html", formulas=False) as page:
        yield page


@PLAIN
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colors_of_the_models_stand_out(plain: Any, theme: str) -> None:
    plain.evaluate(THEME, theme)
    ground = background(plain)
    for model in (
        "vectorized",
        "pooled",
        "attention",
        "message",
        "elementwise",
        "noise",
        "bayes",
    ):
        color = plain.evaluate(
            "name => { const e = document.body.appendChild(document.createElement('i'));"
            "e.style.color = `var(--c-${name})`; const color = getComputedStyle(e).color;"
            "e.remove(); return color; }",
            model,
        )
        ink = np.array([int(value) for value in re.findall(r"\d+", color)[:3]])
        assert contrast(ink, ground) > TEXT_CONTRAST, model  # it is the colour of words, too


@PLAIN
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_links_stay_legible_under_the_mouse(plain: Any, theme: str) -> None:
    ink = "e => getComputedStyle(e).color.match(/\\d+/g).slice(0, 3).map(Number)"
    plain.evaluate(THEME, theme)
    for kind in ("article p a.reference", "details.code > summary"):
        plain.mouse.move(0, 0)
        place = plain.locator(kind).first
        before = place.evaluate(ink)
        place.hover()
        hovered = place.evaluate(ink)
        assert hovered != before
        assert contrast(np.array(hovered), background(plain)) > TEXT_CONTRAST, kind


@PLAIN
def test_a_word_too_pale_is_found_wherever_it_stands(plain: Any) -> None:
    """The check of contrast looks at two words of each look, and so at each look."""
    plain.evaluate(THEME, "light")
    plant = """color => { const all = [...document.querySelectorAll('article section > p')];
        const last = all.filter(e => e.checkVisibility()).at(-1);
        last.insertAdjacentHTML('beforeend', `<b id="pale" style="color: ${color}">pale</b>`); }"""
    plain.evaluate(plant, "#a0a0a0")
    [[rule, count, *_]] = violations(plain, CONTRAST)
    assert (rule, count) == ("color-contrast", 1)
    plain.evaluate("() => document.getElementById('pale').remove()")
    plain.evaluate(plant, "#505050")
    assert violations(plain, CONTRAST) == []


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


def test_focus_is_seen(chromium: Any, host: str) -> None:
    """Every stop of the first sixty changes its outline, shadow or border when it has the focus."""
    unseen = """() => {
        const stop = document.activeElement, found = [];
        const look = () => [stop, stop.firstElementChild ?? stop].map(x => getComputedStyle(x)).map(
            s => s.outlineStyle + s.boxShadow + s.border).join();
        for (const theme of ['light', 'dark']) {
            document.documentElement.dataset.theme = theme;
            const focused = look();
            stop.blur();
            if (focused === look()) found.push(theme + ': ' + stop.outerHTML.slice(0, 90));
            stop.focus();
        }
        return found; }"""
    with opened(chromium, f"{host}/{CHAPTERS[0]}.html", formulas=False) as page:
        found = []
        for _ in range(60):
            page.keyboard.press("Tab")
            found += page.evaluate(unseen)
        assert found == []


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


@pytest.mark.parametrize("target", ["when-places-differ", "figure-f-4", "exercises"])
def test_a_link_into_the_page_lands_on_its_target(chromium: Any, host: str, target: str) -> None:
    """Mathematics that comes late moves everything; the reader who waits still gets there."""
    page = chromium.new_page()
    held: list[Any] = []
    page.route("**/tex-mml-chtml.js*", lambda route: held.append(route))
    page.goto(f"{host}/chapters/F_places.html#{target}", wait_until="commit")
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
    for _ in range(300):  # a wheel is lost that turns before the page takes input
        page.mouse.wheel(0, -1_000_000)
        if page.evaluate("() => new Promise(requestAnimationFrame).then(() => scrollY === 0)"):
            break
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


@PLAIN
def test_plates_stand_side_by_side_or_below_each_other(plain: Any) -> None:
    """Two plates that can be read side by side share a row; on a telephone each has its own."""
    plate = '<div class="plate" style="--pixels: 700px"><img width="700" height="400"></div>'
    markup = f'<figure class="book-figure"><div class="plates">{plate}{plate}</div></figure>'
    plain.evaluate(
        "html => document.querySelector('article').insertAdjacentHTML('afterbegin', html)", markup
    )
    for width, rows in ((1280, 1), (380, 2)):
        plain.set_viewport_size({"width": width, "height": 900})
        tops = plain.evaluate(
            "() => [...document.querySelectorAll('article .plates > .plate')].slice(0, 2)"
            ".map(p => Math.round(p.getBoundingClientRect().top))"
        )
        assert len(set(tops)) == rows
