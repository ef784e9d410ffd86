"""The path under a title and the words of the glossary, on the built pages."""

from __future__ import annotations

import copy
import functools
import sys
from pathlib import Path
from typing import Any

import pytest
from bs4 import BeautifulSoup, Tag

from scripts.book.run_notebooks import ROOT
from scripts.check.browser import opened
from tests.site.conftest import CHAPTERS
from tests.site.test_pages import WCAG, violations

sys.path.insert(0, str(ROOT / "site" / "ext"))

import needle_glossary
import needle_path

AROUND = 0.08  # a count from the HTML and one from the document differ at hyphens and formulas
OUT = (
    "details, .sd-card, .toggle, nav, noscript, .check, .card-of-check, .card-of-term, .headerlink"
)
OUT += ", .live-start, .reading-switch, h1, h2, h3, h4, script, style, svg, .admonition-title"
OUT += ", .smalltable"  # looked at like a figure, whose words are not counted either


pytestmark = pytest.mark.xdist_group("guide")  # each page is read once, for all tests


@functools.cache
def article(site: Path, name: str) -> Tag:
    page = BeautifulSoup((site / f"{name}.html").read_text(encoding="utf-8"), "html.parser")
    found = page.find("article")
    assert isinstance(found, Tag)
    return found


def counted(text: Tag) -> float:
    """The minutes of a page, from what a reader has before the eyes in reading mode."""
    text = copy.copy(text)
    if end := text.find(id="exercises"):
        for later in [end, *end.find_next_siblings()]:
            later.decompose()
    figures = len(text.select(".lifted"))
    formulas = len(text.select("div.math"))
    for part in text.select(f"{OUT}, div.math, .explorer, [data-explorer]"):
        part.decompose()
    for formula in text.select("span.math"):
        formula.string = "x"
    return needle_path.minutes(len(text.get_text(" ").split()), figures, formulas)


@pytest.mark.parametrize("name", [*CHAPTERS, "your_numbers"])
def test_the_stated_time_is_that_of_the_text(site: Path, name: str) -> None:
    text = article(site, name)
    path = text.select_one("nav.reading-path")
    assert path
    links = path.select("li:nth-of-type(n + 2) a")
    assert len([link for link in links if not str(link["href"]).startswith("#")]) <= 2
    stated = int(path.select_one("b").get_text().split()[0])  # type: ignore[union-attr]
    found = counted(text)
    slack = AROUND * found
    assert needle_path.rounded(found - slack) <= stated <= needle_path.rounded(found + slack)


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_word_is_marked_once_and_explained(site: Path, name: str) -> None:
    text = article(site, name)
    marks = [link["aria-describedby"] for link in text.select("a.term")]
    assert len(set(marks)) == len(marks) <= 30
    assert sorted(marks) == sorted(card["id"] for card in text.select(".card-of-term"))
    assert not text.select(".exercise a.term, figcaption a.term, h2 a.term, a a.term")


def test_the_glossary_holds_every_word(site: Path) -> None:
    entries = article(site, "glossary").select("dl.glossary dt[id]")
    assert [entry["id"] for entry in entries] == [word.key for word in needle_glossary.words()]


def test_every_word_of_the_glossary_is_marked_where_its_sense_begins(site: Path) -> None:
    missing = [
        word.word
        for word in needle_glossary.words()
        if not article(site, word.where.partition("#")[0]).select(f"a[aria-describedby={word.key}]")
    ]
    assert missing == []


def test_a_card_shows_for_the_mouse_the_keyboard_and_a_finger(chromium: Any, host: str) -> None:
    with opened(chromium, f"{host}/{CHAPTERS[2]}.html", formulas=False) as page:
        first, second = page.locator("a.term").nth(0), page.locator("a.term").nth(1)
        cards = page.locator(".card-of-term:popover-open")
        first.hover()
        assert cards.count() == 1 and cards.inner_text().startswith(first.inner_text()[:4])
        page.mouse.move(*(cards.bounding_box()[side] + 15 for side in ("x", "y")))
        assert cards.count() == 1  # the mouse may go there to read
        page.mouse.move(2, 2)
        assert cards.count() == 0
        first.focus()
        page.keyboard.press("Tab")
        assert page.evaluate("() => document.activeElement.className") == "term"
        assert cards.count() == 1 and second.evaluate("e => e === document.activeElement")
        box = cards.bounding_box()
        assert 0 <= box["x"] <= box["x"] + box["width"] <= 1280
        assert violations(page, WCAG, "'.card-of-term:popover-open'") == []
        page.keyboard.press("Escape")
        assert cards.count() == 0
        second.blur()
        key = second.get_attribute("aria-describedby")
        with page.expect_navigation():
            second.click()
        assert page.url.endswith(f"glossary.html#{key}")
    phone = {"width": 380, "height": 800, "has_touch": True}
    with opened(chromium, f"{host}/{CHAPTERS[2]}.html", **phone, formulas=False) as page:
        link = page.locator("a.term").first
        link.tap()
        cards = page.locator(".card-of-term:popover-open")
        assert cards.count() == 1
        box = cards.bounding_box()
        assert 0 <= box["x"] <= box["x"] + box["width"] <= 380
        with page.expect_navigation():
            link.tap()
        assert "glossary.html#term-" in page.url
