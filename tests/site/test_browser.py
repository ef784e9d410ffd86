"""What a reader does with a page: follow links, search, fold, print, move by keyboard."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import quote

import pytest

from scripts.browser import load_images, opened
from tests.site.conftest import CHAPTERS
from tests.site.looks import background, contrast, pixels
from utils.figures import COLORS

COLOR_CONTRAST = 3.0  # WCAG AA for graphics, here of a curve of a model


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colors_of_the_models_stand_out(chromium: Any, host: str, theme: str) -> None:
    with opened(chromium, f"{host}/{CHAPTERS[0]}.html", theme=theme) as page:
        ground = background(page)
        for model, color in COLORS.items():
            page.evaluate(
                "color => { const i = document.querySelector('.plate > img');"
                "const c = document.createElement('canvas'); c.width = c.height = 8;"
                "const g = c.getContext('2d'); g.fillStyle = color; g.fillRect(0, 0, 8, 8);"
                "i.src = c.toDataURL(); }",
                color,
            )
            image = page.locator(".plate > img").first
            load_images(page)
            picture = pixels(image.screenshot())
            middle = picture[picture.shape[0] // 2, picture.shape[1] // 2]
            assert contrast(middle, ground) > COLOR_CONTRAST, model


SEARCHES = [  # what a reader types, and the sections that answer
    ("capacity", "06_capacity.html"),
    ("sqrt(2 log L)", "03_separation.html#(how-a-softmax-freezes|both-logarithms-are-right)"),
    ("log L", "03_separation.html"),
    ("anti-alignment", "04_alignment.html#(when-the-query-turns|what-an-anti-aligned)"),
    ("learning rate", "04_alignment.html#three-learning-rates"),
    ("how many samples", "(05_test_error.html#what-a-budget-buys|07_learning.html#)"),
    ("temperature", "03_separation.html#the-best-sharpness"),
    ("data reuse", "05_test_error.html#one-data-set-twice"),
    ("Bayes", "(03_separation.html#how-close-to-bayes|07_learning.html$)"),
    ("class imbalance", "05_test_error.html#rare-signals"),
    ("θ̂ √L", "03_separation.html"),
]


@pytest.mark.parametrize(("query", "answer"), SEARCHES)
def test_search_finds_the_section(chromium: Any, host: str, query: str, answer: str) -> None:
    """Among the first three, with a line of its text: no TeX, no words of the toolbar."""
    with opened(chromium, f"{host}/search.html?q={quote(query)}") as page:
        page.wait_for_selector("ul.search li a")
        found = page.eval_on_selector_all("ul.search li a", "all => all.map(a => a.href)")
        assert any(re.search(answer, link) for link in found[:3])
        snippets = page.locator("ul.search li p.context").all_inner_texts()[:3]
        assert min(map(len, snippets)) > 40
        assert [text for text in snippets if "\\" in text or "Binder" in text] == []
        assert page.failures == page.complaints == []


def test_search_says_when_there_is_nothing(chromium: Any, host: str) -> None:
    with opened(chromium, f"{host}/search.html?q=zebra") as page:
        page.wait_for_selector(".search-summary")
        assert "Nothing" in page.locator(".search-summary").inner_text()


def test_paper_needs_no_script_to_unfold(chromium: Any, host: str) -> None:
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{host}/{CHAPTERS[0]}.html")
    inside = page.locator("details.folded > .cell_input").first
    assert not inside.is_visible()
    page.locator("details.folded > summary").first.click()
    assert inside.is_visible()
    page.reload()
    page.emulate_media(media="print")
    assert page.locator("details.folded > .cell_input").first.bounding_box()["height"] > 10
    context.close()


def test_code_unfolds_by_keyboard(chromium: Any, host: str) -> None:
    with opened(chromium, f"{host}/{CHAPTERS[0]}.html") as page:
        for kind in ("details.folded", "details.agreement"):
            fold = page.locator(kind).first
            fold.locator("summary").focus()
            for state in (True, False):
                page.keyboard.press("Enter")
                assert fold.evaluate("e => e.open") is state


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_focus_is_seen(chromium: Any, host: str, theme: str) -> None:
    """Every stop of the first sixty changes its outline, shadow or border when it has the focus."""
    look = "e => { const s = getComputedStyle(e); return s.outlineStyle + s.boxShadow + s.border }"
    with opened(chromium, f"{host}/{CHAPTERS[0]}.html", theme=theme) as page:
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


def test_a_link_into_the_page_lands_on_its_target(chromium: Any, host: str) -> None:
    name = CHAPTERS[2]
    with opened(chromium, f"{host}/{name}.html") as page:
        last = page.locator("article h2").last.evaluate("e => e.parentElement.id")
    with opened(chromium, f"{host}/{name}.html#{last}") as page:
        page.wait_for_timeout(300)
        top = page.evaluate("id => document.getElementById(id).getBoundingClientRect().top", last)
        bottom = "() => innerHeight + scrollY >= document.documentElement.scrollHeight - 2"
        assert -5 <= top <= 150 or page.evaluate(bottom)


def test_a_drawer_closes_behind_a_choice(chromium: Any, host: str) -> None:
    with opened(chromium, f"{host}/{CHAPTERS[0]}.html", width=380, height=800) as page:
        page.locator("button.secondary-toggle").click()
        page.locator(".bd-sidebar-secondary a[href^='#']").nth(3).click()
        assert not page.evaluate(
            "() => document.getElementById('pst-secondary-sidebar-checkbox').checked"
        )


def test_plates_stand_side_by_side_or_below_each_other(chromium: Any, host: str) -> None:
    """Two plates that can be read side by side share a row; on a telephone each has its own."""
    plate = '<div class="plate" style="--pixels: 700px"><img width="700" height="400"></div>'
    markup = f'<figure class="book-figure"><div class="plates">{plate}{plate}</div></figure>'
    for width, rows in ((1280, 1), (380, 2)):
        with opened(chromium, f"{host}/{CHAPTERS[0]}.html", width=width) as page:
            tops = page.evaluate(
                "html => { const a = document.querySelector('article');"
                "a.insertAdjacentHTML('afterbegin', html);"
                "return [...a.querySelectorAll('.plates > .plate')].slice(0, 2)"
                ".map(p => Math.round(p.getBoundingClientRect().top)) }",
                markup,
            )
            assert len(set(tops)) == rows
