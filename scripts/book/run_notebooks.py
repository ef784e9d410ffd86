"""Execute notebooks so that an unchanged notebook is left byte for byte as it was.

    python scripts/book/run_notebooks.py                     every chapter, in place
    python scripts/book/run_notebooks.py chapters/01_*.ipynb  only these

Timings are reported and not stored, consecutive stream outputs are merged, and the interpreter
version is left out of the metadata. Of a widget that brings its own HTML only that is kept: the
built page starts it, and Jupyter once the cell is executed. Ids of others are renumbered in order
of creation.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from datetime import datetime
from pathlib import Path
from typing import Any

import nbformat

from scripts.book.process import begin, leave_with_parent

ROOT = Path(__file__).resolve().parents[2]
WIDGETS = "application/vnd.jupyter.widget-state+json"
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
CELL_TIMEOUT = 600
COLOR = re.compile(r"\x1b\[[0-9;]*m")


def chapters() -> list[Path]:
    """Every notebook of the book, in reading order."""
    return sorted((ROOT / "chapters").glob("*.ipynb"))


def limit_threads(workers: int) -> None:
    """One BLAS thread per process; joblib inside a kernel gets this kernel's share of the cores."""
    for name in THREADS:
        os.environ[name] = "1"
    os.environ["LOKY_MAX_CPU_COUNT"] = str(max(1, (os.cpu_count() or 1) // workers))


def execute(path: Path) -> tuple[str, float, list[float]]:
    """Execute one notebook in a fresh kernel; its stable text, its seconds, those of each cell."""
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    notebook.metadata.pop("widgets", None)
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as profile:
        os.environ["IPYTHONDIR"] = profile
        client = NotebookClient(
            notebook,
            timeout=CELL_TIMEOUT,
            kernel_name="python3",
            coalesce_streams=True,
            extra_arguments=["--log-level=ERROR"],
            resources={"metadata": {"path": str(path.parent)}},
        )
        client.execute()
    spent = time.perf_counter() - start
    each = [cell_seconds(cell) for cell in notebook.cells if cell.cell_type == "code"]
    return stable_text(notebook), spent, each


def cell_seconds(cell: Any) -> float:
    """How long a cell was executed, by the timings of its kernel, which leave the notebook here."""
    times = cell.metadata.pop("execution", {})
    try:
        start, end = (times[f"iopub.status.{word}"] for word in ("busy", "idle"))
    except KeyError:
        return 0.0
    moments = [datetime.fromisoformat(moment.replace("Z", "+00:00")) for moment in (start, end)]
    return round((moments[1] - moments[0]).total_seconds(), 2)


def stable_text(notebook: Any) -> str:
    """The notebook as text that does not depend on when, or by which process, it was executed."""
    notebook.metadata["kernelspec"] = {
        "display_name": "Python 3",
        "language": "python",
        "name": "python3",
    }
    notebook.metadata["language_info"] = {"name": "python"}
    drop_live_widgets(notebook)
    nbformat.validate(notebook)
    text = nbformat.writes(notebook)
    state = notebook.metadata.get("widgets", {}).get(WIDGETS, {}).get("state", {})
    for number, identifier in enumerate(state):
        text = text.replace(identifier, f"{number:032x}")
    if state:  # nbformat sorts keys: sort again under the new names
        text = nbformat.writes(nbformat.reads(text, as_version=4))
    return text.rstrip("\n") + "\n"


def drop_live_widgets(notebook: Any) -> None:
    """Forget the views of widgets that come with HTML, and the states that nothing shows then."""
    views = []
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if "text/html" in data:
                data.pop(WIDGET_VIEW, None)
            views += [WIDGET_VIEW] * (WIDGET_VIEW in data)
    if not views:
        notebook.metadata.pop("widgets", None)


def write(path: Path, text: str) -> bool:
    """Replace a file in one step, only when its content changes; return whether it did."""
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)
    return True


def run(
    paths: Iterable[Path],
    save: Callable[[Path, str, float, list[float]], str],
    workers: int | None = None,
) -> list[str]:
    """Execute notebooks in parallel, with a progress line each; return the names that failed.

    `save(path, text, seconds, each)` stores a result, with the seconds of each code cell, and
    returns a word for the progress line.
    """
    paths = list(paths)
    workers = max(1, min(workers or os.cpu_count() or 1, len(paths)))
    limit_threads(workers)
    failed = []
    with ProcessPoolExecutor(workers, initializer=leave_with_parent) as pool:
        pending = {pool.submit(execute, path): path for path in paths}
        for count, future in enumerate(as_completed(pending), 1):
            path = pending[future]
            try:
                text, seconds, each = future.result()
                line = f"{seconds:6.1f} s  {save(path, text, seconds, each)}"
            except Exception as error:
                failed.append(path.name)
                line = f"FAILED\n{COLOR.sub('', str(error))}"
            print(f"[{count}/{len(paths)}] {path.stem:<24} {line}", flush=True)
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="*", type=Path, help="notebooks (default: every chapter)")
    parser.add_argument("-j", "--workers", type=int, help="notebooks at a time (default: cores)")
    arguments = parser.parse_args()
    paths = [path.resolve() for path in arguments.paths] or chapters()
    for path in paths:
        if not path.is_file():
            parser.error(f"{path} does not exist")

    begin("notebooks")

    def save(path: Path, text: str, seconds: float, each: list[float]) -> str:
        return "updated" if write(path, text) else "unchanged"

    failed = run(paths, save, arguments.workers)
    if failed:
        print(f"{len(failed)} notebook(s) failed: {', '.join(sorted(failed))}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
