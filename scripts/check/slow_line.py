"""How the site behaves on a slow line: `make slow-line` measures and writes benchmarks/SITE.md.

Every page is opened in a fresh Chromium, and then followed by a second page with what the first
left in the cache, at 1.5 Mbit/s and 100 ms, from a local server that compresses as hosts do.
"""

from __future__ import annotations

import gzip
import mimetypes
import os
import platform
import time
from pathlib import Path
from typing import Any

from scripts.book.build_book import HTML, page_source, toc_pages
from scripts.book.chapter import title as chapter_title
from scripts.book.run_notebooks import ROOT
from scripts.check.browser import QuietHandler, browser, serve

REPORT = ROOT / "benchmarks" / "SITE.md"
LINE = {"offline": False, "latency": 100, "downloadThroughput": 1.5e6 / 8, "uploadThroughput": 1e5}
TEXT, MATH, COLD, SECOND = 2.0, 5.0, 900.0, 300.0  # seconds, seconds, kB, kB
PAINT = """() => new Promise(done => new PerformanceObserver(list => {
    const first = list.getEntriesByName("first-contentful-paint")[0];
    if (first) done(first.startTime);
}).observe({ type: "paint", buffered: true }))"""
TRIES = 3  # of a page that misses an aim in seconds: the machine may have been busy
HEAD = """# The site on a slow line

What a reader waits for at 1.5 Mbit/s and 100 ms: until the first text stands and until all formulas
of the page are set; and how much is fetched on a first visit and for a second page (the next one,
with what the first left behind). The aims are {text:.0f} s, {math:.0f} s, {cold:.0f} kB and
{second:.0f} kB. The tests hold bytes, requests and the scripts that delay the text; they are the
same on every machine. The seconds were measured by `make slow-line` on {machine}, {when}, in a
headless Chromium on a local server that compresses; the best of at most {tries} visits is told. Who
begins at a page without formulas fetches MathJax, some 250 kB, with the first page that has some.

| page | text (s) | formulas (s) | first visit (kB) | requests | second page (kB) |
| --- | ---: | ---: | ---: | ---: | ---: |
"""


class Compressing(QuietHandler):
    """Serves text gzipped, and lets what it serves be kept for a while."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path = Path(self.translate_path(self.path))
        if path.is_dir():
            path /= "index.html"
        if not path.is_file():
            self.send_error(404)
            return
        kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
        data, zipped = path.read_bytes(), not kind.startswith(("image/png", "font/"))
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Cache-Control", "max-age=600")
        if zipped:
            data = gzip.compress(data)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


class Visit:
    """One reader: a fresh browser context behind a slow line, whose bytes are counted."""

    def __init__(self, instance: Any) -> None:
        self.context = instance.new_context(viewport={"width": 1280, "height": 900})
        self.page = self.context.new_page()
        wire = self.context.new_cdp_session(self.page)
        wire.send("Network.enable")
        wire.send("Network.emulateNetworkConditions", LINE)
        self.bytes = self.requests = 0
        wire.on("Network.loadingFinished", self.count)

    def count(self, event: dict[str, Any]) -> None:
        self.bytes += event["encodedDataLength"]
        self.requests += event["encodedDataLength"] > 0

    def open(self, address: str) -> tuple[float, float, float, int]:
        """Seconds to the first text and to the last formula, kB and requests of a page."""
        self.bytes = self.requests = 0
        self.page.goto(address, wait_until="load", timeout=120_000)
        math = self.page.evaluate(
            "async () => { await window.MathJax?.startup?.promise; return performance.now() }"
        )
        text = self.page.evaluate(PAINT)
        self.page.wait_for_load_state("networkidle")
        return text / 1000, math / 1000, self.bytes / 1000, self.requests


Row = tuple[str, float, float, float, int, float]


def visit(instance: Any, host: str, page: str, following: str) -> Row:
    """One reader who opens a page, and then another."""
    reader = Visit(instance)
    text, math, cold, requests = reader.open(f"{host}/{page}.html")
    second = reader.open(f"{host}/{following}.html")[2]
    reader.context.close()
    return page, text, math, cold, requests, second


def measure(pages: list[str]) -> list[Row]:
    rows = []
    with serve(HTML, Compressing) as host, browser() as instance:
        for page, following in zip(pages, pages[1:] + pages[-2:-1], strict=True):
            best: Row | None = None
            for _ in range(TRIES):
                row = visit(instance, host, page, following)
                best = min(best or row, row, key=lambda r: r[2])
                if best[1] <= TEXT and best[2] <= MATH:
                    break
            assert best
            rows.append(best)
            told = "{}: text {:.1f} s, formulas {:.1f} s, {:.0f} kB, {} requests, second {:.0f} kB"
            print(told.format(*best), flush=True)
    return rows


def title(page: str) -> str:
    """A page by its name, as a link from the report."""
    source = page_source(page)
    if source.suffix == ".ipynb":
        name = chapter_title(source)
    else:
        text = source.read_text(encoding="utf-8") if source.exists() else "# The site"
        name = text.lstrip().splitlines()[0].lstrip("# ")
    return f"[{name}]({os.path.relpath(source, REPORT.parent)})"


def main() -> None:
    rows = measure(toc_pages())
    machine = f"{os.cpu_count()} cores, {platform.system()} on {platform.machine()}"
    when = time.strftime("%Y-%m-%d", time.gmtime())
    lines = [
        f"| {title(page)} | {text:.1f} | {math:.1f} | {cold:.0f} | {requests} | {second:.0f} |"
        for page, text, math, cold, requests, second in rows
    ]
    aims = {"text": TEXT, "math": MATH, "cold": COLD, "second": SECOND, "tries": TRIES}
    head = HEAD.format(**aims, machine=machine, when=when)
    REPORT.write_text(head + "\n".join(lines) + "\n", encoding="utf-8")
    heavy = [row[0] for row in rows if row[3] > COLD or row[5] > SECOND]
    late = [row[0] for row in rows if row[1] > TEXT or row[2] > MATH]
    print(f"written to {REPORT.relative_to(ROOT)}", end="; ")
    print(f"too heavy: {', '.join(heavy) or 'none'}; too late: {', '.join(late) or 'none'}")


if __name__ == "__main__":
    main()
