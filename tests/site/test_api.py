"""The pages of functions, one a module, and the names in code that lead to them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from scripts.browser import opened
from scripts.build_book import api_modules
from tests.site.conftest import CHAPTERS
from tests.site.test_pages import WCAG, violations

LINK = re.compile(r'<a class="code-link" href="([^"#]+)#([^"]+)">')


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("part", range(4))
def test_pages_of_functions_have_no_findings_of_axe(
    chromium: Any, host: str, theme: str, part: int
) -> None:
    found = {}
    for module in api_modules()[part::4]:
        with opened(chromium, f"{host}/api/{module}.html", theme=theme) as page:
            if findings := violations(page, WCAG):
                found[module] = findings
    assert found == {}


@pytest.mark.parametrize("name", CHAPTERS)
def test_names_in_code_lead_to_their_documentation(site: Path, name: str) -> None:
    links = set(LINK.findall((site / f"{name}.html").read_text(encoding="utf-8")))
    assert len(links) >= 3
    for page, anchor in links:
        target = (site / name).parent / page
        assert f'id="{anchor}"' in target.read_text(encoding="utf-8"), (page, anchor)


def test_a_name_is_followed_by_a_click_and_by_the_keyboard(chromium: Any, host: str) -> None:
    with opened(chromium, f"{host}/chapters/10_planning.html") as page:
        link = page.locator("pre a.code-link", has_text="plan").first
        link.evaluate("e => { const fold = e.closest('details'); if (fold) fold.open = true; }")
        link.focus()
        page.keyboard.press("Enter")
        page.wait_for_url(re.compile(r"/api/\w+\.html#"))
        assert page.locator("h1").first.inner_text().startswith("utils.")
