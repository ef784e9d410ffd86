"""The pages that run: Python in a headless Chromium, and nobody to ask but this machine.

One browser serves all tests of the file, in their order: the first start fetches, later ones read
the browser's cache, and the last one finds the server gone.
"""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path
from typing import Any

import nbformat
import pytest

from scripts.book import live_assets
from scripts.book.run_notebooks import ROOT, chapters
from tests.site.reader import SUB_PATH, Site, cell, crowd, focus, outputs, python, settled, write

pytestmark = [
    pytest.mark.live,
    pytest.mark.xdist_group("reader"),
    pytest.mark.skipif(not live_assets.WANTED, reason="LIVE=0 leaves Python out of the pages"),
]
BUDGET = 45e6  # bytes of a first start
FIRST_RESULT = 20.0  # seconds to that of a call to scipy
OVERHEAD = 50.0  # milliseconds of a cell
KEPT_SINCE = """async time => {
    const records = () => new Promise(resolve => {
        indexedDB.open('needle-live').onsuccess = ({ target: { result: base } }) => {
            const all = base.transaction('variables').objectStore('variables').getAll();
            all.onsuccess = () => { base.close(); resolve(all.result); };
        } });
    while (!(await records()).some(record => record.time > time))
        await new Promise(resolve => setTimeout(resolve, 20)); }"""


@pytest.fixture(scope="module")
def first(live: Site) -> Any:
    """Chapter 1, started by the keyboard, with what that took."""
    page = live.open("01_model")
    page.before = list(page.asked)
    slow = "e => { e.dataset.seconds = '0 0 40' }"  # as if the third cell had taken 40 s
    page.locator(".live-start").evaluate(slow)
    page.answer = live.begin(page, lambda: page.locator("[data-live=start]").press("Enter"))
    assert page.evaluate("() => document.activeElement.innerText").startswith("Run all")
    return page


def test_every_chapter_has_its_button(site: Path) -> None:
    manifest = json.loads((site / "live" / "manifest.json").read_text())
    for path in chapters():
        page = (site / "chapters" / f"{path.stem}.html").read_text()
        assert page.count('data-live="start"') == 1, path.stem
        told = re.search(r'data-bytes="(\d+)"\s+data-packages="[^"]*\bscipy\b', page)
        assert told and 20e6 < int(told[1]) < BUDGET, path.stem
    for name, entry in manifest.items():
        content = (site / "live" / name).read_bytes()
        assert (len(content), live_assets.sha256(content)) == (entry["size"], entry["sha256"]), name


def test_licences_name_all_that_is_shipped(site: Path) -> None:
    page = (site / "browser.html").read_text()
    text = re.sub(r"<[^>]+>", " ", page)
    for wheel in (site / "live").glob("*.whl"):
        name = re.split(r"-\d", wheel.name)[0].replace("_", "[-_]")
        assert re.search(rf"\b{name}\b", text, re.I), wheel.name
        with zipfile.ZipFile(wheel) as packed:
            found = [n for n in packed.namelist() if re.search("licen[cs]e|copying", n, re.I)]
        assert found, wheel.name
    table = page[page.index("What is shipped") :].partition("</table>")[0]
    sizes = re.findall(r"<td[^>]*><p>(\d+\.\d+)</p></td>\s*</tr>", table)
    shipped = sum(path.stat().st_size for path in (site / "live").iterdir()) / 1e6
    assert sum(map(float, sizes)) == pytest.approx(shipped, abs=0.1)


def test_nothing_is_loaded_before_the_click_and_a_first_start_keeps_to_its_budget(
    first: Any, live: Site, site: Path, record_property: Any
) -> None:
    assert not [address for address in first.before if "/live/" in address]
    assert first.answer == "1.959964"
    fetched = {address.split("?")[0] for address in first.asked if "/live/" in address}
    names = [address.removeprefix(live.address + "/") for address in fetched]
    total = sum((site / name).stat().st_size for name in names if not name.startswith("blob:"))
    assert 20e6 < total < BUDGET
    told = int(first.locator(".live-start").get_attribute("data-bytes"))
    assert abs(told - total) < 0.01 * total
    record_property("megabytes of a first start", f"{total / 1e6:.1f}")
    print(f"first start: {total / 1e6:.1f} MB, {live.starts[0]:.1f} s to a first scipy call")


