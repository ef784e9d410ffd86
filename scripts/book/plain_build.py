"""`jupyter-book build .` builds what `make book` builds, from the outputs that the notebooks hold.

Sphinx has been pointed to the checkout; before it looks there, the book is staged as `make book`
stages it and Sphinx sent to that copy. Nothing is executed. What cannot be had on this machine is
left out, and the first line of the build says so.
"""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from scripts.book import browser_assets, build_book, explore_data, live_assets, process, slides

ADVICE = "'make book' executes every chapter and builds the whole site"


def site_assets() -> list[str]:
    """Bring what pages take from npm; what is missing then, in words."""
    try:
        browser_assets.main()
    except (SystemExit, OSError) as reason:
        browser_assets.SITE.mkdir(parents=True, exist_ok=True)
        return [f"no MathJax, so that formulas show as TeX ({reason})"]
    return []


def live() -> list[str]:
    """Python for the browser only where it has been fetched: it is 30 MB."""
    if live_assets.WANTED and live_assets.complete():
        return []
    build_book.live_pages.WANTED = False
    return ["no Python in the page"]


def send(app: Any, config: Any) -> None:
    """Stage the book and send Sphinx there, if it was pointed to the checkout itself."""
    if Path(app.srcdir) != build_book.ROOT:
        return
    os.chdir(build_book.ROOT)
    missing = ["chapters show the outputs stored with them", *site_assets(), *live()]
    words = f"jupyter-book alone: {'; '.join(missing)}. {ADVICE}."
    print(words, file=sys.stderr, flush=True)
    held = ExitStack()
    held.enter_context(process.alone("book"))
    build_book.STAMP.unlink(missing_ok=True)  # what make built is built over
    build_book.stage(build_book.toc_pages(), stored=True)
    app.srcdir = app.confdir = type(app.srcdir)(build_book.SOURCE)
    config.external_toc_path = str(build_book.SOURCE / "_toc.yml")
    app.connect("build-finished", partial(finish, words=words, held=held))


def finish(app: Any, error: Exception | None, words: str, held: ExitStack) -> None:
    """The numbers behind the explorers of the pages; and what was said at first, once more."""
    if not error and app.builder.format == "html" and build_book.explored():
        explore_data.stage_tables(Path(app.outdir) / "_static")
    if not error and app.builder.format == "html":
        slides.write_slides(Path(app.outdir))
    print(words, file=sys.stderr, flush=True)
    held.close()
