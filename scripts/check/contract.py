"""The notebook contract: what every chapter promises its reader, as a list of checks.

    python -m scripts.check.contract [notebooks]     default: all; exit code 1 on any breach

Each check is a function of a `Chapter` that yields a sentence for each breach.
"""

from __future__ import annotations

import ast
import re
import statistics
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import nbformat

from scripts.book.chapter import (
    Chapter,
    has_figure,
    imported,
    mime_types,
    output_text,
)
from scripts.book.run_notebooks import chapters
from scripts.check.contract_prose import check_ending, check_exercises, check_marks, check_status
from utils.agreement_table import MIME

MAX_LINES, MAX_MEDIAN_LINES, MAX_MEGABYTES = 20, 6, 3
MAX_IMPORT_LINES = 25
MAX_VISIBLE, MAX_RUN, MAX_BEFORE_FIGURE = 150, 2, 3
CAPTION = re.compile(r"\*\*Figure (\w+\.\d+)\.\*\* \S")
MACHINE = re.compile(r"(?<![\w.])/(?:home|root|work|tmp|Users)/\w+| at 0x[0-9a-f]{6,}")


def check_title(chapter: Chapter) -> Iterator[str]:
    first = chapter.cells[0] if chapter.cells else None
    if first is None or first.cell_type != "markdown" or not re.match(r"# \S", first.source):
        yield "the first cell must be markdown that begins with the title, '# …'"
    elif chapter.is_appendix and not first.source.startswith(f"# Appendix {chapter.tag}: "):
        yield f"the title of an appendix begins with '# Appendix {chapter.tag}: '"
    titles = [i for i, cell in chapter.prose if re.search(r"^# ", cell.source, re.M)]
    if len(titles) > 1:
        yield f"cell {titles[1]}: a second title; sections begin with '## '"


def check_opening(chapter: Chapter) -> Iterator[str]:
    start = chapter.code[0][0] if chapter.code else len(chapter.cells)
    text = "\n\n".join(cell.source for i, cell in chapter.prose if i < start)
    if "?" not in text:
        yield "the question of the chapter must be asked before the first code cell"
    if "what you will see" not in text.lower():
        yield "'What you will see' is missing before the first code cell"


def check_imports(chapter: Chapter) -> Iterator[str]:
    if not chapter.code or not imported(chapter.code[0][1]):
        yield "the first code cell must hold the imports"
    for i, cell in chapter.code[1:]:
        if imported(cell):
            yield f"cell {i}: imports belong in the first code cell"
    for i, cell in chapter.code:
        if "sys.path" in cell.source:
            yield f"cell {i}: sys.path is not to be touched; needle and utils are installed"


def check_length(chapter: Chapter) -> Iterator[str]:
    lengths = [len(cell.source.splitlines()) for _, cell in chapter.code]
    for k, ((i, _), length) in enumerate(zip(chapter.code, lengths, strict=True)):
        most = MAX_LINES if k else MAX_IMPORT_LINES
        if not 0 < length <= most:
            yield f"cell {i}: {length} lines; allowed are 1 to {most}"
    if lengths and statistics.median(lengths) > MAX_MEDIAN_LINES:
        median = statistics.median(lengths)
        yield f"median cell length is {median:g} lines; at most {MAX_MEDIAN_LINES}"


def check_execution(chapter: Chapter) -> Iterator[str]:
    counts = [cell.execution_count for _, cell in chapter.code]
    if counts != list(range(1, len(counts) + 1)):
        yield f"cells are not executed in order from a fresh kernel: counts {counts}"
    if chapter.code and not any(cell.outputs for _, cell in chapter.code):
        yield "no output is stored"
    for i, cell in chapter.code:
        for output in cell.outputs:
            if output.output_type == "error":
                yield f"cell {i}: stores an error, {output.ename}"
            if output.get("name") == "stderr":
                yield f"cell {i}: stores a message on stderr"


def check_stability(chapter: Chapter) -> Iterator[str]:
    for i, cell in chapter.code:
        for text in (cell.source, output_text(cell)):
            if found := MACHINE.search(text):
                yield f"cell {i}: {found[0].strip()!r} belongs to one machine or one run"
        if "execution" in cell.metadata:
            yield f"cell {i}: stores timings; run scripts/book/run_notebooks.py"
    if chapter.notebook.metadata.get("kernelspec", {}).get("name") != "python3":
        yield "the kernelspec must be python3"
    identifiers = [cell.get("id") for cell in chapter.cells]
    if None in identifiers or len(set(identifiers)) < len(identifiers):
        yield "every cell needs an id of its own"
    size = chapter.path.stat().st_size / 2**20
    if size > MAX_MEGABYTES:
        yield f"the notebook has {size:.1f} MB; at most {MAX_MEGABYTES}"