def test_no_other_host_is_asked_and_the_policy_is_kept(first: Any, live: Site) -> None:
    host = live.address.removesuffix(SUB_PATH)
    strangers = [a for a in first.asked if not a.startswith((host, f"blob:{host}", "data:"))]
    assert strangers == []
    assert first.evaluate("window.broken ?? []") == first.complaints == []


def test_sources_are_those_of_the_notebook(first: Any) -> None:
    notebook = nbformat.read(ROOT / "chapters" / "01_model.ipynb", as_version=4)
    written = [c.source.strip() for c in notebook.cells if c.cell_type == "code"]
    shown = first.eval_on_selector_all(".live-code textarea", "areas => areas.map(a => a.value)")
    assert [text.strip() for text in shown] == written


def test_cells_that_take_long_say_so_before(first: Any) -> None:
    notes = [cell(first, number).locator(".live-note").inner_text() for number in (2, 3)]
    assert notes == ["", "takes at least 2 min here"]
    assert "Run all (at least 2 min)" in first.locator(".live-buttons").inner_text()


def test_a_cell_is_edited_run_and_reset(first: Any) -> None:
    write(first, 2, "6 * 7")
    settled(first)
    assert outputs(first, 2).strip() == "42"
    assert cell(first, 2).get_attribute("data-state") == "live"
    write(first, 2, "print('before')\n1 / 0")
    settled(first)
    assert "before" in outputs(first, 2)
    assert "ZeroDivisionError" in cell(first, 2).locator(".live-error").inner_text()
    assert "kernel" not in cell(first, 2).locator(".live-error").inner_text()
    cell(first, 2).get_by_text("Reset").click()
    assert cell(first, 2).get_attribute("data-state") == "stored"
    assert cell(first, 2).locator("textarea").input_value() != "6 * 7"
    assert cell(first, 2).locator(".live-output").count() == 0


def test_a_cell_costs_little_beyond_its_work(first: Any) -> None:
    write(first, 2, "None")
    settled(first)
    run = """async () => {
        const cell = document.querySelectorAll('div.cell[data-state]')[1], times = [];
        for (let k = 0; k < 25; k++) {
            const from = performance.now();
            cell.querySelector('.live-run').click();
            while (cell.dataset.state !== 'live') await new Promise(f => setTimeout(f, 0));
            times.push(performance.now() - from);
        }
        return times.sort((a, b) => a - b);
    }"""
    times = first.evaluate(run)
    print(f"a cell costs {times[0]:.0f} ms beyond its work, {times[12]:.0f} ms as a rule")
    assert times[0] < OVERHEAD * max(1.0, crowd())  # the rest is what else this machine does


def test_the_keyboard_is_enough_and_not_trapped(first: Any) -> None:
    focus(first, 2)
    area = cell(first, 2).locator("textarea")
    first.keyboard.press("Control+a")
    first.keyboard.type("for k in range(3):\nprint(k)")
    assert area.input_value() == "for k in range(3):\n    print(k)"
    first.keyboard.press("Tab")
    assert area.input_value().endswith("print(k)" + " " * 4)
    first.keyboard.press("Shift+Tab")
    assert "\nprint(k)" in area.input_value()
    first.keyboard.press("Control+z")
    assert "\n    print(k)" in area.input_value()
    first.keyboard.press("Shift+Enter")
    settled(first)
    assert outputs(first, 2).split() == ["0", "1", "2"]
    focused = "() => document.activeElement.closest('div.cell')?.dataset.state !== undefined"
    assert first.evaluate(focused) and not area.evaluate("e => e === document.activeElement")
    area.focus()
    first.keyboard.press("Escape")
    first.keyboard.press("Tab")
    assert not area.evaluate("e => e === document.activeElement")
    assert "Escape" in first.locator("#live-help").inner_text()
    labels = first.eval_on_selector_all("article button", "b => b.map(b => b.innerText || b.title)")
    assert "Run" in labels


