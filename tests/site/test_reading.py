"""The reading mode: text that runs on, code one click away, with and without scripts, on paper."""

from __future__ import annotations

import re
from typing import Any

import pytest

from scripts.check.browser import opened
from tests.site.conftest import CHAPTERS

PAGES_OF_PAPER = 0.75  # share of what is printed with code
MODE = "() => document.documentElement.dataset.read"


def test_one_key_and_one_click_change_the_mode_and_it_is_remembered(
    chromium: Any, host: str
) -> None:
    with opened(chromium, f"{host}/{CHAPTERS[3]}.html", formulas=False) as page:
        line = page.locator("article h2").nth(4)
        line.evaluate("e => scrollBy(0, e.getBoundingClientRect().top - 110)")
        top = "e => e.getBoundingClientRect().top"
        before = line.evaluate(top)
        closed = page.evaluate("() => document.documentElement.scrollHeight")
        page.keyboard.press("c")
        assert page.evaluate(MODE) == "code"
        assert page.evaluate("() => document.documentElement.scrollHeight") > 1.2 * closed
        assert abs(line.evaluate(top) - before) < 2  # what was being read stays where it was
        assert page.locator("details.code:not([open])").count() == 0
        page.goto(f"{host}/{CHAPTERS[4]}.html")
        assert page.evaluate(MODE) == "code"
        assert page.locator("details.code .cell_input").first.is_visible()
        page.get_by_role("button", name="Reading", exact=True).click()
        assert page.evaluate(MODE) == "reading"
        assert page.locator("details.code[open]").count() == 0
        page.locator("input[type=search]").first.evaluate("e => e.focus()")
        page.keyboard.press("Control+c")
        assert page.evaluate(MODE) == "reading"


def test_a_mark_opens_its_card_by_keyboard_and_escape_closes_it(chromium: Any, host: str) -> None:
    with opened(chromium, f"{host}/{CHAPTERS[3]}.html", formulas=False) as page:
        mark = page.locator("button.check:visible").first
        card = page.locator(f"[id='{mark.get_attribute('popovertarget')}']")
        assert not card.is_visible()
        mark.focus()
        page.keyboard.press("Enter")
        card.wait_for()
        assert card.locator("tbody tr").count() >= int(mark.inner_text().split()[1])
        box = card.bounding_box()
        assert 0 <= box["x"] <= box["x"] + box["width"] <= 1280
        page.keyboard.press("Escape")
        assert not card.is_visible()
        fold = page.locator("details.code").first
        fold.locator("summary").first.focus()
        for state in (True, False):
            page.keyboard.press("Enter")
            assert fold.evaluate("e => e.open") is state


def test_a_link_to_an_agreement_opens_what_holds_it(chromium: Any, host: str) -> None:
    with opened(chromium, f"{host}/ledger.html", formulas=False) as page:
        link = page.locator("a[href*='chapters/05_test_error.html#agreement-']").first
        page.goto(link.evaluate("e => e.href"))
        found = page.locator("details.agreement:target")
        assert found.evaluate("e => e.open") and found.locator("table").is_visible()
        assert 0 <= found.bounding_box()["y"] <= 700


def test_without_scripts_folds_and_cards_open_and_paper_has_the_text(
    chromium: Any, host: str
) -> None:
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{host}/{CHAPTERS[0]}.html")
    assert not page.locator(".reading-switch").is_visible()
    inside = page.locator("details.code .cell_input").first
    assert not inside.is_visible()
    page.locator("details.code > summary").first.click()
    assert inside.is_visible()
    page.locator("button.check").first.click()
    assert page.locator(".card-of-check").first.is_visible()
    page.reload()
    page.emulate_media(media="print")
    assert not page.locator("details.code").first.is_visible()
    assert page.locator("figure figcaption").first.is_visible()
    context.close()


def test_paper_has_the_chosen_mode(chromium: Any, host: str) -> None:
    from io import BytesIO

    from pypdf import PdfReader

    with opened(chromium, f"{host}/{CHAPTERS[3]}.html", formulas=False) as page:
        pages = {}
        for mode in ("reading", "code"):
            page.evaluate("mode => window.book.read(mode)", mode)
            pages[mode] = len(PdfReader(BytesIO(page.pdf(format="A4"))).pages)
        assert pages["reading"] < PAGES_OF_PAPER * pages["code"], pages


MESSAGE = re.compile(r'<strong>Figure [^<]*</strong>\s*<strong class="message">')


def test_captions_say_first_what_there_is_to_see(site: Any) -> None:
    """The first sentence of most captions is short, and set as their message."""
    pages = [(site / f"{name}.html").read_text(encoding="utf-8") for name in CHAPTERS]
    set_off = sum(len(MESSAGE.findall(page)) for page in pages)
    assert set_off >= 0.6 * sum(page.count("<figcaption>") for page in pages)
    for page in pages:  # how a figure was made stands in its fold
        for at in re.finditer(r"<p><strong>How (?:it was made|this was checked)\.", page):
            before = page[: at.start()]
            assert before.rfind('<details class="code"') > before.rfind("</details>")


NUMBERED = [name for name in CHAPTERS if name.split("/")[1][0].isdigit()]


@pytest.mark.parametrize("name", NUMBERED)
def test_a_chapter_has_something_to_move(site: Any, name: str) -> None:
    """Before its exercises."""
    text = (site / f"{name}.html").read_text(encoding="utf-8").partition('id="exercises"')[0]
    assert "data-explorer=" in text
