"""Every page of the book in a headless Chromium, with nobody to ask but this machine."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
from PIL import Image

from scripts.browser import browser, opened, serve
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


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser() as instance:
        yield instance


@pytest.fixture(scope="module")
def host(site: Path) -> Iterator[str]:
    with serve(site) as address:
        yield address


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
            image.evaluate("i => i.decode()")
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
        "() => document.querySelectorAll('.toggle-hidden').forEach("
        "e => e.classList.remove('toggle-hidden'))"
    )
