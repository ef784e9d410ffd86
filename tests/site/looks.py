"""What a page looks like: its colours, their contrast, everything unfolded."""

from __future__ import annotations

import re
from io import BytesIO
from typing import Any

import numpy as np
from PIL import Image

from scripts.book.pdf import SETTLED
from scripts.check.browser import load_images

TEXT_CONTRAST = 4.5  # WCAG AA for text, here of the strongest ink of a figure against the page
SCROLLS = "[...document.querySelectorAll('article pre')].filter(e => e.scrollWidth > e.clientWidth)"
FIGURES = ".plate > img, .plate > svg, img.plot"

# interruptions and words before the exercises; formulas count as their TeX, each a word or two
READ = """() => {
    const set = [...MathJax.startup.document.math].map(formula => formula.typesetRoot);
    const tex = [...MathJax.startup.document.math].map(
        ({ start, math, end }) => document.createTextNode(start.delim + math + end.delim));
    set.forEach((formula, k) => formula.replaceWith(tex[k]));
    const end = document.getElementById('exercises'), article = document.querySelector('article');
    const before = e => !end || e.compareDocumentPosition(end) & Node.DOCUMENT_POSITION_FOLLOWING;
    const all = kind => [...article.querySelectorAll(kind)].filter(
        e => before(e) && e.checkVisibility());
    const words = all('p:not(.explorer-live), li, figcaption, h2, h3')
        .filter(e => !e.parentElement.closest('li, figcaption, .reading-path'))
        .reduce((sum, e) => sum + e.innerText.split(/\\s+/).filter(w => /\\w/.test(w)).length, 0);
    const found = all('summary, .cell_input, .cell_output pre').length;
    tex.forEach((text, k) => text.replaceWith(set[k]));
    return [found, words]; }"""


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


def unfold(page: Any) -> None:
    page.evaluate(
        "() => document.querySelectorAll('.toggle-hidden, details').forEach("
        "e => { e.open = true; e.classList.remove('toggle-hidden') })"
    )
    load_images(page)


def resize(page: Any, width: int, height: int) -> None:
    """Another size of the window, once the page has followed: the theme takes its time."""
    page.set_viewport_size({"width": width, "height": height})
    page.evaluate(SETTLED)
    page.evaluate("() => dispatchEvent(new Event('resize'))")  # should its own have come too early
    page.wait_for_function(f"() => {SCROLLS}.every(e => e.tabIndex === 0)")
