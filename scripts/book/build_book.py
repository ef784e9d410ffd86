"""Execute the chapters that need it and build the site.

    python -m scripts.book.build_book             what `make book` does
    python -m scripts.book.build_book --execute   its first half: the chapters, without pages
    python -m scripts.book.build_book --stored    a preview: with the stored outputs

Sphinx runs from a staged copy of the book, and only when something in it changed; committed
notebooks are never touched.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from scripts.book import (
    api_pages,
    explore_data,
    live_pages,
    process,
    published,
    slides,
    teaching,
)
from scripts.book.answers import add_answers
from scripts.book.browser_assets import SITE
from scripts.book.executed import execute_chapters, execution_table, tree_digest
from scripts.book.ledger import ledger_page, mark_agreements
from scripts.book.run_notebooks import ROOT, write
from scripts.book.statements import statements_page
from scripts.check import faults, mutants

BUILD = ROOT / "_build"
EXTENSION = ROOT / "site" / "ext"
SOURCE, HTML, STAMP = (BUILD / name for name in ("source", "html", "complete"))
SPHINX = """import gc, sys
from scripts.book.process import leave_with_parent
leave_with_parent()
gc.disable()  # a sixth of the time goes into looking for garbage, of which there is little
from sphinx.cmd.build import main
sys.exit(main(sys.argv[1:]))"""
STORED = """
The pages of this copy show the outputs that are stored in the notebooks; no chapter was executed
for it. `make book` executes every chapter, and then says here when and how long.
"""


def toc_pages() -> list[str]:
    """The pages of the table of contents, in order, without suffix."""

    def walk(node: Any) -> Iterator[str]:
        if isinstance(node, dict):
            for key in ("root", "file"):
                if key in node:
                    yield re.sub(r"\.(md|ipynb)$", "", node[key])
            for key in ("parts", "chapters", "sections"):
                yield from walk(node.get(key))
        elif isinstance(node, list):
            for item in node:
                yield from walk(item)

    return list(walk(yaml.safe_load((ROOT / "_toc.yml").read_text())))


def page_source(page: str) -> Path:
    """The file behind a page of the table of contents."""
    for path in (ROOT / f"{page}.md", ROOT / f"{page}.ipynb", ROOT / "site" / f"{page}.md"):
        if path.is_file():
            return path
    raise SystemExit(f"_toc.yml names {page}, and there is no {page}.md or {page}.ipynb")


def stage(pages: list[str], stored: bool = False) -> None:
    """Copy the book, with the executed chapters, to where Sphinx reads it."""
    sources = [page_source(page) for page in pages]
    notebooks = [path for path in sources if path.suffix == ".ipynb"]
    copies = {} if stored else execute_chapters(notebooks)
    executed = execution_table(copies) if copies else STORED
    generated = {
        "execution": f"{executed}\n{faults.table()}\n{mutants.table()}",
        "api": api_pages.index(),
    }
    if "browser" in pages:
        generated["browser"] = live_pages.licences()
    if "statements" in pages:
        generated["statements"] = statements_page(notebooks, complete=not stored)
    if "neighbors" in pages:
        generated["neighbors"] = published.neighbors_page()
    if "published" in pages:
        generated["published"] = published.published_page()
    if "teaching" in pages:
        generated["teaching"] = teaching.teaching_page()
    if "ledger" in pages:
        generated["ledger"] = ledger_page({path: copies.get(path.stem, path) for path in notebooks})
    shutil.rmtree(SOURCE, ignore_errors=True)
    for page, path in zip(pages, sources, strict=True):
        target = SOURCE / f"{page}{path.suffix}"
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(copies.get(path.stem, path), target)
        if path in notebooks:
            mark_agreements(target)
            add_answers(target)
        if page in generated:
            target.write_text(f"{path.read_text()}\n{generated[page]}")
    for name in ("_config.yml", "_toc.yml", "references.bib"):
        shutil.copy(ROOT / name, SOURCE)
    if "api" in pages:
        api_pages.stage(SOURCE)
    shutil.copytree(ROOT / "site" / "static", SOURCE / "_static")
    shutil.copytree(EXTENSION, SOURCE / "site" / "ext", ignore=shutil.ignore_patterns("__py*"))
    shutil.copytree(teaching.PROJECTS, SOURCE / "projects")
    explore_data.stage_modules(SOURCE / "_static")
    shutil.copytree(SITE, SOURCE / "_vendor" / "site")
    records = {
        stem: json.loads(copy.with_suffix(".json").read_text()) for stem, copy in copies.items()
    }
    live_pages.stage(SOURCE, notebooks, {stem: r.get("each", []) for stem, r in records.items()})


def sphinx(builder: str, target: Path) -> subprocess.Popen[bytes]:
    """Start Sphinx from scratch; every warning is an error."""
    command = [Path(sys.executable).with_name("jupyter-book"), "config", "sphinx", SOURCE]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    shutil.rmtree(target, ignore_errors=True)
    words = [sys.executable, "-c", SPHINX, "-b", builder, "-q", "-W", "--keep-going", "-E"]
    environment = os.environ | {"PYTHONPATH": f"{EXTENSION}{os.pathsep}{ROOT}"}
    return subprocess.Popen([*words, "-d", BUILD / "doctrees", SOURCE, target], env=environment)


def explored() -> bool:
    """Whether a page of the staged book has an explorer."""
    pages = (path for kind in ("ipynb", "md") for path in SOURCE.rglob(f"*.{kind}"))
    return any("data-explorer" in page.read_text(encoding="utf-8") for page in pages)


def build() -> None:
    """The site; the tables of its explorers are computed beside Sphinx, which takes one core."""
    with sphinx("html", HTML) as pages:
        if explored():
            explore_data.fill(explore_data.EXPLORERS)
    if pages.returncode:
        raise SystemExit("the site was not built: every warning above is an error")
    if explored():
        explore_data.stage_tables(HTML / "_static")
    slides.write_slides(HTML)


def check_links() -> int:
    """Ask every address that the book names, whether it answers; the stored notebooks will do."""
    stage(toc_pages(), stored=True)
    return sphinx("linkcheck", BUILD / "linkcheck").wait()


def main() -> int:
    """One build at a time, which leaves no process behind and names a fault of the machine."""
    process.begin("book")
    with process.alone("book"), process.plainly():
        return check_links() if "--links" in sys.argv[1:] else bring_up_to_date()


def bring_up_to_date() -> int:
    start = time.perf_counter()
    pages = toc_pages()
    if "--execute" in sys.argv[1:]:
        execute_chapters([path for path in map(page_source, pages) if path.suffix == ".ipynb"])
        return 0
    stage(pages, stored="--stored" in sys.argv[1:])
    key = tree_digest(SOURCE, ROOT / "needle", ROOT / "utils", ROOT / "locks" / "book.txt")
    key += explore_data.key() + tree_digest(slides.SOURCES, Path(slides.__file__))
    index = HTML / "index.html"
    complete = STAMP.exists() and STAMP.read_text() == key
    if not (complete and all((HTML / f"{page}.html").exists() for page in pages)):
        STAMP.unlink(missing_ok=True)
        print("building the pages", flush=True)
        build()
        if missing := [page for page in pages if not (HTML / f"{page}.html").exists()]:
            raise SystemExit(f"pages of _toc.yml missing from the site: {', '.join(missing)}")
        write(STAMP, key)
    else:
        print("nothing changed since the last build")
    seconds = time.perf_counter() - start
    print(f"{len(pages)} pages in {seconds:.0f} s; open {index.as_uri()} or run 'make serve'")
    return 0


if __name__ == "__main__":
    sys.exit(main())
