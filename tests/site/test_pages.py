"""Every page in a headless Chromium: alone on its host, legible, usable by keyboard, printable."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from scripts.book.browser_assets import TESTS
from scripts.book.pdf import SETTLED, WIDTH
from tests.site.conftest import CHAPTERS, DARK, LIGHT
from tests.site.line import COLD, REQUESTS, SECOND, burden
from tests.site.looks import (
    FIGURES,
    READ,
    TEXT_CONTRAST,
    background,
    contrast,
    luminance,
    pixels,
    unfold,
)
from utils.figures import STYLE

SMALLEST_TYPE = 9.0  # CSS pixels, of tick labels on a telephone
CUT_FORMULAS = """() => [...document.querySelectorAll('article mjx-container')].filter(formula => {
    for (let e = formula; e && !e.matches('article'); e = e.parentElement)
        if (['auto', 'scroll'].includes(getComputedStyle(e).overflowX)) return false;
    return formula.getBoundingClientRect().right > window.innerWidth;
}).map(formula => formula.textContent)"""
SCROLLING_FORMULAS = """() => [...document.querySelectorAll('mjx-container[display="true"]')]
    .filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.scrollWidth / e.clientWidth)"""
CUT_TABLES = """() => [...document.querySelectorAll('table.agreement, details.agreement')].filter(
    e => { const box = e.closest('.cell_output, .output') ?? e.parentElement;
           const table = e.matches('table') ? e : e.querySelector('table');
           return table?.getBoundingClientRect().right > box.getBoundingClientRect().right + 1 }
    ).map(e => e.textContent.trim().slice(0, 40))"""
CUT_WORDS = """() => [...document.querySelectorAll(
    'article :is(h1, h2, h3, p, li, figcaption, caption, summary)')].filter(
    e => !e.closest('td, th') && e.getBoundingClientRect().right > innerWidth + 1
    ).map(e => e.textContent.trim().slice(0, 40))"""
OFF_PAPER = """() => {
    const paper = document.querySelector('article, main').getBoundingClientRect();
    return [...document.querySelectorAll('article :is(p, li, pre, table, img, svg, figcaption),' +
        'article mjx-container[display="true"] > mjx-math')].filter(
        e => e.checkVisibility() && e.getBoundingClientRect().right > paper.right + 2
        ).map(e => e.tagName + ': ' + e.textContent.trim().slice(0, 40)) }"""
SCROLLING_PLATES = """() => [...document.querySelectorAll('.plate:has(> img)')].filter(
    e => !e.closest('.admonition') && e.scrollWidth > e.clientWidth + 1).length"""
SPARE = """() => {
    for (const drawn of document.querySelectorAll('mjx-container, .plate > svg'))
        drawn.replaceChildren();
    for (const table of document.querySelectorAll('article table'))
        for (const row of [...table.rows].slice(4)) row.remove();
    const seen = {};
    for (const word of document.querySelectorAll('pre span'))
        if ((seen[word.className] = (seen[word.className] ?? 0) + 1) > 2)
            word.replaceWith(...word.childNodes);
}"""
AXE = """async rules => {
    const where = WHERE, root = typeof where === 'string' ? document.querySelector(where) : where;
    const told = { resultTypes: ['violations'] }, bare = { 'color-contrast': { enabled: false } };
    const grounds = element => {
        const found = [];
        for (let e = element; e; e = e.parentElement) {
            const { backgroundColor, backgroundImage, opacity } = getComputedStyle(e);
            found.push(backgroundColor + backgroundImage + opacity);
        }
        return found.filter(ground => ground !== 'rgba(0, 0, 0, 0)none1').join();
    };
    const says = e => e.checkVisibility({ visibilityProperty: true }) &&
        [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim());
    const seen = {}, looks = [...root.querySelectorAll('*')].filter(says).filter(e => {
        const { color, fontSize, fontWeight, textShadow } = getComputedStyle(e);
        const look = [color, fontSize, fontWeight, textShadow, grounds(e)].join();
        return (seen[look] = (seen[look] ?? 0) + 1) <= 2;
    });
    const all = rules.length ? (await axe.run(where, { ...told, runOnly: rules, rules: bare }))
        .violations : [];
    const pale = await axe.run({ include: looks }, { ...told, runOnly: ['color-contrast'] });
    return [...all, ...pale.violations].map(v => [v.id, v.nodes.length, ...v.nodes.slice(0, 3).map(
        n => n.target.join(' ') + ': ' + n.failureSummary)]); }"""
WCAG = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
CONTRAST: list[str] = []  # which comes with all rules
STOPS = """[...document.querySelectorAll(
    'a[href], button, input, select, summary, textarea, [tabindex]')].filter(
    e => e.tabIndex >= 0 && !e.disabled && e.checkVisibility({visibilityProperty: true}))"""
UNSEEN = f"""() => {{
    const look = e => [e, e.firstElementChild ?? e].map(x => getComputedStyle(x)).map(
        s => s.outlineStyle + s.outlineWidth + s.boxShadow + s.border).join();
    const kinds = new Map({STOPS}.map(e => [
        [e, e.parentElement].map(x => x.tagName + '.' + x.getAttribute('class')).join(' '), e]));
    const unseen = [];
    for (const [kind, stop] of kinds) {{
        stop.focus();
        const focused = look(stop);
        stop.blur();
        if (focused === look(stop)) unseen.push(kind);
    }}
    return unseen; }}"""
TO_SOLUTION = f"""() => {{
    const stops = {STOPS}, exercises = document.getElementById('exercises');
    const first = stops.findIndex(e => e.matches('div.solution button.toggle-button'));
    return first < 0 ? 1000 : first - stops.findIndex(e => exercises.contains(e)); }}"""
SMALLEST = f"""pixels => [...document.querySelectorAll('{FIGURES}')].map(figure => {{
    const wide = figure.getBoundingClientRect().width;
    if (figure.matches('img')) return [figure.alt, pixels * wide / figure.naturalWidth];
    const text = [...figure.querySelectorAll('text')]
        .map(t => parseFloat(getComputedStyle(t).fontSize));
    return [figure.ariaLabel, Math.min(99, ...text) * wide / figure.viewBox.baseVal.width];
}}).map(([name, size]) => [name.slice(0, 12), size])"""
SQUEEZED = """() => [...document.images].filter(image => {
    const { width, height } = image.getBoundingClientRect();
    return width && Math.abs(width / height / (image.naturalWidth / image.naturalHeight) - 1) > .02;
}).map(image => image.src)"""
FIRST = """() => {
    const all = document.querySelectorAll('article :is(figure.book-figure, [data-explorer])');
    return all.length ? all[0].getBoundingClientRect().top + scrollY : Infinity;
}"""
SOON = 1.5 * 800  # a screen and a half, until something is to be seen, or to be moved
NUMBERED = re.compile(r"chapters/\d")
INTERRUPTIONS, WORDS = 5.0, 4500  # in a thousand words; words before the exercises
CLOSED = "details:not([open]) > :not(summary)"
LETTERS = """() => {
    const pen = document.createElement('canvas').getContext('2d');
    const size = text => pen.measureText(text).width / text.length;
    const told = document.querySelectorAll('article p:not(.admonition-title)');
    return Math.max(0, ...[...told].map(p => {
        pen.font = getComputedStyle(p).font;
        return p.getBoundingClientRect().width / size('the quick brown fox jumps over a dog ');
    })); }"""
BUTTONS = "document.querySelectorAll('div.solution button.toggle-button')"
ASKED = f"() => {BUTTONS}.length"
SOLUTIONS = """() => {
    const all = [...document.querySelectorAll('div.solution')];
    const shown = e => e.querySelector('div.cell')?.checkVisibility({ visibilityProperty: true });
    return [all.filter(shown).length, all.length]; }"""
CUT = """() => [...document.querySelectorAll('article pre')].filter(
    e => e.scrollWidth > e.clientWidth + 1).length"""


def violations(page: Any, rules: Any, where: str = "document") -> list[Any]:
    """What axe-core finds on a page or in a part of it, stripped of what it would count again.

    That is the inside of formulas, which is MathJax's, and of figures, which have tests of their
    own, rows of a table beyond four, and words of code beyond two of each colour. The contrast is
    that of two words of each look, by their colour, size, weight and all grounds below them.
    The page is looked at from its top, where its header covers nothing, with the mouse away.
    """
    page.mouse.move(0, 0)
    page.evaluate("() => scrollTo({ top: 0, behavior: 'instant' })")
    page.evaluate(SPARE)
    if not page.evaluate("'axe' in window"):
        page.evaluate((TESTS / "axe.min.js").read_text(encoding="utf-8"))
    return page.evaluate(AXE.replace("WHERE", where), rules)


def test_page_is_whole_and_alone(wide: Any) -> None:
    """No request to another host, none that fails, no error in the console, mathematics set."""
    own = urlsplit(wide.url).netloc
    hosts = {urlsplit(url).netloc for url in wide.requests_seen if url.startswith("http")}
    assert hosts == {own}
    assert wide.failures == []
    assert wide.complaints == []
    unset = "e => e.querySelector('mjx-container') === null"
    assert (
        wide.evaluate(f"() => [...document.querySelectorAll('.math')].filter({unset}).length") == 0
    )
    assert wide.locator("mjx-merror, [data-mjx-error]").count() == 0
    # tests of explorers open pages without setting formulas
    assert wide.locator("[data-explorer] mjx-container").count() == 0
    if wide.name in CHAPTERS:
        assert wide.locator("mjx-container").count() > 0


def test_the_text_is_seldom_interrupted(wide: Any) -> None:
    """By visible code, prints and folds, before the exercises; before anything else is touched."""
    if wide.name not in CHAPTERS:
        return
    assert wide.evaluate("() => document.documentElement.dataset.read") == "reading"
    found, words = wide.evaluate(READ)
    assert 1000 * found / words <= INTERRUPTIONS, (found, words)
    number = wide.name.split("/")[1][:2]
    assert words <= WORDS or not number.isdigit(), words
    wide.evaluate("() => window.book.read('code')")
    assert wide.evaluate(READ)[0] > 2 * found
    wide.evaluate("() => window.book.read('reading')")


def test_page_is_light_enough_for_a_slow_line(wide: Any, site: Path) -> None:
    """What the browser has asked for, before anybody scrolls, at first and as a second page."""
    cold, second, requests = burden(site, wide.requests_seen)
    assert cold <= COLD
    assert second <= SECOND
    assert requests <= REQUESTS


def test_the_keyboard_is_seen_and_soon_at_a_solution(wide: Any) -> None:
    """Each kind of stop shows that it has the focus; the skip link leads to the exercises."""
    if wide.locator("div.solution").count():
        assert wide.locator("#pst-skip-link a[href='#exercises']").count() == 1
        assert wide.evaluate(TO_SOLUTION) <= 40
    wide.keyboard.press("Tab")
    assert wide.evaluate(UNSEEN) == []


def test_formulas_are_no_tab_stops_and_buttons_have_names(wide: Any) -> None:
    assert wide.locator("mjx-container[tabindex]").count() == 0
    unnamed = "b => !b.innerText.trim() && !b.ariaLabel && !b.title"
    buttons = f"() => [...document.querySelectorAll('button')].filter({unnamed}).length"
    assert wide.evaluate(buttons) == 0


def test_lines_have_a_readable_length(wide: Any) -> None:
    """Code of 100 letters stands without scrolling at 1280 pixels, text in lines of some 80."""
    assert wide.evaluate(CUT.replace("pre", ".cell_input pre")) == 0
    assert wide.evaluate(LETTERS) <= 85


def test_a_chapter_opens_with_a_picture(wide: Any) -> None:
    assert not NUMBERED.match(wide.name) or wide.evaluate(FIRST) <= SOON


def test_solutions_are_folded_until_asked_for(wide: Any) -> None:
    """The first by a click of the mouse, which nothing may cover, the others by their buttons."""
    if not wide.locator("div.solution").count():
        return
    assert wide.evaluate(SOLUTIONS) == [0, wide.evaluate(ASKED)]
    wide.locator("div.solution button.toggle-button").first.click()
    assert wide.evaluate(SOLUTIONS)[0] == 1
    wide.evaluate(f"() => [...{BUTTONS}].slice(1).forEach(button => button.click())")
    shown, all_of_them = wide.evaluate(SOLUTIONS)
    assert shown == all_of_them > 0


def test_paper_shows_everything_and_is_light_whatever_the_theme(wide: Any) -> None:
    """Folded code, tables, answers and solutions are printed, and nothing is cut on A4."""
    folds = wide.locator(CLOSED).count()
    wide.evaluate(DARK)
    wide.emulate_media(media="print")
    wide.set_viewport_size({"width": WIDTH, "height": 1000})
    wide.evaluate("() => window.dispatchEvent(new Event('beforeprint'))")
    wide.evaluate(SETTLED)
    assert wide.locator(CLOSED).count() == 0
    assert wide.evaluate(CUT) == 0
    assert wide.evaluate(OFF_PAPER) == []
    for solution in wide.locator("div.solution div.cell").all()[:3]:
        assert solution.bounding_box()["height"] > 20
    assert luminance(background(wide)) > 0.9
    ink = wide.evaluate(
        "() => getComputedStyle(document.querySelector(':is(article, main) p:not(figure p)')).color"
    )
    assert luminance(np.array([int(v) for v in re.findall(r"\d+", ink)[:3]])) < 0.1
    wide.emulate_media(media="screen")
    wide.evaluate("() => window.dispatchEvent(new Event('afterprint'))")
    assert wide.locator(CLOSED).count() == folds
    assert wide.evaluate("() => document.documentElement.dataset.theme") == "dark"
    wide.evaluate(LIGHT)


def fits(phone: Any) -> None:
    """Only figures and tables scroll sideways, no formula is cut, and type stays legible."""
    unfold(phone)
    assert phone.evaluate("() => document.documentElement.scrollWidth") <= 380
    assert phone.evaluate(CUT_FORMULAS) == []
    assert phone.evaluate(SCROLLING_FORMULAS) == []
    assert phone.evaluate(CUT_TABLES) == []
    assert phone.evaluate(CUT_WORDS) == []
    pixels = min(STYLE["xtick.labelsize"], STYLE["legend.fontsize"]) * STYLE["figure.dpi"] / 72
    for width in (380, 320):
        phone.set_viewport_size({"width": width, "height": 800})
        phone.evaluate(SETTLED)
        sizes = phone.evaluate(SMALLEST, pixels)
        assert [name for name, size in sizes if size < SMALLEST_TYPE] == []
        assert phone.evaluate(SQUEEZED) == []
    assert phone.evaluate("() => document.documentElement.scrollWidth") <= 320
    if phone.name in CHAPTERS:  # outside boxes a figure fits even there
        assert phone.evaluate(SCROLLING_PLATES) == 0


def test_page_fits_a_telephone(upright: Any) -> None:
    assert not NUMBERED.match(upright.name) or upright.evaluate(FIRST) <= SOON
    fits(upright)


def test_page_opened_on_a_telephone_fits(phone: Any) -> None:
    fits(phone)


def test_figures_are_legible_in_the_dark(dark: Any) -> None:
    """The ground of a figure is that of the page, and its strongest ink stands out from it."""
    unfold(dark)
    ground = background(dark)
    assert luminance(ground) < 0.05
    for image in dark.locator(FIGURES).all()[::3]:  # all are drawn in one style
        seen = pixels(image.screenshot())
        frame = np.median(seen[:4].reshape(-1, 3), axis=0)
        assert contrast(frame, ground) < 1.3
        assert np.quantile(contrast(seen, ground), 0.995) > TEXT_CONTRAST


def test_nothing_breaks_the_policy(dark: Any) -> None:
    """Of all that was done so far, nor does a first button."""
    for button in dark.locator("button[onclick]").all()[:1]:
        button.evaluate("e => e.click()")
    assert dark.evaluate("window.broken ?? []") == dark.complaints == []


def test_anyone_can_use_the_page(dark: Any) -> None:
    """WCAG 2.2 AA by axe-core; only colours depend on the theme. Last, for it strips the page."""
    unfold(dark)
    assert violations(dark, CONTRAST) == []
    dark.evaluate(LIGHT)
    assert violations(dark, WCAG) == []
