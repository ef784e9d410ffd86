"""The house: how many things lie about, how long a file is, what it may be called."""

from __future__ import annotations

import ast
import json
import re
import subprocess
from pathlib import Path

import pytest

from scripts.book.run_notebooks import ROOT, chapters

LONG: set[str] = set()  # files of more than 300 lines: not one more
FILES = [path for top in ("needle", "utils", "scripts") for path in (ROOT / top).rglob("*.py")]


def public(contents: Path) -> set[str]:
    """The names that a table of contents hands out."""
    tree = ast.walk(ast.parse(contents.read_text(encoding="utf-8")))
    lists = (node.names for node in tree if isinstance(node, ast.ImportFrom))
    return {name.asname or name.name for names in lists for name in names}


def test_one_takes_in_the_top_level_at_a_glance():
    words = ["git", "ls-tree", "--name-only", "HEAD"]
    listed = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    if not listed:
        pytest.skip("not a checkout")
    assert len([name for name in listed.split() if not name.startswith(".")]) <= 24


def test_a_file_is_one_subject():
    long = {str(p.relative_to(ROOT)) for p in FILES if p.read_text("utf-8").count("\n") > 300}
    assert long <= LONG


def test_no_file_or_room_is_called_like_a_public_function():
    """A package that hands out both would hand out whichever was asked for last."""
    rooms = [*(ROOT / "needle").glob("*/__init__.py"), ROOT / "needle" / "__init__.pyi"]
    for room in [*rooms, ROOT / "utils" / "__init__.pyi"]:
        beside = {path.stem for path in room.parent.iterdir() if path.stem != "__init__"}
        assert not public(room) & beside, room


def test_modules_keep_no_lists_of_names():
    assert not [path for path in FILES if "__all__" in path.read_text(encoding="utf-8")]
    assert not [p for p in (ROOT / "exercises").glob("*.py") if "__all__" in p.read_text("utf-8")]


@pytest.mark.parametrize("path", chapters(), ids=lambda path: path.stem)
def test_a_chapter_imports_from_four_places_at_most(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    places = set(re.findall(r"^(?:from|import) ((?:needle|utils)[\w.]*)", code, re.M))
    assert len(places) <= 4, places


def test_utils_is_small():
    assert (
        sum(path.read_text("utf-8").count("\n") for path in (ROOT / "utils").rglob("*.py")) <= 2600
    )
