"""Figures whose curves their cell has computed: moved, read aloud, still without scripts."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scripts.check.browser import opened
from tests.site.conftest import CHAPTERS
from tests.site.sliders import curves

PLACE = re.compile(r'data-explorer="(family-\w+)"[^>]*?data-family=\'([^\']*)\'')
AXE = """async (name) => (await axe.run(`[data-explorer="${name}"]`, { runOnly:
    ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] }))
    .violations.map((v) => [v.id, v.nodes.map((n) => n.html.slice(0, 120))])"""


def families(site: Path) -> dict[str, list[tuple[str, dict[str, Any]]]]:
    """The movable figures of each chapter, and what they hold."""
    found = {}
    for chapter in CHAPTERS:
        text = (site / f"{chapter}.html").read_text(encoding="utf-8")
        places = [(name, json.loads(html.unescape(held))) for name, held in PLACE.findall(text)]
        if places:
            found[chapter] = places
    return found


@pytest.fixture
def touched(site: Path, chromium: Any, host: str) -> Any:
    """Every chapter that has a movable figure, open on a telephone, and its figures."""

    def pages() -> Any:
        for chapter, places in families(site).items():
            with opened(
                chromium, f"{host}/{chapter}.html", width=380, height=800, formulas=False
            ) as page:
                yield page, places

    return pages


def test_every_movable_figure_moves_by_keys_is_heard_and_has_no_findings(touched: Any) -> None:
    """What is drawn at the stops chosen is what the cell has computed there."""
    seen = 0
    together = """() => Math.max(...[...document.querySelectorAll('[data-explorer]')].map(
        e => e.querySelector('.explorer-panel').getBoundingClientRect().bottom
            - e.querySelector('.explorer-knobs').getBoundingClientRect().top))"""
    script = Path("_vendor/tests/axe.min.js").read_text(encoding="utf-8")
    for page, places in touched():
        page.evaluate(script)
        for name, held in places:
            inside = page.locator(f'[data-explorer="{name}"]')
            before = inside.locator(".explorer-sentence").inner_text()
            knobs = inside.locator("input[type=range]")
            for k in range(knobs.count()):
                at_end = knobs.nth(k).input_value() == knobs.nth(k).get_attribute("max")
                knobs.nth(k).press("ArrowLeft" if at_end else "ArrowRight")
            assert inside.locator(".explorer-sentence").inner_text() != before, name
            stops = [len(s["stops"]) for s in held["spec"]["sliders"]]
            chosen = [int(knobs.nth(k).input_value()) for k in range(len(stops))]
            row = held["data"]["rows"][np.ravel_multi_index(chosen, stops)]
            drawn = curves(page, name)
            for about, curve in zip(held["spec"]["curves"], row, strict=True):
                if "y" not in curve or about["dots"] or None in curve["y"]:
                    continue
                (low, high), log = (held["spec"]["axes"]["y"][key] for key in ("domain", "log"))
                fine = 0.002 * (np.log(high / low) if log else high - low)
                ours, theirs = drawn[about["name"]][:, 1], np.array(curve["y"], dtype=float)
                gaps = np.log(ours / np.maximum(theirs, 1e-300)) if log else ours - theirs
                assert np.abs(gaps).max() <= fine, (name, about["name"])
            assert page.evaluate(AXE, name) == [], name
            assert inside.evaluate("e => e.scrollWidth <= e.clientWidth"), name
            seen += 1
        assert page.evaluate(together) <= 600  # controls and picture on one screen
        assert page.failures == page.complaints == []
    assert seen >= 1


def test_without_scripts_a_picture_stands_there(site: Path, chromium: Any, host: str) -> None:
    [chapter, *_] = families(site)
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{host}/{chapter}.html")
    picture = page.locator("[data-family] svg")
    assert picture.first.is_visible() and picture.first.locator("path").count() > 1
    assert page.locator("[data-family] p").first.inner_text().count("Drawn at") == 1
    context.close()