def test_a_double_click_is_one_click_and_what_waits_can_be_withdrawn(first: Any) -> None:
    write(first, 2, "clicks = globals().get('clicks', 0) + 1\nclicks")
    settled(first)
    in_one_moment = """() => {
        const cells = [...document.querySelectorAll('div.cell[data-state]')].slice(1, 3);
        const [run, next] = cells.map(cell => cell.querySelector('.live-run'));
        const states = [], look = () => states.push(cells.map(cell => cell.dataset.state).join());
        run.click(); next.click(); look(); next.click(); look();
        return states;
    }"""
    assert first.evaluate(in_one_moment) == ["running,waiting", "running,stored"]
    settled(first)
    assert outputs(first, 2).strip() == "2"
    cell(first, 2).locator(".live-run").dblclick()
    settled(first)
    assert outputs(first, 2).strip() == "3"
    assert first.locator(".live-start").get_attribute("data-live") == "ready"


def test_a_name_that_nothing_defines_is_said_as_python_says_it(first: Any) -> None:
    """And where cells above have not run, which may define it, that they have not."""
    write(first, 7, "never_defined")
    settled(first)
    assert "NameError" in outputs(first, 7)
    note = cell(first, 7).locator(".live-note").inner_text()
    assert "failed" in note and "cells above have not run: “Run all above”" in note
    cell(first, 7).get_by_text("Reset").click()


def test_an_explorer_is_live_again(first: Any) -> None:
    write(first, 2, "from utils.explorers import explore\nexplore('needle')")
    settled(first)
    figure = cell(first, 2).locator("[data-explorer=needle][data-ready]")
    figure.wait_for()
    curves = "e => [...e.querySelectorAll('svg path')].map(p => p.getAttribute('d')).join()"
    before = figure.evaluate(curves)
    figure.locator("input[type=range]").first.focus()
    for _ in range(3):
        first.keyboard.press("ArrowRight")
    assert len(before) > 100 and figure.evaluate(curves) != before


def test_progress_of_a_sweep_is_shown(first: Any) -> None:
    cell(first, 2).locator(".live-note").evaluate(
        "e => { window.notes = []; new MutationObserver(() => notes.push(e.textContent))"
        ".observe(e, { childList: true, characterData: true, subtree: true }) }"
    )
    code = """
import time
from needle.trials.grid import sweep
def f(n, rng):
    time.sleep(0.02)
    return rng.normal(size=n).mean()
sweep(f, {"n": [10, 20]}, trials=20, seed=0).mean().shape
"""
    write(first, 2, code)
    settled(first)
    assert outputs(first, 2).strip() == "(2,)"
    assert any(re.search(r"\d+/40", note) for note in first.evaluate("notes"))


def test_a_long_cell_can_be_stopped(first: Any) -> None:
    python(first, "kept, rounds = [1, 2], 3\ndef double(x):\n    return rounds * x")
    now = first.evaluate("() => Date.now()")
    first.evaluate(KEPT_SINCE, now)
    write(first, 2, "while True:\n    print('without end')")
    cell(first, 2).locator(".live-output", has_text="without end").wait_for()
    cell(first, 2).get_by_text("Stop").click()
    first.wait_for_selector(".live-start[data-live=ready]")
    assert python(first, "rounds = 4\nkept + [double(2)]") == "[1, 2, 8]"
    assert "stopped" in cell(first, 2).locator(".live-note").inner_text()


