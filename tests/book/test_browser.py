"""Every page of the book in a headless Chromium, with nobody to ask but this machine."""

from __future__ import annotations

import json
import re
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
from PIL import Image

from scripts.browser import load_images, opened
from scripts.build_book import toc_pages
from tests.book.conftest import words
from utils.figures import COLORS, STYLE

PAGES = toc_pages()
CHAPTERS = [page for page in PAGES if page.startswith("chapters/")]
TEXT_CONTRAST = 4.5  # WCAG AA for text, here of the strongest ink of a figure against the page
COLOR_CONTRAST = 3.0  # WCAG AA for graphics, here of a curve of a model
SMALLEST_TYPE = 9.0  # CSS pixels, of tick labels on a telephone
FIGURES = ".cell_output img, img.plot"
CUT_FORMULAS = """() => [...document.querySelectorAll('article mjx-container')].filter(formula => {
    for (let e = formula; e && !e.matches('article'); e = e.parentElement)
        if (['auto', 'scroll'].includes(getComputedStyle(e).overflowX)) return false;
    return formula.getBoundingClientRect().right > window.innerWidth;
}).map(formula => formula.textContent)"""


def luminance(colors: np.ndarray) -> np.ndarray:
    """Relative luminance (WCAG) of colours (…, 3) in 0–255."""
    share = np.asarray(colors, dtype=float) / 255
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    return linear @ np.array([0.2126, 0.7152, 0.0722])


