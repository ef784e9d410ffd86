"""Hints and places for answers, written into the staged copy of a chapter."""

from __future__ import annotations

import json
import re
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_markdown_cell, new_notebook

from exercises import hint, names
from exercises.desk import find
from scripts.book.answers import add_answers
from scripts.book.run_notebooks import chapters

BOX = "````{{exercise}} A title\n:label: {}\n*Proof · ★ · 5 min*\n\n$$\nx\n$$\n````\n\nText.\n"


def written(tmp_path: Path, *labels: str) -> str:
    """The markdown of a chapter with these exercises, after hints were added."""
    path = tmp_path / "01_x.ipynb"
    cells = [new_markdown_cell("".join(BOX.format(label) for label in labels))]
    nbformat.write(new_notebook(cells=cells), path)
    add_answers(path)
    return "".join(json.loads(path.read_text(encoding="utf-8"))["cells"][0]["source"])


def test_three_hints_and_a_place_follow_each_exercise(tmp_path: Path) -> None:
    first, second = [name for name in names() if find(name).judge][:2]
    found = written(tmp_path, first, "ch1-no-check", second)
    assert found.count(":::{dropdown}") == 6
    assert re.findall(r'data-exercise="([\w-]+)"', found) == [first, second]
    assert found.index(hint(first, 1)) < found.index(hint(first, 3)) < found.index("ch1-no-check")
    assert found.count("\nText.\n") == 3


def test_an_exercise_without_a_check_gets_its_list(tmp_path: Path) -> None:
    (name, *_) = [name for name in names() if not find(name).judge]
    found = written(tmp_path, name)
    assert "data-exercise" not in found and found.count("\n- ") == len(find(name).proof)


@pytest.mark.parametrize("path", chapters(), ids=lambda path: path.stem)
def test_every_exercise_of_a_chapter_is_dressed(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / path.name
    copy.write_bytes(path.read_bytes())
    add_answers(copy)
    boxes = copy.read_text(encoding="utf-8").count("{exercise} ")
    text = "\n".join("".join(cell["source"]) for cell in json.loads(copy.read_text())["cells"])
    assert text.count(":::{dropdown} A nudge") == boxes
    nbformat.validate(nbformat.read(copy, as_version=4))
