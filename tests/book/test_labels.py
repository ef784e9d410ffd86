"""Docstrings of `needle` point to statements and equations that exist, and theory points there."""

import ast
import json
import re

import pytest

from scripts.book.run_notebooks import ROOT, chapters

PARTS = (ROOT / "needle", ROOT / "utils")
MODULES = sorted(path for part in PARTS for path in part.rglob("[!_]*.py"))
POINTER = r"(?:Appendix|Chapter)\s+(\w+),\s+((?:(?:equation )?\(?[\w-]+\)?(?:,\s+|\s+and\s+)?)+)"
WITHOUT = {"fit_cost": "H"}  # an appendix in which nothing is stated


def labels(page: str) -> set[str]:
    """The labels of a chapter or an appendix, by its number or letter."""
    (path,) = (path for path in chapters() if path.name.split("_")[0].lstrip("0") == page)
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    text = "\n".join("".join(cell["source"]) for cell in cells)
    return set(re.findall(r"^:label: (\S+)$", text, re.M)) | set(
        re.findall(r"\$\$ ?\((\S+)\)", text)
    )


def pointers(text: str) -> list[tuple[str, str]]:
    """Pages and the labels on them that a text points to."""
    return [
        (page, label)
        for page, names in re.findall(POINTER, text)
        for label in re.findall(rf"\b[a-z]+-{page}-[\w-]+", names, re.I)
    ]


def test_every_label_in_a_docstring_exists():
    found = {path: pointers(path.read_text(encoding="utf-8")) for path in MODULES}
    assert sum(map(len, found.values())) > 60
    for name, named in found.items():
        for page, label in named:
            assert label in labels(page), (name, label)


def test_both_forms_of_a_pointer_are_read():
    text = "Chapter 7, thm-7-state and\nalg-7-amp. Appendix D, equation (eq-d-width)."
    assert pointers(text) == [("7", "thm-7-state"), ("7", "alg-7-amp"), ("D", "eq-d-width")]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_whatever_predicts_simulates_or_fits_says_where_it_is_derived(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in tree.body:
        name = node.name if isinstance(node, ast.FunctionDef) else ""
        if re.match("(predict|simulate|fit)_", name):
            text = f"{ast.get_docstring(tree)}\n{ast.get_docstring(node)}"
            assert pointers(text) or f"Appendix {WITHOUT.get(name)}" in text, name
