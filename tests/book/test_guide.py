"""Reading paths and glossary, held against the chapters as they stand."""

from __future__ import annotations

import re
import sys
from functools import cache
from pathlib import Path

import nbformat
import pytest
from docutils import nodes
from docutils.core import publish_doctree

from scripts.book.build_book import page_source, toc_pages
from scripts.book.run_notebooks import ROOT

sys.path.insert(0, str(ROOT / "site" / "ext"))

import needle_glossary
import needle_path

HEADING = re.compile(r"^#{1,4} +(.+)$", re.M)
CHAPTERS = [page for page in toc_pages() if page.startswith("chapters/") or page == "your_numbers"]
PATHS = needle_path.paths()


@cache
def source(page: str) -> str:
    """The text of a page."""
    path: Path = page_source(page)
    if path.suffix == ".md":
        return path.read_text(encoding="utf-8")
    cells = nbformat.read(path, as_version=4).cells
    return "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")


@cache
def sections(page: str) -> dict[str, str]:
    """The titles of its sections, by their ids."""
    return {nodes.make_id(title.strip()): title for title in HEADING.findall(source(page))}


def stands(place: str) -> bool:
    page, _, anchor = place.partition("#")
    return page in toc_pages() and (not anchor or anchor in sections(page))


def test_every_chapter_has_a_path() -> None:
    assert list(PATHS) == CHAPTERS


@pytest.mark.parametrize("page", CHAPTERS)
def test_a_path_needs_little_and_only_what_comes_before(page: str) -> None:
    needs = PATHS[page].needs
    assert len(needs) <= 2
    assert [place for place in needs if not stands(place)] == []
    pages = [place.partition("#")[0] for place in needs]
    assert len(set(pages)) == len(pages)
    order = CHAPTERS.index
    assert all(order(needed) < order(page) for needed in pages)


@pytest.mark.parametrize("page", CHAPTERS)
def test_what_may_be_skipped_is_there_and_is_not_all(page: str) -> None:
    titles = sections(page)
    gone = [name for name in PATHS[page].skip if name not in titles]
    assert gone == [], f"{page} has no such section; mend site/ext/paths.yml"
    assert not {"exercises", "what-we-established"} & set(PATHS[page].skip)
    assert len(PATHS[page].skip) <= 3
    assert [titles[name] for name in PATHS[page].skip if "$" in titles[name]] == []


TEXT = """
Title
=====

one two three four

A
-

five six :math:`x+y` seven

.. math:: x = y

B
-

eight nine

Exercises
---------

ten eleven twelve
"""


def test_words_figures_and_formulas_are_counted_up_to_the_exercises() -> None:
    document = publish_doctree(TEXT, settings_overrides={"doctitle_xform": False})
    top = next(iter(document.findall(nodes.section)))
    assert needle_path.time_of(top) == needle_path.minutes(10, 0, 1)
    assert needle_path.time_of(top, frozenset({"a"})) == needle_path.minutes(6, 0, 0)
    assert needle_path.minutes(120, 2, 2) == 1 + 2 + 1


def test_definitions_are_short_and_plain() -> None:
    entries = needle_glossary.words()
    assert 30 <= len(entries) <= 40
    names = [word.word for word in entries]
    assert names == sorted(names)
    for word in entries:
        assert 5 <= len(word.means.split()) <= 40, word.word
        assert not re.search(r"[$\\<>]", word.means), word.word


@pytest.mark.parametrize("word", needle_glossary.words(), ids=lambda word: word.word)
def test_a_word_stands_where_its_sense_begins(word: needle_glossary.Word) -> None:
    assert stands(word.where), word.where
    page = word.where.partition("#")[0]
    before = source(page).partition("\n## Exercises")[0]
    assert word.forms.search(before), f"{word.word} does not occur in {page}"
    chapter = needle_glossary.CHAPTER.match(page)
    assert chapter and (not word.only or chapter[1] in word.only)


def test_a_text_marks_each_word_once_and_the_longer_one() -> None:
    words = {word.word: word for word in needle_glossary.words()}
    left = [words["needle"], words["two steps"], words["head"]]
    done: list[needle_glossary.Word] = []
    text = "Needles and a needle; two gradient steps; they head for the head, two steps more."
    found = needle_glossary.split(text, left, done, "../glossary.html")
    marks = [node.astext() for node in found if isinstance(node, needle_glossary.known_word)]
    assert marks == ["Needles", "two gradient steps", "head"]
    assert "".join(node.astext() for node in found) == text
    assert left == [] and [word.word for word in done] == ["needle", "two steps", "head"]
    assert needle_glossary.split(text, left, done, "../glossary.html") == [nodes.Text(text)]
    assert found[1]["address"] == "../glossary.html#term-needle"
