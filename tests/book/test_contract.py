"""Every chapter keeps the notebook contract, and the checker finds each way of breaking it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_output

from scripts.book.run_notebooks import chapters
from scripts.check.contract import breaches
from tests.book.conftest import PNG, code, shown, sound_notebook, text

Break = Callable[[Any], None]


def check(folder: Path, notebook: Any, name: str = "07_needle.ipynb") -> list[str]:
    path = folder / name
    path.write_text(nbformat.v4.writes(notebook), encoding="utf-8")
    return breaches(path)


def number_cells(notebook: Any) -> None:
    for count, cell in enumerate((c for c in notebook.cells if c.cell_type == "code"), 1):
        cell.execution_count = count


def insert(index: int, *cells: Any) -> Break:
    def change(notebook: Any) -> None:
        notebook.cells[index:index] = cells
        number_cells(notebook)

    return change


def remove(index: int) -> Break:
    def change(notebook: Any) -> None:
        del notebook.cells[index]
        number_cells(notebook)

    return change


def source(index: int, new: str) -> Break:
    def change(notebook: Any) -> None:
        notebook.cells[index].source = new

    return change


def replace(index: int, old: str, new: str) -> Break:
    def change(notebook: Any) -> None:
        cell = notebook.cells[index]
        assert old in cell.source
        cell.source = cell.source.replace(old, new, 1)

    return change


def folded(source: str, *outputs: Any) -> Any:
    cell = code(source, *outputs)
    cell.metadata["tags"] = ["hide-input"]
    return cell


def long_argument(notebook: Any) -> None:
    for _ in range(8):
        insert(2, text("And then?"), code("\n".join("1" * 19)))(notebook)


def outputs(index: int, *new: Any) -> Break:
    def change(notebook: Any) -> None:
        notebook.cells[index].outputs = list(new)

    return change


def count(index: int, value: int | None) -> Break:
    def change(notebook: Any) -> None:
        notebook.cells[index].execution_count = value

    return change


def kernel(notebook: Any) -> None:
    notebook.metadata["kernelspec"]["name"] = "my-venv"


def forget_outputs(notebook: Any) -> None:
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = []


def timings(notebook: Any) -> None:
    notebook.cells[1].metadata["execution"] = {"iopub.execute_input": "2026-01-01T00:00:00Z"}


def same_id(notebook: Any) -> None:
    notebook.cells[3]["id"] = notebook.cells[1]["id"]


def long_cells(notebook: Any) -> None:
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.source += "\n1" * 7


BROKEN: dict[str, tuple[Break, str]] = {
    "no title": (source(0, "A needle? What you will see."), "must be markdown that begins"),
    "two titles": (source(2, "# Again\n\nFigure 7.1"), "a second title"),
    "no question": (source(0, "# A\n\nWhat you will see."), "question of the chapter"),
    "no promise": (source(0, "# A\n\nWhy?"), "'What you will see' is missing"),
    "no imports first": (source(1, "x = 1"), "must hold the imports"),
    "late import": (source(3, "import math"), "cell 3: imports belong"),
    "import in a solution": (source(10, "from math import pi"), "cell 10: imports belong"),
    "sys.path": (source(1, "import sys\nsys.path.append('..')"), "sys.path is not to be touched"),
    "cell of 21 lines": (source(3, "\n".join("x" * 21)), "21 lines; allowed are"),
    "empty cell": (source(3, ""), "0 lines; allowed are"),
    "long median": (long_cells, "median cell length is 8 lines"),
    "never executed": (count(3, None), "not executed in order"),
    "executed out of order": (count(3, 9), "not executed in order"),
    "stripped outputs": (forget_outputs, "no output is stored"),
    "error output": (
        outputs(3, new_output("error", ename="KeyError", evalue="", traceback=[])),
        "stores an error, KeyError",
    ),
    "stderr output": (
        outputs(3, new_output("stream", name="stderr", text="careful")),
        "a message on stderr",
    ),
    "path of a machine": (source(3, "open('/home/me/data')"), "belongs to one machine"),
    "address in memory": (
        outputs(3, shown(text_plain="<A object at 0x7f00deadbeef>")),
        "belongs to one machine",
    ),
    "stored timings": (timings, "stores timings"),
    "foreign kernel": (kernel, "kernelspec must be python3"),
    "one id twice": (same_id, "an id of its own"),
    "too large": (outputs(5, shown(text_plain="x" * (4 << 20))), "MB; at most 3"),
    "figure without caption": (source(4, "A point."), "a figure without the caption"),
    "figure at the end": (insert(99, code("plot()", shown(image_png=PNG))), "without the caption"),
    "widget without caption": (
        insert(5, code("w", shown(**{"application_vnd__jupyter__widget-view+json": {}}))),
        "a figure without the caption '**Figure 7.2.** …'",
    ),
    "wrong number": (source(4, "**Figure 7.2.** A point."), "Figure 7.2 should be Figure 7.1"),
    "caption without figure": (
        insert(5, text("**Figure 7.2.** Nothing.")),
        "the caption of Figure 7.2 follows no figure",
    ),
    "figure never discussed": (source(2, "## The claim"), "Figure 7.1 is not discussed"),
    "no agreement": (source(5, "1 + 1"), "no agree(...): a chapter"),
    "agreement without trace": (outputs(5), "no agree(...) left its claim"),
    "result hidden": (source(3, "1 + 1;"), "a ';' at the end hides the result"),
    "agreement swallowed": (
        source(5, 'agree(1, [1, 2], claim="a-b")\nagree(1, [1, 2], claim="a-c")'),
        "is not shown",
    ),
    "exercise without label": (source(8, "```{exercise}\nDo it.\n```"), "without a :label:"),
    "exercise without solution": (source(9, "text"), "exercise ch7-one has no executable"),
    "open solution": (
        source(9, "```{solution-start} ch7-one\n```"),
        "the solution of ch7-one is not folded",
    ),
    "solution without code": (remove(10), "the solution of ch7-one has no code cell"),
    "solution without end": (remove(11), "starts before that of ch7-one ends"),
    "last solution without end": (remove(27), "the solution of ch7-five does not end"),
    "solution of nothing": (
        source(9, "```{solution-start} ch7-none\n:class: dropdown\n```"),
        "the solution of ch7-none belongs to no exercise",
    ),
    "solution that does not run": (
        insert(12, text("```{solution} ch7-one\n```")),
        "use solution-start and solution-end",
    ),
    "four exercises": (source(8, "gone"), "4 exercises; at least 5"),
    "151 visible lines": (long_argument, "lines of code are visible outside solutions; at most"),
    "three visible cells in a row": (
        insert(2, code("1"), code("1")),
        "cell 3: the third visible code cell in a row",
    ),
    "a folded cell between them": (
        insert(2, code("1"), folded("1"), code("1")),
        "cell 4: the third visible code cell in a row",
    ),
    "late figure": (
        insert(2, *[text("a"), code("1"), text("a"), code("1"), text("a"), code("1")]),
        "the first figure waits behind 4 visible code cells",
    ),
    "statement without status": (
        replace(2, "**Status:** proved here; it is easy.\n\n", ""),
        "after thm-7-one stands no paragraph '**Status:** …'",
    ),
    "status of no kind": (replace(2, "proved here;", "true;"), "after thm-7-one stands no"),
    "a theorem that is derived": (
        replace(2, "proved here; it is easy", "derived here; it is hard"),
        "a theorem is proved, this is a result",
    ),
    "a result that is proved": (replace(2, "{prf:theorem}", "{prf:result}"), "not a result"),
    "status not at once": (
        replace(2, "**Status:**", "It is easy.\n\n**Status:**"),
        "after thm-7-one stands no",
    ),
    "statement without label": (replace(2, ":label: thm-7-one\n", ""), "has no :label:"),
    "statement without title": (replace(2, " One point", ""), "has no title"),
    "exercise without mark": (
        replace(8, "*Proof · ★★ · 20 min*\n\n", ""),
        "exercise ch7-one lacks its first line",
    ),
    "exercise of no kind": (replace(8, "Proof", "Riddle"), "exercise ch7-one lacks its"),
    "exercise without time": (replace(8, " · 20 min", ""), "exercise ch7-one lacks its"),
    "one proof": (replace(8, "Proof", "Method"), "1 exercise(s) marked Proof; at least 2"),
    "four quick checks": (replace(7, "{dropdown} What is one?", "{note}"), "4 dropdown(s) under"),
    "quick checks elsewhere": (
        replace(7, "### Quick checks", "### Warm up"),
        "0 dropdown(s) under",
    ),
    "quick check without question": (replace(7, "one?", "one."), "quick check 'What is one.'"),
    "quick check without answer": (replace(7, "one?\nA number.", "one?"), "an answer inside"),
    "no summary": (source(6, "## Summary\n\n- 1"), "'## What we established' is missing"),
    "summary without list": (source(6, "## What we established\n\n1"), "must be a list"),
    "summary without numbers": (
        source(6, "## What we established\n\n- It works."),
        "a line without a number",
    ),
    "no next": (remove(28), "'## Where next' is missing"),
}


def test_a_sound_notebook_keeps_the_contract(tmp_path: Path) -> None:
    assert check(tmp_path, sound_notebook()) == []


@pytest.mark.parametrize("name", BROKEN)
def test_the_checker_finds_every_breach(name: str, tmp_path: Path) -> None:
    change, message = BROKEN[name]
    notebook = sound_notebook()
    change(notebook)
    assert any(message in breach for breach in check(tmp_path, notebook))


def test_folded_cells_and_solutions_may_be_long(tmp_path: Path) -> None:
    notebook = sound_notebook()
    for cell in notebook.cells[10:]:
        if cell.cell_type == "code":
            cell.source = "\n".join("1" * 20)
    for _ in range(3):
        long_argument(notebook)
    for cell in notebook.cells:
        if cell.cell_type == "code" and len(cell.source) > 30:
            cell.metadata["tags"] = ["hide-cell"]
    found = check(tmp_path, notebook)
    assert [breach for breach in found if "median" not in breach] == []


def test_a_folded_figure_is_a_figure_and_several_images_are_one(tmp_path: Path) -> None:
    notebook = sound_notebook()
    notebook.cells[3].metadata["tags"] = ["hide-input"]
    notebook.cells[3].outputs *= 3
    assert check(tmp_path, notebook) == []


def test_an_appendix_needs_no_exercises(tmp_path: Path) -> None:
    notebook = sound_notebook()
    del notebook.cells[6:]
    for cell in notebook.cells:
        cell.source = cell.source.replace("7.1", "B.1")
    assert any("begins with '# Appendix B: '" in x for x in check(tmp_path, notebook, "B_n.ipynb"))
    notebook.cells[0].source = notebook.cells[0].source.replace("# A", "# Appendix B: a")
    assert check(tmp_path, notebook, "B_needle.ipynb") == []


def test_there_are_chapters() -> None:
    assert chapters()


@pytest.mark.parametrize("path", chapters(), ids=lambda path: path.stem)
def test_every_chapter_keeps_the_contract(path: Path) -> None:
    assert breaches(path) == []
