"""Slides and problem sets in a browser: alone on their host, with notes, on paper."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pypdf import PdfReader

from scripts.book import problems, slides
from scripts.book.browser_assets import SITE
from scripts.check.browser import opened, serve
from tests.site.test_pages import WCAG, violations

TALK = "03_separation"


def test_slides_run_alone_with_figures_an_explorer_and_notes(chromium: Any, host: str) -> None:
    source = (slides.SOURCES / f"{TALK}.md").read_text(encoding="utf-8")
    parts = source.split("\n---\n")
    with opened(chromium, f"{host}/slides/{TALK}.html", width=1280, height=720) as page:
        page.wait_for_function("() => Reveal.isReady()")
        assert page.locator(".slides > section").count() == len(parts)
        for part in parts[1:]:
            page.keyboard.press("ArrowRight")
            shown = page.locator("section.present")
            assert shown.locator("h2").inner_text() in part
            for picture in shown.locator(".plate > *, [data-explorer] svg").all():
                box = picture.bounding_box()
                assert box["width"] > 150 and box["height"] > 100
                assert box["y"] + box["height"] <= 720 and box["x"] + box["width"] <= 1280
        slider = page.locator("[data-explorer] input[type=range]").first
        page.evaluate("() => Reveal.slide(5)")
        before = slider.input_value()
        slider.focus()
        page.keyboard.press("ArrowRight")  # moves the slider, not the slides
        assert slider.input_value() != before and page.evaluate("() => Reveal.getIndices().h") == 5
        slider.blur()
        with page.expect_popup() as window:
            page.keyboard.press("s")
        notes = window.value.locator(".speaker-controls-notes .value")
        notes.get_by_text("Averaging never notices").wait_for()
        own = urlsplit(page.url).netloc
        asked = {urlsplit(url).netloc for url in page.requests_seen if url.startswith("http")}
        assert asked == {own} and page.failures == [] and page.complaints == []
        window.value.close()
        assert violations(page, WCAG, "'section.present'") == []


def test_slides_and_problems_are_printed(chromium: Any, host: str, site: Path) -> None:
    made = PdfReader(BytesIO(slides.printed(chromium, f"{host}/slides/{TALK}.html")))
    source = (slides.SOURCES / f"{TALK}.md").read_text(encoding="utf-8")
    assert len(made.pages) == len(source.split("\n---\n"))
    assert "A softmax freezes" in made.pages[3].extract_text()
    title, chosen = problems.sets()["session-07"]
    sheet = problems.printable(problems.sheet(title, problems.told(chosen), chosen))
    with serve(SITE) as address:
        text = "\n".join(
            page.extract_text()
            for page in PdfReader(BytesIO(problems.printed(chromium, address, sheet))).pages
        )
    for problem in chosen:
        assert problem.title in text
    assert "\\" not in text and "solution" not in text.lower()