def test_state_survives_another_chapter(first: Any, live: Site) -> None:
    write(first, 2, "answer = 43\nanswer")
    settled(first)
    with first.expect_navigation():
        first.locator("a.right-next").click()
    assert first.locator(".live-code").count() == 0
    first.go_back()
    first.wait_for_selector(".live-start[data-live=ready]")
    assert outputs(first, 2).strip() == "43"
    assert python(first, "answer") == "43"
    assert cell(first, 2).locator("textarea").input_value() == "answer = 43\nanswer"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_telephone_is_wide_enough(first: Any, theme: str) -> None:
    first.set_viewport_size({"width": 380, "height": 800})
    first.evaluate("theme => { document.documentElement.dataset.theme = theme }", theme)
    unfold = "() => document.querySelectorAll('details').forEach(d => { d.open = true })"
    first.evaluate(unfold)
    assert first.evaluate("() => document.documentElement.scrollWidth") <= 380
    size = "e => { const b = e.getBoundingClientRect(); return [b.width, b.height] }"
    area, pre = cell(first, 2).locator("textarea"), cell(first, 2).locator("pre").first
    assert area.evaluate(size) == pytest.approx(pre.evaluate(size), abs=1.5)
    ink = "e => getComputedStyle(e).color"
    assert cell(first, 2).locator(".live-note").evaluate(ink) != first.locator("body").evaluate(
        "e => getComputedStyle(e).backgroundColor"
    )
    first.set_viewport_size({"width": 1280, "height": 800})


def test_a_second_visit_reads_the_cache_and_has_variables_of_its_own(
    first: Any, live: Site
) -> None:
    """Even in a duplicated tab, which begins with the storage by which tabs are told apart."""
    python(first, "whose = 'the first'")
    storage = first.evaluate("() => JSON.stringify(sessionStorage)")
    page = live.open("01_model")
    page.evaluate("s => Object.assign(sessionStorage, JSON.parse(s))", storage)
    live.begin(page, page.locator("[data-live=start]").click)
    parts = r"/live/(\w+\.mjs|live\.css|manifest\.json)(\?|$)"
    fetched = [address for address in page.asked if "/live/" in address and "blob:" not in address]
    assert fetched and all(re.search(parts, address) for address in fetched)
    assert python(page, "'whose' in globals()") == "False"
    tabs = [each.evaluate("() => sessionStorage['needle-tab']") for each in (first, page)]
    assert tabs[0] != tabs[1]
    page.close()


def test_an_altered_file_is_refused_by_name(first: Any, live: Site) -> None:
    """In a browser whose cache is empty; the next try finds the file as it should be."""
    context = live.context.browser.new_context()
    page = live.open("01_model", context)
    context.route("**/live/six-*.whl?*", lambda route: route.fulfill(body=b"not a wheel"))
    status = page.locator(".live-start [role=status]")
    page.locator("[data-live=start]").click()
    page.wait_for_selector(".live-start[data-live=failed]")
    assert re.search(r"six-\S+\.whl: this is not the file", status.inner_text())
    context.unroute("**/live/six-*.whl?*")
    assert live.begin(page, page.get_by_text("Try again").click) == "1.959964"
    context.close()


def test_a_first_result_comes_soon(first: Any, live: Site, record_property: Any) -> None:
    """On the two cores that are promised: what others take of them is taken out."""
    record_property("seconds to a first scipy call", f"{live.starts[0]:.1f}")
    for taken, alone in zip(live.starts, live.alone, strict=True):
        print(f"{taken:.1f} s to a first scipy call, {alone:.1f} s of a machine of one's own")
    assert min(live.alone) < FIRST_RESULT  # of the starts that this worker has seen, one or more


def test_it_runs_on_when_the_network_is_gone(first: Any, live: Site) -> None:
    live.server.shutdown()
    live.server.server_close()
    first.get_by_text("Reset the page").click()
    first.wait_for_function("() => !document.querySelector('.live-start[data-live=ready]')")
    first.wait_for_selector(".live-start[data-live=ready]")
    write(first, 2, "import numpy as np\nnp.arange(3).sum()")
    settled(first)
    assert "3" in outputs(first, 2)
