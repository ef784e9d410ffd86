"""How fast explorers draw on a slow machine, and what they weigh."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from scripts.check.browser import opened
from scripts.check.explorer_speed import DRAG, FIRST, allowed, measure
from utils.explorers import modules
from utils.explorers.values import EXPLORERS

DATA_BUDGET, SCRIPT_BUDGET = 400_000, 30_000  # bytes a page, compressed


@pytest.mark.parametrize("name", sorted(EXPLORERS))
def test_the_first_drawing_and_every_drag_are_quick(
    chromium: Any, host: str, place: dict[str, str], name: str
) -> None:
    """150 and 16 ms on a machine four times slower, held as ratios to the work of a reference.

    The reference is an SVG that is built anew and laid out on the same page, in turns with the
    slider; both are times of the page's own thread, the least of six rounds. It took 1.6 ms
    (`REFERENCE`) when the ratio was set, so that 16 ms at a quarter of the speed are 2.5 times
    the reference. A busy machine slows both; benchmarks/EXPLORERS.md tells milliseconds.
    """
    with opened(chromium, f"{host}/{place[name]}.html") as page:
        found = measure(page, name)
    drag, first = found.ratios
    print(f"{name}: first {first:.1f}, drag {drag:.2f} ({found.slider}), {found}")
    assert 0 < drag < allowed(DRAG)
    assert 0 < first < allowed(FIRST)


def test_a_page_stays_within_its_budget(site: Path, place: dict[str, str]) -> None:
    folder = site / "_static" / "explorers"

    def size(*files: str) -> int:
        return sum(len(gzip.compress((folder / file).read_bytes())) for file in files)

    for page in set(place.values()):
        names = [name for name, where in place.items() if where == page]
        scripts = {"site.mjs"}.union(*map(modules, names))
        assert size(*scripts) <= SCRIPT_BUDGET, page
        assert size(*(f"{name}.json" for name in names)) <= DATA_BUDGET, page
