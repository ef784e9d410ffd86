"""The Content-Security-Policy of the pages: nothing of the site breaks it, what is foreign does."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path
from typing import Any

from scripts.check.browser import opened, settle

TAG = re.compile(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)"')


def test_every_page_has_one_policy_that_names_its_own_scripts(site: Path) -> None:
    pages = [path for path in site.rglob("*.html") if "_static" not in path.parts]
    assert len(pages) > 30
    for path in pages:
        text = path.read_text(encoding="utf-8")
        [rules] = TAG.findall(text)
        assert text.index("http-equiv") < text.index("<title"), path.name
        assert not re.search(r"https?:|\*|'unsafe-eval'", rules), path.name
        script = next(rule for rule in rules.split("; ") if rule.startswith("script-src"))
        assert "'unsafe-inline'" not in script
        for about, inline in re.findall(r"<script([^>]*)>(.*?)</script>", text, re.S):
            if inline.strip() and "json" not in about and "src=" not in about:
                digest = base64.b64encode(hashlib.sha256(inline.encode()).digest()).decode()
                assert f"'sha256-{digest}'" in script, f"{path.name}: {inline[:60]}"


def test_the_page_for_what_is_not_there_keeps_its_policy(chromium: Any, host: str) -> None:
    """Every other page is asked where it is open: in test_pages, and as it runs in test_live."""
    with opened(chromium, f"{host}/404.html") as page:
        assert page.evaluate("window.broken ?? []") == []


FOREIGN = [
    "<img src='https://example.org/a.png'>",
    "<script src='https://example.org/a.js'></script>",
    "<script>window.foreign = 1</script>",
    "<button onclick='window.foreign = 1'></button>",
    "<iframe src='https://example.org'></iframe>",
]


def test_what_is_foreign_does_not_run(chromium: Any, host: str) -> None:
    with opened(chromium, f"{host}/references.html") as page:
        for tag in FOREIGN:
            page.evaluate(
                "html => { window.broken = []; const range = document.createRange();"
                " document.body.append(range.createContextualFragment(html));"
                " document.querySelector('body > button')?.click(); }",
                tag,
            )
            page.wait_for_function("() => window.broken.length")
            assert page.evaluate("window.foreign") is None


def test_a_fragment_that_names_nothing_stops_nothing(chromium: Any, host: str) -> None:
    with opened(chromium, f"{host}/chapters/01_model.html", formulas=False) as page:
        for fragment in ("%E0", "%", "no-such-place", "%F0%9F%8D%8B"):
            page.goto(f"{host}/404.html")
            page.goto(f"{host}/chapters/01_model.html#{fragment}")
            settle(page)
            assert page.complaints == [], fragment