def check_figures(chapter: Chapter) -> Iterator[str]:
    number = 0
    text = "\n\n".join(cell.source for _, cell in chapter.prose if not CAPTION.match(cell.source))
    for i, cell in enumerate(chapter.cells):
        caption = CAPTION.match(cell.source) if cell.cell_type == "markdown" else None
        if caption and not (i and has_figure(chapter.cells[i - 1])):
            yield f"cell {i}: the caption of Figure {caption[1]} follows no figure"
        if not has_figure(cell):
            continue
        number += 1
        name = f"{chapter.tag}.{number}"
        following = chapter.cells[i + 1] if i + 1 < len(chapter.cells) else None
        found = CAPTION.match(following.source) if following is not None else None
        if not found or following.cell_type != "markdown":
            yield f"cell {i}: a figure without the caption '**Figure {name}.** …' in the next cell"
        elif found[1] != name:
            yield f"cell {i + 1}: Figure {found[1]} should be Figure {name}"
        elif not re.search(rf"Figures?\s+(?:\w+\.\d+[,–\s]+(?:and\s+)?)*{name}(?!\d)", text):
            yield f"Figure {name} is not discussed: no text mentions it"


def check_agreement(chapter: Chapter) -> Iterator[str]:
    called = [cell for _, cell in chapter.code if re.search(r"\bagree\(", cell.source)]
    if not called:
        yield "no agree(...): a chapter holds its theory against a simulation"
    elif not any(MIME in mime_types(cell) for cell in called):
        yield f"no agree(...) left its claim in the outputs ({MIME})"


def check_results_shown(chapter: Chapter) -> Iterator[str]:
    """Only the last expression of a cell is shown: an agreement before it would be swallowed.

    A ';' at the end hides that one too, in Jupyter and not under nbval.
    """
    for i, cell in chapter.code:
        if cell.source.rstrip().endswith(";"):
            yield f"cell {i}: a ';' at the end hides the result of the cell"
        for statement in ast.parse(cell.source).body[:-1]:
            call = statement.value if isinstance(statement, ast.Expr) else None
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "agree":
                yield f"cell {i}: an agree(...) above the last line is not shown; give it a cell"


def check_reading(chapter: Chapter) -> Iterator[str]:
    """The page reads without its code: most of it is folded, and prose or a figure comes soon.

    A folded cell is no visible code, so it does not count, and no prose, so it does not break a
    row of visible cells either; what does is a markdown cell, the caption of a figure included.
    """
    visible = dict(chapter.visible)
    lines = sum(len(cell.source.splitlines()) for cell in visible.values())
    if lines > MAX_VISIBLE:
        yield f"{lines} lines of code are visible outside solutions; at most {MAX_VISIBLE}"
    run = before = 0
    for i, cell in enumerate(chapter.cells):
        run = run + (i in visible) if cell.cell_type == "code" else 0
        if run == MAX_RUN + 1 and i in visible:
            yield f"cell {i}: the third visible code cell in a row; fold one or write between"
    for i, cell in chapter.code:
        if has_figure(cell):
            if before > MAX_BEFORE_FIGURE:
                yield f"cell {i}: the first figure waits behind {before} visible code cells"
            break
        before += i in visible


CHECKS: tuple[Callable[[Chapter], Iterator[str]], ...] = (
    check_title,
    check_opening,
    check_imports,
    check_length,
    check_execution,
    check_stability,
    check_figures,
    check_agreement,
    check_results_shown,
    check_reading,
    check_status,
    check_marks,
    check_exercises,
    check_ending,
)


def breaches(path: Path) -> list[str]:
    """Every breach of the contract by one notebook; an empty list when it keeps it."""
    chapter = Chapter(path, nbformat.v4.reads(path.read_text(encoding="utf-8")))
    return [breach for check in CHECKS for breach in check(chapter)]


def main() -> int:
    paths = [Path(name) for name in sys.argv[1:]] or chapters()
    found = 0
    for path in paths:
        for breach in breaches(path):
            found += 1
            print(f"{path.name}: {breach}")
    print(f"{len(paths)} notebook(s), {found} breach(es) of the contract")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
