"""Execute the chapters with other seeds and keep what their agreements say: a fresh look at luck.

python -m scripts.check.fresh_chapters [SHIFT]     seed k becomes (k, SHIFT); default 1

Copies run in `_build/fresh`; an agreement that is refused is noted and not raised, and the chapter
goes on; after the last one the command fails if any was. What has finished is kept under a hash of
the chapter and of `utils`: an interrupted run goes on where it was. Numbers of stored runs keep the
seeds of these runs.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import nbformat

from needle.trials.keys import digest, package_source
from scripts.book.chapter import agreements
from scripts.book.ledger_calibration import FRESH
from scripts.book.run_notebooks import ROOT, chapters, execute, limit_threads, write

FOLDER = ROOT / "_build" / "fresh"
PRELUDE = """
import sys

import numpy as np
import utils.agreement
import needle.trials.grid

_plain, _strict, _sweep = np.random.default_rng, utils.agreement.agree, needle.trials.grid.sweep


def _shifted(seed=None):
    '''Only what the page itself draws: the points that theory integrates over stay the same.'''
    page = sys._getframe(1).f_globals.get("__name__") == "__main__"
    whole = isinstance(seed, int | np.integer | list | tuple) and page
    return _plain([*np.atleast_1d(seed), {shift}] if whole else seed)


def _lenient(*args, **kwargs):
    try:
        return _strict(*args, **kwargs)
    except utils.agreement.AgreementError as error:
        return error.agreement


def _again(*args, seed, **kwargs):
    return _sweep(*args, seed=seed + 1_000_003 * {shift}, **kwargs)


np.random.default_rng = _shifted
utils.agreement.agree = _lenient
needle.trials.grid.sweep = needle.trials.sweep = _again
"""


def look(path: Path, shift: int) -> list[dict[str, Any]]:
    """The agreements of one chapter at other seeds, executed or kept."""
    source = path.read_text(encoding="utf-8")
    content = nbformat.reads(source, as_version=4)
    cells = "\n".join(cell.source for cell in content.cells)
    sources = [package_source(ROOT / part) for part in ("needle", "utils")]
    key = digest(cells, *sources, PRELUDE, str(shift))
    kept = FOLDER / f"{path.stem}-{key}.json"
    if kept.exists():
        return json.loads(kept.read_text(encoding="utf-8"))
    content.cells.insert(0, nbformat.v4.new_code_cell(PRELUDE.replace("{shift}", str(shift))))
    copy = FOLDER / path.name
    FOLDER.mkdir(parents=True, exist_ok=True)
    copy.write_text(nbformat.writes(content), encoding="utf-8")
    write(copy, execute(copy)[0])
    found = agreements(copy)
    kept.write_text(json.dumps(found, ensure_ascii=False), encoding="utf-8")
    return found


def main() -> int:
    """Whether any agreement was refused."""
    shift = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    limit_threads(1)
    found, all_refused = [], list[str]()
    for path in chapters():
        here = look(path, shift)
        refused = [record["claim"] for record in here if record["verdict"] != "agrees"]
        print(f"{path.stem}: {len(here)} agreements, refused: {refused or 'none'}", flush=True)
        found += here
        all_refused += refused
    lines = ",\n".join(json.dumps(record, ensure_ascii=False) for record in found)
    FRESH.write_text(f'{{"shift": {shift}, "agreements": [\n{lines}\n]}}\n', encoding="utf-8")
    print(
        f"{len(found)} agreements, {len(all_refused)} refused: {', '.join(all_refused) or 'none'}"
    )
    return bool(all_refused)


if __name__ == "__main__":
    sys.exit(main())
