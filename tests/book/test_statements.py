"""The index of statements: complete, counted, linked, and refused where a status is missing."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_markdown_cell, new_notebook

from scripts.book import statements

BOX = "```{{prf:{kind}}} {title}\n:label: {label}\n\nIt is so.\n```\n\n{after}"


def box(kind: str, title: str, label: str, after: str) -> str:
    return BOX.format(kind=kind, title=title, label=label, after=after)


@pytest.fixture
def chapter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A chapter with a definition, a theorem and, in one cell, two lemmas."""
    monkeypatch.setattr(statements, "ROOT", tmp_path)
    lemmas = [
        box("lemma", "With $|w|$", "lem-7-a", "**Status:** classical; see the book.\n\nWhy."),
        box("lemma", "More", "lem-7-b", "**Status:** proved here.\n"),
    ]
    cells = [
        "# A needle",
        box("definition", "Words", "def-7-a", "No status."),
        box("theorem", "One", "thm-7-a", "**Status:** proved here.\n\n**Why it holds.** So."),
        "Text.\n\n" + "\n\n".join(lemmas),
    ]
    path = tmp_path / "chapters" / "07_needle.ipynb"
    path.parent.mkdir()
    nbformat.write(new_notebook(cells=[new_markdown_cell(cell) for cell in cells]), path)
    return path


def test_statements_are_listed_in_order_and_definitions_are_not(chapter: Path) -> None:
    found = [(s.label, s.status) for s in statements.statements(chapter)]
    expected = [("thm-7-a", "proved here"), ("lem-7-a", "classical"), ("lem-7-b", "proved here")]
    assert found == expected


def test_the_page_counts_by_status_and_links_every_statement(chapter: Path) -> None:
    page = statements.statements_page([chapter])
    assert "The book makes 3 statements." in page
    assert re.search(r"\| proved here \| 2 \|", page)
    assert re.search(r"\| classical \| 1 \|", page)
    assert re.search(r"\| conjectured \| 0 \|", page)
    assert "## [7. A needle](chapters/07_needle.ipynb)" in page
    assert "| {prf:ref}`thm-7-a` | One | proved here |" in page
    rows = [line for line in page.splitlines() if "prf:ref" in line]
    assert [line.count("|") for line in rows] == [4, 4, 4]


@pytest.mark.parametrize("after", ["It is easy.", "**Status:** true.", "So.\n\n**Status:** paper."])
def test_a_statement_without_a_status_stops_the_build(chapter: Path, after: str) -> None:
    notebook = nbformat.read(chapter, as_version=4)
    notebook.cells.append(new_markdown_cell(box("corollary", "Oh", "cor-7-a", after)))
    nbformat.write(notebook, chapter)
    with pytest.raises(SystemExit, match="cor-7-a"):
        statements.statements_page([chapter])
    assert "not yet said" in statements.statements_page([chapter], complete=False)
