"""The words of the book: marked where a chapter first uses them, with a card that explains them.

`glossary.yml` holds them. In the text of a page before its exercises the first occurrence of each
becomes a link to the page of the glossary; `_static/guide.js` shows its card when the mouse rests
on the link, when it has the focus, and at a tap. Without scripts the link leads to the page.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from docutils import nodes
from needle_reading import LAST, fold
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

WORDS = Path(__file__).with_name("glossary.yml")
PAGE = "glossary"
CHAPTER = re.compile(r"chapters/(\d+|[A-Z])_")
QUIET = (
    *(nodes.title, nodes.caption, nodes.reference, nodes.literal, nodes.literal_block, nodes.raw),
    *(nodes.math, nodes.math_block, nodes.table, nodes.strong, nodes.figure, fold),
)


class Word(NamedTuple):
    """An entry of the glossary."""

    word: str
    where: str  # page#section
    means: str
    forms: re.Pattern[str]
    only: frozenset[str]  # chapters; empty for all

    @property
    def key(self) -> str:
        return "term-" + re.sub(r"\W+", "-", self.word)


@cache
def words() -> tuple[Word, ...]:
    """The glossary, in the order of the alphabet."""
    found = []
    for entry in yaml.safe_load(WORDS.read_text(encoding="utf-8")):
        forms = entry.get("forms") or rf"{re.escape(entry['word'])}s?"
        pattern = re.compile(rf"(?<![\w-])(?:{forms})(?![\w-])", re.I)
        only = frozenset(entry.get("only", ()))
        found.append(Word(entry["word"], entry["where"], entry["means"], pattern, only))
    return tuple(found)


class known_word(nodes.Inline, nodes.TextElement):
    """A word that links to its entry, and that a card explains."""


def prose(section: nodes.Element) -> Iterator[nodes.Text]:
    """The pieces of plain text of a page, in order, up to its exercises."""
    for child in section.children:
        if isinstance(child, nodes.section) and LAST in child["ids"]:
            return
        if isinstance(child, nodes.Text):
            yield child
        elif isinstance(child, nodes.Element) and not isinstance(child, QUIET):
            yield from prose(child)


class Terms(SphinxPostTransform):
    """Mark the first use of each word on a chapter's page."""

    default_priority = 27  # after the reading mode has sorted the page, before figures are linked

    def run(self, **kwargs: Any) -> None:
        chapter = CHAPTER.match(self.env.docname)
        if self.app.builder.format != "html" or not chapter or PAGE not in self.env.found_docs:
            return
        open_words = [word for word in words() if not word.only or chapter[1] in word.only]
        top = next(iter(self.document.findall(nodes.section)))
        marked: list[Word] = []
        address = self.app.builder.get_relative_uri(self.env.docname, PAGE)
        for text in list(prose(top)):
            pieces = split(str(text), open_words, marked, address)
            if len(pieces) > 1:
                text.parent.replace(text, pieces)
        for word in marked:
            top += nodes.raw("", card(word), format="html")


def split(text: str, left: list[Word], marked: list[Word], address: str) -> list[nodes.Node]:
    """A text in pieces, with those of the words left that it is the first to use: now marked."""
    hits = [(match, word) for word in left if (match := word.forms.search(text))]
    found: list[nodes.Node] = []
    end = 0
    for match, word in sorted(hits, key=lambda hit: (hit[0].start(), -hit[0].end())):
        if match.start() < end:
            continue  # within another mark: the next occurrence will do
        mark = known_word(match[0], match[0], key=word.key, address=f"{address}#{word.key}")
        found += [nodes.Text(text[end : match.start()]), mark]
        end = match.end()
        left.remove(word)
        marked.append(word)
    return [*found, nodes.Text(text[end:])]


def card(word: Word) -> str:
    """What is shown of a word where it is used."""
    means = html.escape(word.means)
    return (
        f'<div popover="manual" id="{word.key}" class="card-of-term" role="tooltip">'
        f"<p><b>{html.escape(word.word)}</b> {means}</p></div>"
    )


def visit_word(self: Any, node: known_word) -> None:
    described = f'href="{node["address"]}" aria-describedby="{node["key"]}"'
    self.body.append(f'<a class="term" {described}>')


def depart_word(self: Any, node: known_word) -> None:
    self.body.append("</a>")


def section_link(env: Any, builder: Any, page: str, place: str) -> tuple[str, str]:
    """Where a place is, from a page, and what its section is called; its page if it has gone."""
    target, _, anchor = place.partition("#")
    uri = builder.get_relative_uri(page, target)
    for link in env.tocs[target].findall(nodes.reference):
        if anchor and link["anchorname"] == f"#{anchor}":
            return f"{uri}#{anchor}", link.astext()
    return uri, env.titles[target].astext()


def chapter_name(page: str) -> str:
    """A page as one calls it in a sentence.

    >>> chapter_name("chapters/03_separation"), chapter_name("chapters/B_alignment")
    ('Chapter 3', 'Appendix B')
    """
    match = CHAPTER.match(page)
    if not match:
        return "Chapter 14" if page == "your_numbers" else page
    return f"Chapter {int(match[1])}" if match[1].isdigit() else f"Appendix {match[1]}"


class Entries(SphinxPostTransform):
    """Fill the page of the glossary."""

    default_priority = 27

    def run(self, **kwargs: Any) -> None:
        if self.app.builder.format != "html" or self.env.docname != PAGE:
            return
        lines = ['<dl class="glossary">']
        for word in words():
            page = word.where.partition("#")[0]
            if page not in self.env.found_docs:
                continue
            uri, title = section_link(self.env, self.app.builder, PAGE, word.where)
            link = f'<a href="{uri}">{chapter_name(page)}: {html.escape(title)}</a>'
            lines.append(f'<dt id="{word.key}">{html.escape(word.word)}</dt>')
            lines.append(f"<dd>{html.escape(word.means)} <span>{link}</span></dd>")
        section = next(iter(self.document.findall(nodes.section)))
        section += nodes.raw("", "\n".join([*lines, "</dl>"]), format="html")


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_node(known_word, html=(visit_word, depart_word))
    app.add_post_transform(Terms)
    app.add_post_transform(Entries)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
