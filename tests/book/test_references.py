"""Every entry of the bibliography is cited, and every citation has an entry."""

from __future__ import annotations

import re

import nbformat
import pytest

from scripts.book.run_notebooks import ROOT, chapters

CITED = re.compile(r"\{cite(?::\w+)?\}`([^`]+)`")


def cited() -> set[str]:
    """The keys that chapters and pages cite, and the numbers of others."""
    texts = [
        cell.source
        for path in chapters()
        for cell in nbformat.read(path, as_version=4).cells
        if cell.cell_type == "markdown"
    ]
    pages = [ROOT / "intro.md", *(ROOT / "site").glob("*.md")]
    texts += [path.read_text(encoding="utf-8") for path in pages]
    numbers = (ROOT / "site" / "published.toml").read_text(encoding="utf-8")
    texts += [f"{{cite}}`{keys}`" for keys in re.findall(r'^cite = "(.*)"', numbers, re.M)]
    return {
        key.strip() for text in texts for keys in CITED.findall(text) for key in keys.split(",")
    }


def entries() -> dict[str, str]:
    """The text of each entry by its key."""
    text = (ROOT / "references.bib").read_text(encoding="utf-8")
    return dict(re.findall(r"^@\w+\{(\S+),\n(.*?)^\}", text, re.M | re.S))


def test_bibliography_and_citations_agree() -> None:
    keys = re.findall(r"^@\w+\{(\S+),", (ROOT / "references.bib").read_text(), re.M)
    assert len(keys) == len(set(keys)), "a key stands twice"
    assert set(keys) == set(entries())
    assert not sorted(set(keys) - cited()), "entries that nobody cites"
    assert not sorted(cited() - set(keys)), "citations without an entry"


@pytest.mark.parametrize("key", entries())
def test_an_entry_says_where_to_find_it(key: str) -> None:
    body = entries()[key]
    assert re.search(r"author *=", body) and re.search(r"year *=", body)
    assert re.search(r"(doi|url|note|booktitle|journal|publisher) *=", body)
