"""How fast explorers draw on a slow machine, and what they weigh."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from scripts.browser import opened
from utils.explore import modules
from utils.explore_values import EXPLORERS

DATA_BUDGET, SCRIPT_BUDGET = 400_000, 30_000  # bytes a page, compressed


SLOWER = 4  # times, the machine that is promised

FIRST = """async (name) => {
    const base = new URL('/_static/explorers/', location.href);
    const module = await import(new URL(`${name}.mjs`, base));
    const text = await (await fetch(new URL(`${name}.json`, base))).text();
    const el = document.querySelector(`[data-explorer="${name}"]`);
    window.first = () => {
        const { spec, data } = JSON.parse(text), params = spec.start;
        const known = module.prepare ? module.prepare(data) : data;
        const state = { spec, params, values: { ...module.compute(params, known), of: params } };
        module.render({ el, model: { get: (k) => state[k], set() {}, on() {} } });
        el.getBoundingClientRect();
    };
    window.first();
}"""
DRAG = """(name) => {
    const knob = document.querySelector(`[data-explorer="${name}"] input`);
    let count = 0;
    for (let i = +knob.min; i <= +knob.max; i += 1, count += 1) {
        knob.value = i;
        knob.dispatchEvent(new Event("input", { bubbles: true }));
    }
    return count;
}"""


def busy(session: Any) -> float:
    """Milliseconds of the page's own thread so far, whatever else the machine does."""
    found = session.send("Performance.getMetrics")["metrics"]
    return 1000 * next(m["value"] for m in found if m["name"] == "TaskDuration")


@pytest.mark.parametrize("name", sorted(EXPLORERS))
def test_the_first_drawing_and_every_drag_are_quick(
    chromium: Any, host: str, place: dict[str, str], name: str
) -> None:
    """First drawing: tables unpacked, numbers computed, figure drawn, mean of three. A drag: mean
    of all stops of the first slider, once it has been dragged before, the least of three rounds
    (what shares the processor and its caches only adds). Time of the thread, times 4.
    """
    with opened(chromium, f"{host}/{place[name]}.html") as page:
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable", {"timeDomain": "threadTicks"})
        page.evaluate(DRAG, name)
        drags = []
        for _ in range(3):
            start = busy(session)
            count = page.evaluate(DRAG, name)
            drags.append(SLOWER * (busy(session) - start) / count)
        drag = min(drags)
        page.evaluate(FIRST, name)
        start = busy(session)
        page.evaluate("() => { for (let k = 0; k < 3; k += 1) window.first(); }")
        first = SLOWER * (busy(session) - start) / 3
        print(f"{name}: first {first:.0f} ms, drag {drag:.1f} ms")
        assert 0 < drag < 16
        assert 0 < first < 150


def test_a_page_stays_within_its_budget(site: Path, place: dict[str, str]) -> None:
    folder = site / "_static" / "explorers"

    def size(*files: str) -> int:
        return sum(len(gzip.compress((folder / file).read_bytes())) for file in files)

    for page in set(place.values()):
        names = [name for name, where in place.items() if where == page]
        scripts = {"site.mjs"}.union(*map(modules, names))
        assert size(*scripts) <= SCRIPT_BUDGET, page
        assert size(*(f"{name}.json" for name in names)) <= DATA_BUDGET, page
