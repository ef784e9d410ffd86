"""What the tests of explorers do with sliders and with the curves that a page has drawn."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np

from scripts.book.build_book import toc_pages
from utils.explorers.values import EXPLORERS

PIXEL = 0.02  # coordinates in the SVG are rounded to hundredths


def pages(site: Path) -> dict[str, str]:
    """The page on which each explorer stands."""
    found = {}
    for page in toc_pages():
        for name in re.findall(r'data-explorer="(\w+)"', (site / f"{page}.html").read_text()):
            found[name] = page
    return found


def random_settings(name: str, count: int, seed: int = 0) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    sliders = EXPLORERS[name].sliders
    settings = []
    for _ in range(count):
        chosen = {s.name: s.stops[rng.integers(len(s.stops))] for s in sliders}
        if EXPLORERS[name].again:
            chosen["draw"] = int(rng.integers(1, 10_000))
        settings.append(chosen)
    return settings


def computed(page: Any, name: str, settings: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the browser computes at some settings."""
    return page.evaluate(
        """async ([name, settings]) => {
            const base = new URL('/_static/explorers/', location.href);
            const module = await import(new URL(`${name}.mjs`, base));
            const { data } = await (await fetch(new URL(`${name}.json`, base))).json();
            const known = module.prepare ? module.prepare(data) : data;
            return settings.map((s) => module.compute(s, known));
        }""",
        [name, settings],
    )


def deviation(ours: Any, theirs: Any) -> float:
    """The largest difference of two shown values, relative to their size where that is above 1."""
    if isinstance(ours, dict):
        return max((deviation(ours[k], theirs[k]) for k in ours), default=0.0)
    if isinstance(ours, list):
        if len(ours) != len(theirs):
            return np.inf
        return max((deviation(a, b) for a, b in zip(ours, theirs, strict=True)), default=0.0)
    if ours is None or theirs is None or isinstance(ours, str | bool):
        return 0.0 if ours == theirs else np.inf
    return abs(ours - theirs) / max(1.0, abs(theirs))


def curves(page: Any, name: str) -> dict[str, np.ndarray]:
    """Every drawn curve (points, 2) in the units of its axes, read back from the SVG."""
    drawn = page.eval_on_selector_all(
        f'[data-explorer="{name}"] svg [data-curve]',
        "paths => paths.map(p => [p.dataset.curve, p.getAttribute('d'),"
        " p.ownerSVGElement.dataset.x, p.ownerSVGElement.dataset.y])",
    )
    found = {}
    for label, d, *axes in drawn:
        points = re.findall(r"([ML])([-\d.]+),([-\d.]+)(?:V([-\d.]+))?", d)
        pixels = np.array([[float(x), float(end or y)] for _, x, y, end in points]).reshape(-1, 2)
        for k, axis in enumerate(axes):
            low, high, log, start, stop = json.loads(axis)
            share = (pixels[:, k] - start) / (stop - start)
            if log:
                pixels[:, k] = low * (high / low) ** share
            else:
                pixels[:, k] = low + (high - low) * share
        while label in found:
            label += "'"
        found[label] = pixels
    return found


def resolution(page: Any, name: str) -> list[float]:
    """How much of the vertical axis one hundredth of a pixel is, for each panel."""
    axes = page.eval_on_selector_all(
        f'[data-explorer="{name}"] .explorer-panel svg', "s => s.map(e => e.dataset.y)"
    )
    return [abs((h - l) / (e - s)) * PIXEL for l, h, _, s, e in map(json.loads, axes)]


def current(page: Any, name: str) -> dict[str, Any]:
    """The parameters of an explorer, from its sliders."""
    spec = EXPLORERS[name]
    chosen = dict(spec.start)
    for slider in spec.sliders:
        knob = page.locator(f'[data-explorer="{name}"] input[name="{slider.name}"]')
        chosen[slider.name] = slider.stops[int(knob.input_value())]
    return chosen


def knob(page: Any, name: str, slider: str) -> Any:
    return page.locator(f'[data-explorer="{name}"] input[name="{slider}"]')
