"""The index of statements: every theorem-like box of the book, with who vouches for it.

python -m scripts.book.statements      print the table that the page 'Statements' shows
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import nbformat

from scripts.book.chapter import STATEMENTS, STATUSES, boxes, title
from scripts.book.run_notebooks import ROOT, chapters

MEANING = {
    "paper": "stated and proved in the paper this book starts from {cite}`barnfield2026`",
    "classical": "known before, with its source; a proof may be given for convenience",
    "proved here": "the proof is in the book",
    "derived here": "a calculation that leaves steps of rigour open, held against simulations",
    "conjectured": "believed for reasons that are given; nobody has proved it",
    "measured": "read off from simulations alone",
}


@dataclass(frozen=True)
class Statement:
    """A theorem-like box; `status` is None where the text does not give one."""

    label: str | None
    title: str
    status: str | None
    kind: str = "theorem"


def statements(path: Path) -> list[Statement]:
    """The statements of a notebook, in order."""
    cells = nbformat.read(path, as_version=4).cells
    found = [box for cell in cells if cell.cell_type == "markdown" for box in boxes(cell.source)]
    kinds = {f"prf:{kind}" for kind in STATEMENTS}
    return [
        Statement(box.label, box.title, box.status, box.kind.removeprefix("prf:"))
        for box in found
        if box.kind in kinds
    ]


@cache
def chapter_title(path: Path) -> str:
    """The title of a chapter with its number, that of an appendix with its letter."""
    number = path.stem.split("_")[0].lstrip("0")
    return f"{number}. {title(path)}" if number.isdigit() else title(path)


def statements_page(paths: list[Path], *, complete: bool = True) -> str:
    """The generated part of the page; when it must be `complete`, a missing status is an error."""
    index = {path: statements(path) for path in paths}
    missing = [s.label or s.title for found in index.values() for s in found if not s.status]
    if missing and complete:
        raise SystemExit(f"statements without '**Status:** …': {', '.join(missing)}")
    count = Counter(s.status for found in index.values() for s in found)
    total = sum(count.values())
    kinds = Counter(s.kind for found in index.values() for s in found)
    named = [f"{kinds[k]} {k}{'s' * (kinds[k] > 1)}" for k in STATEMENTS if kinds[k]]
    lines = [
        f"The book makes {total} statements.",
        f"By their names: {', '.join(named)}.".replace("corollarys", "corollaries"),
        "",
    ]
    lines += ["| status | count | meaning |", "| --- | ---: | --- |"]
    lines += [f"| {status} | {count[status]} | {MEANING[status]} |" for status in STATUSES]
    for path, found in index.items():
        if not found:
            continue
        page = path.relative_to(ROOT).as_posix()
        lines += ["", f"## [{chapter_title(path)}]({page})", ""]
        lines += ["| number | statement | status |", "| --- | --- | --- |"]
        for statement in found:
            # a bar would end the column, and titles may hold mathematics with bars
            words = re.sub(r"(?<!\\)\|", r"\\vert ", statement.title)
            number = f"{{prf:ref}}`{statement.label}`" if statement.label else "–"
            lines.append(f"| {number} | {words} | {statement.status or 'not yet said'} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    paths = [Path(name).resolve() for name in sys.argv[1:]] or chapters()
    print(statements_page(paths, complete=False))
