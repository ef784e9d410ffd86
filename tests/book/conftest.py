"""Notebooks and words for the tests of the book."""

from __future__ import annotations

import re

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

PNG = "iVBORw0KGgo="  # the checker looks at media types only


def text(source: str) -> nbformat.NotebookNode:
    return new_markdown_cell(source)


def code(source: str, *outputs: nbformat.NotebookNode) -> nbformat.NotebookNode:
    return new_code_cell(source, outputs=list(outputs))


def shown(**data: object) -> nbformat.NotebookNode:
    """An output with the given media types; '_' and '__' stand for '/' and '.'."""
    types = {kind.replace("__", ".").replace("_", "/", 1): value for kind, value in data.items()}
    return new_output("display_data", data=types)


def sound_notebook() -> nbformat.NotebookNode:
    """The smallest notebook that keeps the contract."""
    agreement = new_output(
        "execute_result",
        data={"text/plain": "agrees", "application/vnd.agreement+json": {"claim": "a-claim"}},
        execution_count=1,
    )
    cells = [
        text("# A needle\n\nCan it be found?\n\n**What you will see.** One figure."),
        code("import math"),
        text(
            "## The claim\n\nFigure 7.1 draws it.\n\n"
            "```{prf:theorem} One point\n:label: thm-7-one\nOne.\n```\n\n"
            "**Status:** proved here; it is easy.\n\n**Why it holds.** It is there."
        ),
        code("plot()", shown(image_png=PNG)),
        text("**Figure 7.1.** A point."),
        code("agree(1.0, [1.0], claim='a-claim')", agreement),
        text("## What we established\n\n- One point, at 1."),
    ]
    names = ("one", "two", "three", "four", "five")
    quick = [f":::{{dropdown}} What is {name}?\nA number.\n:::" for name in names]
    cells.append(text("\n\n".join(["## Exercises\n\n### Quick checks", *quick])))
    kinds = ("Proof", "Proof", "Computation", "Experiment", "Method")
    for name, kind in zip(names, kinds, strict=True):
        mark = f"*{kind} · ★★ · 20 min*"
        cells += [
            text(f"```{{exercise}} Title\n:label: ch7-{name}\n{mark}\n\nDo it.\n```"),
            text(f"```{{solution-start}} ch7-{name}\n:class: dropdown\n```"),
            code("1 + 1"),
            text("```{solution-end}\n```"),
        ]
    cells.append(text("## Where next\n\nOn."))
    count = 0
    for i, cell in enumerate(cells):
        cell["id"] = f"ch7-{i:03d}"
        if cell.cell_type == "code":
            count += 1
            cell.execution_count = count
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return new_notebook(cells=cells, metadata={"kernelspec": kernel})


def words(html: str) -> str:
    """The text of a page without its markup."""
    html = re.sub(r"<(script|style|nav)\b.*?</\1>", " ", html, flags=re.S)
    return re.sub(r"<[^>]+>", " ", html)
