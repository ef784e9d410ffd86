"""Executed copies of the chapters, each kept under a hash of all that its outputs depend on.

That is its cells, the modules and stored results it rests on (`scripts.book.closure`), the pinned
packages and the version of Python. Committed notebooks are never touched.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import time
from importlib.metadata import version
from pathlib import Path

import nbformat

from scripts.book import closure
from scripts.book.chapter import title
from scripts.book.run_notebooks import ROOT, run, write

EXECUTED = ROOT / "_build" / "executed"
RESULTS = ROOT / "experiments" / "results"
EXECUTED_NOW = """
Each chapter of this site was executed from a fresh kernel before the page you read was written.
The times below are of that run, with one BLAS thread for each kernel; the book is built only when
every chapter runs to its end without an error or a warning."""
VERSIONS = ("numpy", "scipy", "scikit-learn", "matplotlib", "joblib", "anywidget", "jupyter-book")


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