def contrast(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Contrast ratio (WCAG) of colours (…, 3) in 0–255, from 1 to 21."""
    high, low = np.maximum(luminance(a), luminance(b)), np.minimum(luminance(a), luminance(b))
    return (high + 0.05) / (low + 0.05)


def pixels(picture: bytes) -> np.ndarray:
    return np.asarray(Image.open(BytesIO(picture)).convert("RGB"))


def background(page: Any) -> np.ndarray:
    color = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    return np.array([int(value) for value in re.findall(r"\d+", color)[:3]])


@pytest.mark.parametrize("name", PAGES)
def test_page_is_whole_and_alone(chromium: Any, host: str, name: str) -> None:
    """No request to another host, none that fails, no error in the console, mathematics set."""
    with opened(chromium, f"{host}/{name}.html") as page:
        own = urlsplit(host).netloc
        hosts = {urlsplit(url).netloc for url in page.requests_seen if url.startswith("http")}
        assert hosts == {own}
        assert page.failures == []
        assert page.complaints == []
        unset = "e => e.querySelector('mjx-container') === null"
        formulas = f"() => [...document.querySelectorAll('.math')].filter({unset}).length"
        assert page.evaluate(formulas) == 0
        assert page.locator("mjx-merror, [data-mjx-error]").count() == 0
        if name in CHAPTERS:
            assert page.locator("mjx-container").count() > 0


@pytest.mark.parametrize("name", PAGES)
def test_page_fits_a_telephone(chromium: Any, host: str, name: str) -> None:
    """At 380 px only figures, tables and formulas scroll sideways, and type stays legible."""
    with opened(chromium, f"{host}/{name}.html", width=380, height=800) as page:
        unfold(page)
        assert page.evaluate("() => document.documentElement.scrollWidth") <= 380
        assert page.evaluate(CUT_FORMULAS) == []
        native = min(STYLE["xtick.labelsize"], STYLE["legend.fontsize"]) * STYLE["figure.dpi"] / 72
        scales = page.evaluate(
            f"() => [...document.querySelectorAll('{FIGURES}')].map("
            "i => [i.alt, i.getBoundingClientRect().width / i.naturalWidth])"
        )
        assert [alt[:12] for alt, scale in scales if native * scale < SMALLEST_TYPE] == []


@pytest.mark.parametrize("name", ["intro", *CHAPTERS])
def test_figures_are_legible_in_the_dark(chromium: Any, host: str, name: str) -> None:
    """The ground of a figure is that of the page, and its strongest ink stands out from it."""
    with opened(chromium, f"{host}/{name}.html", theme="dark") as page:
        assert page.evaluate("() => document.documentElement.dataset.theme") == "dark"
        unfold(page)
        ground = background(page)
        assert luminance(ground) < 0.05
        for image in page.locator(FIGURES).all():
            seen = pixels(image.screenshot())
            frame = np.median(seen[:4].reshape(-1, 3), axis=0)
            assert contrast(frame, ground) < 1.3
            assert np.quantile(contrast(seen, ground), 0.995) > TEXT_CONTRAST


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


@pytest.mark.parametrize("name", CHAPTERS)
def test_solutions_are_folded_until_asked_for(chromium: Any, host: str, name: str) -> None:
    with opened(chromium, f"{host}/{name}.html") as page:
        for solution in page.locator("div.solution").all():
            cells = solution.locator("div.cell").first
            assert not cells.is_visible()
            solution.locator("button.toggle-button").click()
            assert cells.is_visible()


def test_search_finds_the_last_chapter(chromium: Any, host: str, site: Path) -> None:
    name = CHAPTERS[-1]
    ours = set(re.findall(r"[a-z]{6,}", words((site / f"{name}.html").read_text()).lower()))
    others = " ".join(words((site / f"{p}.html").read_text()).lower() for p in PAGES if p != name)
    index = json.loads(re.search(r"\{.*\}", (site / "searchindex.js").read_text(), re.S)[0])
    word = next(w for w in sorted(ours, key=len) if w not in others and w in index["terms"])
    with opened(chromium, f"{host}/search.html?q={word}") as page:
        page.wait_for_selector("ul.search li a")
        found = page.eval_on_selector_all("ul.search li a", "links => links.map(a => a.href)")
        assert any(f"/{name}.html" in link for link in found)
        assert page.failures == []


def unfold(page: Any) -> None:
    page.evaluate(
        "() => document.querySelectorAll('.toggle-hidden, details').forEach("
        "e => { e.open = true; e.classList.remove('toggle-hidden') })"
    )
    load_images(page)


CLOSED = "details:not([open]) > :not(summary)"
CUT = """() => [...document.querySelectorAll('article pre')].filter(
    e => e.scrollWidth > e.clientWidth + 1).length"""


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", CHAPTERS)
def test_paper_shows_everything_dark_on_white(
    chromium: Any, host: str, name: str, theme: str
) -> None:
    """Folded code, tables, answers and solutions are printed, no line of code is cut."""
    with opened(chromium, f"{host}/{name}.html", theme=theme) as page:
        folds = page.locator(CLOSED).count()
        page.emulate_media(media="print")
        page.evaluate("() => window.dispatchEvent(new Event('beforeprint'))")
        assert page.locator(CLOSED).count() == 0
        assert luminance(background(page)) > 0.9
        ink = page.evaluate("() => getComputedStyle(document.querySelector('article p')).color")
        assert luminance(np.array([int(v) for v in re.findall(r"\d+", ink)[:3]])) < 0.1
        assert page.evaluate(CUT) == 0
        for solution in page.locator("div.solution div.cell").all()[:3]:
            assert solution.bounding_box()["height"] > 20
        page.emulate_media(media="screen")
        page.evaluate("() => window.dispatchEvent(new Event('afterprint'))")
        assert page.locator(CLOSED).count() == folds
        assert page.evaluate("() => document.documentElement.dataset.theme") == theme


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


@pytest.mark.parametrize("name", CHAPTERS)
def test_formulas_are_no_tab_stops_and_buttons_have_names(
    chromium: Any, host: str, name: str
) -> None:
    with opened(chromium, f"{host}/{name}.html") as page:
        assert page.locator("mjx-container[tabindex]").count() == 0
        unnamed = "b => !b.innerText.trim() && !b.ariaLabel && !b.title"
        buttons = f"() => [...document.querySelectorAll('button')].filter({unnamed}).length"
        assert page.evaluate(buttons) == 0


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


def test_snippets_of_the_search_are_text(chromium: Any, host: str) -> None:
    with opened(chromium, f"{host}/search.html?q=needle") as page:
        page.wait_for_selector("ul.search li p.context")
        page.wait_for_load_state("networkidle")
        snippets = page.locator("ul.search li p.context").all_inner_texts()
        assert snippets
        assert [text for text in snippets if "\\" in text or "Binder" in text] == []


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", CHAPTERS)
def test_links_in_boxes_stand_out_from_their_ground(
    chromium: Any, host: str, name: str, theme: str
) -> None:
    with opened(chromium, f"{host}/{name}.html", theme=theme) as page:
        unfold(page)
        pairs = page.evaluate(
            """() => [...document.querySelectorAll('article .admonition a')].map(link => {
                const layers = [];
                for (let e = link; e; e = e.parentElement)
                    layers.push(getComputedStyle(e).backgroundColor);
                return [getComputedStyle(link).color, layers];
            })"""
        )

        def numbers(color: str) -> list[float]:
            return [float(value) for value in re.findall(r"[\d.]+", color)]

        for ink, layers in pairs:
            ground = np.array([255.0] * 3 if theme == "light" else [0.0] * 3)
            for *color, alpha in [[*numbers(layer), 1.0][:4] for layer in reversed(layers)]:
                ground = alpha * np.array(color) + (1 - alpha) * ground
            assert contrast(np.array(numbers(ink)[:3]), ground) >= TEXT_CONTRAST
