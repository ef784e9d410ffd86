"""How long explorers take to draw: `make slow-line` measures, and writes benchmarks/EXPLORERS.md.

A drag is one event of a slider: numbers computed, figure and words changed, and the page laid out
before the next event, as a browser does once a frame. All times are of the page's own thread, and
every round also times a reference, an SVG that is built anew and laid out on the same page at the
same moment. The ratio of the two is a property of the code; a machine that is slow or busy slows
both. What the reference took, at its least, translates the milliseconds promised into a ratio.
"""

from __future__ import annotations

import os
import platform
import time
from typing import Any, NamedTuple

from scripts.book.build_book import HTML
from scripts.book.run_notebooks import ROOT
from scripts.check.browser import browser, opened, serve

REPORT = ROOT / "benchmarks" / "EXPLORERS.md"
SLOWER = 4  # times, the machine that is promised
DRAG, FIRST = 16.0, 150.0  # milliseconds promised there: a drag event, the first drawing
REFERENCE = 1.6  # milliseconds of `window.reference` when the ratio was set, the least of a day
ROUNDS, EVENTS = 6, 16  # the least of the rounds counts; events of a slider in each

SET_UP = """async (name) => {
    const base = new URL('/_static/explorers/', location.href);
    const module = await import(new URL(`${name}.mjs`, base));
    const text = await (await fetch(new URL(`${name}.json`, base))).text();
    const place = document.querySelector(`[data-explorer="${name}"]`);
    window.drag = (slider, events) => {
        const knob = place.querySelector(`input[name="${slider}"]`), last = +knob.max;
        const step = Math.max(1, Math.floor(last / events));
        for (let k = 0; k < events; k += 1) {
            knob.value = (+knob.value + step) % (last + 1);
            knob.dispatchEvent(new Event('input', { bubbles: true }));
            place.getBoundingClientRect();
        }
    };
    window.first = () => {
        const { spec, data } = JSON.parse(text), params = spec.start;
        const known = module.prepare ? module.prepare(data) : data;
        const state = { spec, params, values: { ...module.compute(params, known), of: params } };
        module.render({ el: place, model: { get: (k) => state[k], set() {}, on() {} } });
        place.getBoundingClientRect();
    };
    const box = document.createElement('div');
    place.after(box);
    let turn = 0;
    window.reference = () => {
        turn += 1;
        const range = (n) => Array.from({ length: n }, (_, i) => i);
        const curves = range(3).map((c) => {
            const d = range(400).map((i) => {
                const y = 140 + 100 * Math.exp(-i / 200) * Math.sin(i / 30 + c + turn);
                return `${i ? 'L' : 'M'}${Math.round(160 * i) / 100},${Math.round(100 * y) / 100}`;
            });
            return `<path fill="none" stroke="gray" d="${d.join('')}"/>`;
        });
        const dots = range(60).map((i) => `<circle cx="${10 * i}" cy="${i + turn % 99}" r="3"/>`);
        const words = range(20).map((i) => `<text x="${30 * i}" y="270">${i + turn}</text>`);
        const marks = [...curves, ...dots, ...words].join('');
        box.innerHTML = `<svg width="640" height="280">${marks}</svg>`;
        place.getBoundingClientRect();
    };
    return JSON.parse(text).spec.sliders.map((slider) => slider.name);
}"""


class Speed(NamedTuple):
    """Milliseconds of the page's thread for a drag event (its slowest slider), and so on."""

    drag: float
    slider: str
    first: float
    reference: float

    @property
    def ratios(self) -> tuple[float, float]:
        """A drag and a first drawing in units of the reference."""
        return self.drag / self.reference, self.first / self.reference


def allowed(milliseconds: float) -> float:
    """The ratio to the reference that these milliseconds on the slower machine stand for."""
    return milliseconds / SLOWER / REFERENCE


def measure(page: Any, name: str) -> Speed:
    """The least of rounds in which the reference and every slider take turns."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def busy() -> float:
        found = session.send("Performance.getMetrics")["metrics"]
        return 1000 * next(m["value"] for m in found if m["name"] == "TaskDuration")

    def timed(work: str, count: int) -> float:
        start = busy()
        page.evaluate(work)
        return (busy() - start) / count

    sliders = page.evaluate(SET_UP, name)
    drags = dict.fromkeys(sliders, float("inf"))
    reference = first = float("inf")
    calls = f"for (let k = 0; k < {EVENTS}; k += 1) window.reference()"
    for _ in range(ROUNDS + 1):  # the first round warms up, and is forgotten
        reference = min(reference, timed(calls, EVENTS))
        for slider in sliders:
            took = timed(f"window.drag('{slider}', {EVENTS})", EVENTS)
            drags[slider] = min(drags[slider], took)
    for _ in range(ROUNDS):
        reference = min(reference, timed(calls, EVENTS))
        first = min(first, timed("window.first()", 1))
    slider = max(drags, key=drags.__getitem__)
    return Speed(drags[slider], slider, first, reference)


HEAD = """# The explorers on a slow machine

Milliseconds that an explorer needs for its first drawing (tables unpacked, numbers computed, figure
drawn) and for one event of a drag (numbers, figure and words of the next stop, the page laid out),
for the slowest of its sliders: the time of the page's thread, times {slower}. The promises are
{first:.0f} ms and {drag:.0f} ms. Measured by `make slow-line` on {machine}, {when},
while {load:.0f} processes wanted to run: with more of them than cores all times are longer.

The tests hold the ratio of each to a reference, an SVG of 83 elements that is built anew and laid
out on the same page in the same rounds. It took {reference:.1f} ms (before the factor {slower})
when the ratio was set, so the promises are {first_ratio:.1f} and {drag_ratio:.1f} times the
reference on any machine. In this run it took {measured:.2f} ms at least.

| explorer | page | first (ms) | to reference | drag (ms) | to reference | slowest slider |
| --- | --- | ---: | ---: | ---: | ---: | --- |
"""


def main() -> None:
    from tests.site.sliders import pages

    lines, references = [], []
    with serve(HTML) as host, browser() as instance:
        for name, where in sorted(pages(HTML).items()):
            with opened(instance, f"{host}/{where}.html") as page:
                found = measure(page, name)
            drag, first = found.ratios
            references.append(found.reference)
            lines.append(
                f"| {name} | {where} | {SLOWER * found.first:.0f} | {first:.1f} "
                f"| {SLOWER * found.drag:.1f} | {drag:.2f} | {found.slider} |"
            )
            print(lines[-1], f"reference {found.reference:.3f} ms", flush=True)
    machine = f"{os.cpu_count()} cores, {platform.system()} on {platform.machine()}"
    head = HEAD.format(
        machine=machine,
        load=os.getloadavg()[0],
        measured=min(references),
        when=time.strftime("%Y-%m-%d", time.gmtime()),
        slower=SLOWER,
        first=FIRST,
        drag=DRAG,
        reference=REFERENCE,
        first_ratio=allowed(FIRST),
        drag_ratio=allowed(DRAG),
    )
    REPORT.write_text(head + "\n".join(lines) + "\n", encoding="utf-8")
    print(f"written to {REPORT.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
