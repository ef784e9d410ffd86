"""Execute the chapters that need it and build the site.

    python -m scripts.book.build_book             what `make book` does
    python -m scripts.book.build_book --execute   its first half: the chapters, without pages
    python -m scripts.book.build_book --stored    a preview: with the stored outputs

An executed copy of a chapter is kept under a name that is a hash of everything its outputs depend
on: its source, the modules and stored results it rests on, the pinned packages and the version of
Python. Sphinx runs from a staged copy of the book, and only when something in it changed; committed
notebooks are never touched.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import nbformat
import yaml

from scripts.book import (
    api_pages,
    closure,
    explore_data,
    live_pages,
    process,
    published,
    slides,
    teaching,
)
from scripts.book.answers import add_answers
from scripts.book.browser_assets import SITE
from scripts.book.ledger import ledger_page, mark_agreements
from scripts.book.run_notebooks import ROOT, run, write
from scripts.book.statements import statements_page
from scripts.check import faults, mutants

BUILD = ROOT / "_build"
EXTENSION = ROOT / "site" / "ext"
RESULTS = ROOT / "experiments" / "results"
EXECUTED, SOURCE, HTML, STAMP = (
    BUILD / name for name in ("executed", "source", "html", "complete")
)
SPHINX = """import gc, sys
from scripts.book.process import leave_with_parent
leave_with_parent()
gc.disable()  # a sixth of the time goes into looking for garbage, of which there is little
from sphinx.cmd.build import main
sys.exit(main(sys.argv[1:]))"""
EXECUTED_NOW = """
Each chapter of this site was executed from a fresh kernel before the page you read was written.
The times below are of that run, with one BLAS thread for each kernel; the book is built only when
every chapter runs to its end without an error or a warning."""
STORED = """
The pages of this copy show the outputs that are stored in the notebooks; no chapter was executed
for it. `make book` executes every chapter, and then says here when and how long.
"""
VERSIONS = ("numpy", "scipy", "scikit-learn", "matplotlib", "joblib", "anywidget", "jupyter-book")


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


def digest(*parts: bytes) -> str:
    joined = b"".join(hashlib.sha256(part).digest() for part in parts)
    return hashlib.sha256(joined).hexdigest()[:16]


def tree_digest(*folders: Path) -> str:
    """A hash of the names and contents of files, and of all below some folders."""
    files = sorted(
        file
        for folder in folders
        for file in ([folder] if folder.is_file() else folder.rglob("*"))
        if file.is_file()
    )
    return digest(
        *(
            part
            for file in files
            if "__pycache__" not in file.parts
            for part in (str(file.relative_to(ROOT)).encode(), file.read_bytes())
        )
    )


def chapter_key(path: Path, shared: str) -> str:
    """What the outputs of a chapter depend on: its cells, not the outputs stored with them."""
    notebook = nbformat.read(path, as_version=4)
    cells = [(cell.cell_type, cell.source, cell.metadata) for cell in notebook.cells]
    return digest(json.dumps(cells, sort_keys=True).encode(), shared.encode())


def foundations(path: Path) -> str:
    """A hash of what a chapter's numbers come from: modules, and stored results by name."""
    cells = nbformat.read(path, as_version=4).cells
    code = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    code = re.sub(r"^(\s*)[%!].*$", r"\1pass", code, flags=re.M)
    modules = closure.files(code)
    texts = [code, *(file.read_text(encoding="utf-8") for file in modules)]
    words = set(re.findall(r"[\w-]+", "\n".join(texts)))
    results = (file for file in RESULTS.glob("*.*") if file.stem in words)
    return tree_digest(*sorted({*modules, *results}))


def executed_copies(paths: list[Path]) -> dict[Path, Path]:
    """Where the executed copy of each chapter is kept."""
    shared = digest(
        (ROOT / "locks" / "book.txt").read_bytes(),
        (ROOT / "scripts" / "book" / "run_notebooks.py").read_bytes(),
        platform.python_version().encode(),
    )
    keys = {path: chapter_key(path, shared + foundations(path)) for path in paths}
    return {path: EXECUTED / f"{path.stem}-{key}.ipynb" for path, key in keys.items()}


def keep(copy: Path, text: str, seconds: float, each: list[float]) -> str:
    """Store what an execution gave, with how long it took, in all and each code cell."""
    record = {
        "seconds": round(seconds, 1),
        "when": time.strftime("%Y-%m-%d %H:%M", time.gmtime()),
        "cells": len(each),
        "each": each,
    }
    write(copy.with_suffix(".json"), json.dumps(record))
    write(copy, text)
    return "executed"


def execute_chapters(paths: list[Path]) -> dict[str, Path]:
    """Bring the executed copies up to date; return the copy of each chapter by its stem."""
    copies = executed_copies(paths)
    missing = [path for path in paths if not copies[path].exists()]
    os.environ["NEEDLE_FIGURES"] = "svg"  # the pages hold drawings, the notebooks pictures
    if missing and (kept := len(paths) - len(missing)):
        print(f"{kept} chapter(s) unchanged since their last execution")
    if missing and (failed := run(missing, lambda path, *told: keep(copies[path], *told))):
        raise SystemExit(f"{len(failed)} chapter(s) failed: {', '.join(sorted(failed))}")
    current = {copy.stem for copy in copies.values()}
    for stale in EXECUTED.glob("*"):
        if stale.stem not in current:
            stale.unlink()
    return {path.stem: copy for path, copy in copies.items()}


def title(path: Path) -> str:
    return nbformat.read(path, as_version=4).cells[0].source.splitlines()[0].lstrip("# ")


def execution_table(copies: dict[str, Path]) -> str:
    """The measured part of the execution-status page, in Markdown."""
    lines = [EXECUTED_NOW, "", "| chapter | code cells | seconds | executed (UTC) |"]
    lines.append("| --- | ---: | ---: | --- |")
    total = 0.0
    for stem, copy in copies.items():
        record = json.loads(copy.with_suffix(".json").read_text())
        total += record["seconds"]
        link = f"[{title(copy)}](chapters/{stem}.ipynb)"
        lines.append(f"| {link} | {record['cells']} | {record['seconds']} | {record['when']} |")
    lines += [f"| all | | {total:.1f} | |", "", "| software | version |", "| --- | --- |"]
    lines.append(f"| Python | {platform.python_version()} |")
    lines += [f"| {name} | {version(name)} |" for name in VERSIONS]
    lines.append(f"| system | {platform.system()} {platform.machine()} |")
    return "\n".join(lines) + "\n"


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
