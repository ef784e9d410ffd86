"""The pages of functions, one a room, and the names in code that lead to them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from scripts.book.api_pages import modules as api_modules
from scripts.check.browser import opened, settle
from tests.site.conftest import CHAPTERS
from tests.site.looks import background, luminance
from tests.site.test_pages import CONTRAST, WCAG, violations

LINK = re.compile(r'<a class="code-link" href="([^"#]+)#([^"]+)">')


@pytest.mark.parametrize("part", range(4))
def test_pages_of_functions_have_no_findings_of_axe(chromium: Any, host: str, part: int) -> None:
    """In the light all rules; in the dark, where only colours differ, those of contrast."""
    first, *others = (
        f"{host}/api/{room.rpartition('.')[2]}.html" for room in list(api_modules())[part::4]
    )
    found = {}
    with opened(chromium, first) as page:
        for address in (first, *others):
            if address != first:
                page.goto(address)
                settle(page)
            where = "document" if address == first else "document.querySelector('article')"
            light = violations(page, WCAG, where)
            page.evaluate("() => { document.documentElement.dataset.theme = 'dark' }")
            assert luminance(background(page)) < 0.05
            if findings := light + violations(page, CONTRAST, where):
                found[address] = findings
    assert found == {}


@pytest.mark.parametrize("name", CHAPTERS)
def test_names_in_code_lead_to_their_documentation(site: Path, name: str) -> None:
    links = set(LINK.findall((site / f"{name}.html").read_text(encoding="utf-8")))
    assert len(links) >= 3
    for page, anchor in links:
        target = (site / name).parent / page
        assert f'id="{anchor}"' in target.read_text(encoding="utf-8"), (page, anchor)


def test_a_name_is_followed_by_a_click_and_by_the_keyboard(chromium: Any, host: str) -> None:
    with opened(chromium, f"{host}/chapters/12_planning.html") as page:
        link = page.locator("pre a.code-link", has_text="plan").first
        link.evaluate("e => { const fold = e.closest('details'); if (fold) fold.open = true; }")
        link.focus()
        page.keyboard.press("Enter")
        page.wait_for_url(re.compile(r"/api/\w+\.html#"))
        assert page.locator("h1").first.inner_text().startswith("needle.")
