"""What a reader does with a page that runs: start it, write in cells, read what they leave."""

from __future__ import annotations

import time
from collections.abc import Callable
from http.server import ThreadingHTTPServer
from typing import Any

SUB_PATH = "some/where"  # the site does not stand at the root of its host
PATIENCE = 600_000  # milliseconds; the machine may be busy
AGREEMENTS = """() => [...document.querySelectorAll('div.cell[data-state]')].map((cell, k) => {
    const table = cell.querySelector(':scope > .cell_output details.agreement');
    const rows = [...(table?.querySelectorAll('tbody tr') ?? [])];
    return [k + 1, cell.dataset.state, table?.querySelector('summary').textContent ?? null,
        rows.map(row => [...row.cells].slice(0, 2).map(c => c.textContent))];
})"""


def same_digits(a: str, b: str) -> bool:
    """Equal in all digits that both show; how many these are follows from the standard error."""
    places = min(len(x.partition("e")[0].partition(".")[2]) for x in (a, b))
    scale = max(abs(float(a)), abs(float(b))) if "e" in a + b else 1.0
    return abs(float(a) - float(b)) <= 1.01 * scale * 10.0**-places


def crowd() -> float:
    """How many times longer a computation takes than on a core of its own, just now."""
    wall, own = time.perf_counter(), time.process_time()
    while time.process_time() - own < 0.2:
        sum(range(1000))
    return (time.perf_counter() - wall) / (time.process_time() - own)


class Site:
    """The built site below a sub-path, and one browser on it."""

    def __init__(self, address: str, context: Any, server: ThreadingHTTPServer) -> None:
        self.address, self.context, self.server = address, context, server
        self.starts: list[float] = []  # seconds to the first result of each start
        self.alone: list[float] = []  # and what they come to without others on this machine

    def open(self, name: str, context: Any = None) -> Any:
        page = (context or self.context).new_page()
        page.set_default_timeout(PATIENCE)
        page.asked, page.complaints = [], []
        page.on("request", lambda request: page.asked.append(request.url))
        page.on("console", lambda m: m.type == "error" and page.complaints.append(m.text))
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.goto(f"{self.address}/chapters/{name}.html")
        page.wait_for_load_state("networkidle")
        return page

    def begin(self, page: Any, click: Callable[[], None]) -> str:
        """Start Python; the first result of a call to scipy."""
        others = crowd()
        start = time.perf_counter()
        click()
        answer = python(page, "from scipy.special import ndtri\nround(float(ndtri(0.975)), 6)")
        self.starts.append(time.perf_counter() - start)
        self.alone.append(self.starts[-1] / max(1.0, (others + crowd()) / 2))
        return answer

    def start(self, name: str) -> Any:
        page = self.open(name)
        self.begin(page, lambda: page.locator("[data-live=start]").press("Enter"))
        return page


def python(page: Any, code: str) -> str:
    return page.evaluate("code => window.book.python(code)", code)


def cell(page: Any, number: int) -> Any:
    return page.locator("div.cell[data-state]").nth(number - 1)


def settled(page: Any) -> None:
    """Wait until nothing waits and nothing runs."""
    page.wait_for_function(
        "() => !document.querySelector('[data-state=waiting], [data-state=running]')"
    )


def write(page: Any, number: int, code: str) -> None:
    """Replace the code of a cell the way a reader does, and run it."""
    focus(page, number)
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(code)
    page.keyboard.press("Control+Enter")


def focus(page: Any, number: int) -> None:
    area = cell(page, number).locator("textarea")
    area.evaluate("e => { const fold = e.closest('details'); if (fold) fold.open = true; }")
    area.focus()


def outputs(page: Any, number: int) -> str:
    return cell(page, number).locator(":scope > .cell_output").inner_text()
