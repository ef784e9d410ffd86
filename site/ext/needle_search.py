"""The search of the site: an index of sections, with the terms of the book's own index.

Sphinx ranks pages and quotes them with their toolbar; a reader looks for a section. The sections of
the finished pages go into `_static/sections.json`, MiniSearch ranks them in `_static/search.mjs`.
Terms that a section answers without naming them, such as "sqrt(2 log L)", stand in `terms.yml`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from bs4 import BeautifulSoup, Tag
from needle_tex import words_of
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

TERMS = Path(__file__).with_name("terms.yml")
LEFT_OUT = ".headerlink, script, style, noscript, .cell_input, .cell_output pre, details.folded"
LEFT_OUT += ", .card-of-check, .check, .reading-switch, details.code > summary"
LEFT_OUT += ", .card-of-term, .reading-path"
LEFT_OUT += ", .ledger table"  # says again what the chapters say, and has a search of its own
LEFT_OUT += ", details.agreement table, .doctest"  # numbers and examples: nobody asks for these
BESIDE = 600  # letters kept of a section beside the chapters: the index is fetched as a whole


def unnumbered(title: str) -> str:
    """A title without the number of its chapter."""
    number, _, rest = title.partition(" ")
    return rest.lstrip() if number.endswith(".") and rest else title


def sections(page: str, html: str) -> Iterator[dict[str, str]]:
    """The sections of a page, each with its own text and not that of the sections inside it."""
    article = BeautifulSoup(html, "html.parser").select_one("article.bd-article")
    if article is None:
        return
    for part in article.select(LEFT_OUT):
        part.decompose()
    if page.startswith("api"):  # of a function its name and what it is for
        for part in article.select("dl.py > dd > p ~ :not(dl.py)"):
            part.decompose()
    for formula in article.select(".math"):
        formula.string = words_of(formula.get_text())
    top = article.find("h1")
    of = unnumbered(top.get_text(" ", strip=True)) if top else page
    for section in reversed(article.find_all("section", id=True)):
        heading = section.find([f"h{level}" for level in range(1, 7)])
        section.extract()  # so that the section around it does not say it again
        if isinstance(heading, Tag):
            title = " ".join(heading.get_text(" ").split())
            heading.decompose()
            text = " ".join(section.get_text(" ").split())
            place = "" if heading is top else f"#{section['id']}"
            text = text if page.startswith("chapters") else text[:BESIDE]
            yield {"id": f"{page}.html{place}", "page": of, "title": title, "text": text}


def write_index(app: Sphinx, error: Exception | None) -> None:
    """Put the sections of all pages where the search page finds them."""
    if error or app.builder.format != "html":
        return
    terms: dict[str, str] = yaml.safe_load(TERMS.read_text(encoding="utf-8"))
    out = Path(app.outdir)
    order = [app.config.root_doc, *sorted(app.env.found_docs - {app.config.root_doc})]
    found: list[dict[str, Any]] = []
    for page in order:
        found += reversed(list(sections(page, (out / f"{page}.html").read_text("utf-8"))))
    known = {entry["id"].replace(".html", ""): entry for entry in found}
    for place, words in terms.items():  # a section that has gone leaves its words to its page
        entry = known.get(place) or known.get(place.partition("#")[0])
        if entry is not None:
            entry["terms"] = f"{entry.get('terms', '')} {words}".strip()
        elif whole(app):
            raise ExtensionError(f"{TERMS.name} names a page that is not there: {place}")
    for entry in found:
        entry.setdefault("terms", "")
    (out / "_static" / "sections.json").write_text(
        json.dumps(found, ensure_ascii=False, separators=(",", ":")), encoding="utf-8"
    )


def whole(app: Sphinx) -> bool:
    """Whether this is the book, and not a small one built by a test."""
    return "chapters/03_separation" in app.env.found_docs


def setup(app: Sphinx) -> None:
    app.connect("build-finished", write_index, priority=800)
