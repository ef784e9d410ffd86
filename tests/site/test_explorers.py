"""The explorers of the built site, played with in a headless Chromium."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest

from scripts.browser import opened
from scripts.build_book import toc_pages
from utils.explore import values
from utils.explore_values import ALPHAS, COSINES, EXPLORERS, HEIGHTS, SHARPNESSES

DATA_BUDGET, SCRIPT_BUDGET = 400_000, 30_000  # bytes a page, compressed
POINTS = 1000
EXACT = 1e-9
PIXEL = 0.02  # coordinates in the SVG are rounded to hundredths


def pages(site: Path) -> dict[str, str]:
    """The page on which each explorer stands."""
    found = {}
    for page in toc_pages():
        for name in re.findall(r'data-explorer="(\w+)"', (site / f"{page}.html").read_text()):
            found[name] = page
    return found


@pytest.fixture(scope="module")
def place(site: Path) -> dict[str, str]:
    return pages(site)


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
            const base = new URL('_static/explorers/', location.href.replace(/chapters.*/, ''));
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


def test_every_explorer_has_a_page(place: dict[str, str]) -> None:
    assert set(place) == set(EXPLORERS)


def compared(name: str, count: int, found: list[dict[str, Any]]) -> tuple[dict[str, float], int]:
    """The largest deviation of each kind of number, and how many numbers were compared."""
    worst: dict[str, float] = {}
    numbers = 0
    for setting, shown in zip(random_settings(name, count), found, strict=True):
        expected = values(name, setting)
        for key in set(expected) - {"how", "of"}:
            worst[key] = max(worst.get(key, 0.0), deviation(expected[key], shown[key]))
            numbers += len(re.findall(r"[-\d.e]+", json.dumps(expected[key])))
    return worst, numbers


@pytest.mark.parametrize("name", ["needle", "steps"])
def test_closed_forms_of_the_browser_are_those_of_python(
    chromium: Any, host: str, place: dict[str, str], name: str
) -> None:
    """At a thousand random settings."""
    with opened(chromium, f"{host}/{place[name]}.html") as page:
        found = computed(page, name, random_settings(name, POINTS))
    worst, _ = compared(name, POINTS, found)
    assert max(worst.values()) < EXACT


# settings (their grids are small, so a sample of it), and what the status line promises of each
PROMISED = {
    "detection": (24, {"attention": 0.03, "here": 0.03}, 1e-6),
    "curves": (24, {}, 0.03),
    "capacity": (72, {}, 1e-3),
    "phase": (60, {}, 1e-4),
}


@pytest.mark.parametrize("name", sorted(PROMISED))
def test_tables_are_as_good_as_they_say(
    chromium: Any, host: str, place: dict[str, str], name: str
) -> None:
    """At least a thousand numbers each, against what `utils` computes for the same sliders."""
    count, loose, tight = PROMISED[name]
    with opened(chromium, f"{host}/{place[name]}.html") as page:
        found = computed(page, name, random_settings(name, count))
    worst, numbers = compared(name, count, found)
    assert numbers >= 1000
    assert {key: size for key, size in worst.items() if size > loose.get(key, tight)} == {}


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


def check_needle(page: Any) -> None:
    chosen = current(page, "needle")
    shown, drawn = values("needle", chosen), curves(page, "needle")
    label = "needles" if chosen["R"] > 1 else "needle"
    above, below = drawn[label], drawn[label + "'"]
    fine = resolution(page, "needle")
    for points, key, step in ((above, "height", fine[0]), (below, "weight", fine[1])):
        expected = np.array(shown[key])[shown["needles"]]
        assert points[:, 1] == pytest.approx(expected, abs=step)
    text = page.locator('[data-explorer="needle"] .explorer-numbers').inner_text()
    assert f"δ = {shown['pooled']:.3g}" in text


DRAWN = {  # curve as named in the SVG: (key in the values, its abscissae)
    "detection": {"averaging": ("pooled", HEIGHTS), "best possible": ("bayes", HEIGHTS)},
    "steps": {"query": ("query", ALPHAS), "readout": ("readout", ALPHAS)},
    "capacity": {"attention": ("by_cosine", COSINES), "attention'": ("by_sharpness", SHARPNESSES)},
    "phase": {"one round": ("map", np.linspace(0, 1, 101))},
}


@pytest.mark.parametrize("name", sorted(DRAWN))
def test_drawn_curves_follow_the_sliders_to_the_values_of_python(
    chromium: Any, host: str, place: dict[str, str], name: str
) -> None:
    with opened(chromium, f"{host}/{place[name]}.html") as page:
        for turn in (None, *EXPLORERS[name].sliders[:2]):
            if turn:
                knob(page, name, turn.name).focus()
                page.keyboard.press("ArrowRight")
            expected, drawn = values(name, current(page, name)), curves(page, name)
            step = max(resolution(page, name))
            for label, (key, places) in DRAWN[name].items():
                wanted = np.array(expected[key], dtype=float)
                shown = drawn[label][:, 1]
                keep = np.isfinite(wanted)
                assert drawn[label][:, 0] == pytest.approx(
                    np.array(places)[keep], rel=2e-3, abs=1e-2
                )
                bound = {"rel": 2e-3} if key.startswith("by") else {"abs": 2 * step + 1e-4}
                assert shown == pytest.approx(wanted[keep], **bound)


def knob(page: Any, name: str, slider: str) -> Any:
    return page.locator(f'[data-explorer="{name}"] input[name="{slider}"]')


def test_mouse_keyboard_and_touch_move_the_curves(
    chromium: Any, host: str, place: dict[str, str]
) -> None:
    with opened(chromium, f"{host}/{place['needle']}.html") as page:
        check_needle(page)
        strength = knob(page, "needle", "theta")
        strength.focus()
        before = strength.input_value()
        for key in ("ArrowRight", "ArrowRight", "PageUp", "ArrowLeft"):
            page.keyboard.press(key)
        assert strength.input_value() != before
        check_needle(page)
        sharpness = knob(page, "needle", "T")
        sharpness.scroll_into_view_if_needed()
        box = sharpness.bounding_box()
        middle = box["y"] + box["height"] / 2
        page.mouse.move(box["x"] + box["width"] * 0.25, middle)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] * 0.8, middle, steps=5)
        page.mouse.up()
        assert int(sharpness.input_value()) > 20
        check_needle(page)
        assert page.failures == page.complaints == []
    context = chromium.new_context(
        has_touch=True, is_mobile=True, viewport={"width": 380, "height": 800}
    )
    page = context.new_page()
    page.goto(f"{host}/{place['needle']}.html")
    page.wait_for_selector('[data-explorer="needle"][data-ready]')
    tokens = knob(page, "needle", "L")
    tokens.scroll_into_view_if_needed()
    before, box = tokens.input_value(), tokens.bounding_box()
    page.touchscreen.tap(box["x"] + box["width"] * 0.9, box["y"] + box["height"] / 2)
    assert int(tokens.input_value()) > int(before)
    check_needle(page)
    context.close()


@pytest.mark.parametrize("name", sorted(EXPLORERS))
def test_an_address_keeps_a_view_and_reset_forgets_it(
    chromium: Any, host: str, place: dict[str, str], name: str
) -> None:
    sentence = f'[data-explorer="{name}"] .explorer-sentence'
    with opened(chromium, f"{host}/{place[name]}.html") as page:
        start = page.locator(sentence).inner_text()
        for slider in EXPLORERS[name].sliders[:3]:
            handle = knob(page, name, slider.name)
            handle.focus()
            page.keyboard.press("ArrowRight" if handle.input_value() == "0" else "ArrowLeft")
        page.wait_for_timeout(400)
        address, chosen = page.url, current(page, name)
        told, drawn = page.locator(sentence).inner_text(), curves(page, name)
        assert f"{name}." in urlsplit(address).query
    with opened(chromium, address) as page:
        assert current(page, name) == chosen
        assert page.locator(sentence).inner_text() == told != start
        for label, points in curves(page, name).items():
            assert points == pytest.approx(drawn[label], nan_ok=True)
        page.get_by_role("button", name="Reset").first.click()
        assert page.locator(sentence).inner_text() == start
        page.wait_for_timeout(400)
        assert f"{name}." not in urlsplit(page.url).query


@pytest.mark.parametrize("name", sorted(EXPLORERS))
def test_an_explorer_can_be_heard_read_and_saved(
    chromium: Any, host: str, place: dict[str, str], name: str
) -> None:
    inside = f'[data-explorer="{name}"]'
    with opened(chromium, f"{host}/{place[name]}.html") as page:
        for slider in EXPLORERS[name].sliders:
            said = knob(page, name, slider.name).get_attribute("aria-valuetext")
            assert slider.label in said and len(said) > len(slider.label)
        live = page.locator(f"{inside} [aria-live]")
        assert live.count() == 1
        page.wait_for_timeout(700)
        assert len(live.inner_text()) > 40
        reader = page.locator(f"{inside} .hit[tabindex='0']").first
        reader.focus()
        page.keyboard.press("ArrowRight")
        read = reader.get_attribute("aria-valuetext")
        assert re.search(r"\d", read)
        page.keyboard.press("End")
        assert reader.get_attribute("aria-valuetext") != read
        page.keyboard.press("Escape")
        assert reader.get_attribute("aria-valuetext") == "not reading"
        reader.hover()
        assert page.locator(f"{inside} .cursor text").count() > 0
        with page.expect_download() as waiting:
            page.locator(f"{inside} button", has_text="Save the picture").click()
        picture = Path(waiting.value.path()).read_text()
        assert picture.startswith("<svg") and "<text" in picture and "var(" not in picture
        assert page.failures == page.complaints == []


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", sorted(EXPLORERS))
def test_explorers_have_no_findings_of_axe(
    chromium: Any, host: str, place: dict[str, str], name: str, theme: str
) -> None:
    script = Path("_vendor/tests/axe.min.js")
    with opened(chromium, f"{host}/{place[name]}.html", theme=theme) as page:
        page.add_script_tag(path=str(script))
        found = page.evaluate(
            """async (name) => (await axe.run(`[data-explorer="${name}"]`, { runOnly:
                ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] }))
                .violations.map((v) => [v.id, v.nodes.map((n) => n.html.slice(0, 120))])""",
            name,
        )
        assert found == []


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
        scripts = ["common.mjs", "site.mjs", *(f"{name}.mjs" for name in names)]
        assert size(*scripts) <= SCRIPT_BUDGET, page
        assert size(*(f"{name}.json" for name in names)) <= DATA_BUDGET, page
