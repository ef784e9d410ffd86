"""How fast explorers draw on a slow machine, and what they weigh."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scripts.browser import opened
from utils.explore import modules
from utils.explore_values import EXPLORERS

DATA_BUDGET, SCRIPT_BUDGET = 400_000, 30_000  # bytes a page, compressed


@pytest.mark.parametrize("name", sorted(EXPLORERS))
def test_the_first_drawing_is_there_at_once(
    chromium: Any, host: str, place: dict[str, str], name: str
) -> None:
    """Tables unpacked, numbers computed, figure drawn: median of five, four times slowed down."""
    with opened(chromium, f"{host}/{place[name]}.html") as page:
        page.context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": 4})
        times = page.evaluate(
            """async (name) => {
                const base = new URL('/_static/explorers/', location.href);
                const module = await import(new URL(`${name}.mjs`, base));
                const text = await (await fetch(new URL(`${name}.json`, base))).text();
                const el = document.querySelector(`[data-explorer="${name}"]`);
                return [1, 2, 3, 4, 5].map(() => {
                    const start = performance.now(), { spec, data } = JSON.parse(text);
                    const params = spec.start, known = module.prepare ? module.prepare(data) : data;
                    const values = { ...module.compute(params, known), of: params };
                    const state = { spec, params, values };
                    module.render({ el, model: { get: (k) => state[k], set() {}, on() {} } });
                    el.getBoundingClientRect();
                    return performance.now() - start;
                });
            }""",
            name,
        )
        assert np.median(times) < 150


@pytest.mark.parametrize("name", sorted(EXPLORERS))
def test_a_drag_event_is_drawn_within_a_frame_on_a_slow_machine(
    chromium: Any, host: str, place: dict[str, str], name: str
) -> None:
    """Median of a drag along the first slider with the processor throttled fourfold."""
    with opened(chromium, f"{host}/{place[name]}.html") as page:
        session = page.context.new_cdp_session(page)
        session.send("Emulation.setCPUThrottlingRate", {"rate": 4})
        times = page.evaluate(
            """(name) => {
                const knob = document.querySelector(`[data-explorer="${name}"] input`);
                const times = [];
                for (let i = +knob.min; i <= +knob.max; i += 1) {
                    knob.value = i;
                    const start = performance.now();
                    knob.dispatchEvent(new Event("input", { bubbles: true }));
                    times.push(performance.now() - start);
                }
                return times;
            }""",
            name,
        )
        assert np.median(times) < 16


def test_a_page_stays_within_its_budget(site: Path, place: dict[str, str]) -> None:
    folder = site / "_static" / "explorers"

    def size(*files: str) -> int:
        return sum(len(gzip.compress((folder / file).read_bytes())) for file in files)

    for page in set(place.values()):
        names = [name for name, where in place.items() if where == page]
        scripts = {"site.mjs"}.union(*map(modules, names))
        assert size(*scripts) <= SCRIPT_BUDGET, page
        assert size(*(f"{name}.json" for name in names)) <= DATA_BUDGET, page
