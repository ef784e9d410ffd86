"""Pages of the book as a whole: what they say of themselves, its first page and the lost one."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

import needle_rewriting
import needle_search
from docutils import nodes
from needle_html import Editor
from needle_policy import protected
from needle_tex import in_words
from PIL import Image
from sphinx.application import Sphinx

DESCRIPTION = 200  # characters, of the description of a page
COLORS = Image.Quantize.MAXCOVERAGE  # of a figure; median cut mixes those that few pixels have


def description(document: nodes.document) -> str:
    """The first sentences of a page that can be said without TeX."""
    told = ""
    for paragraph in document.findall(nodes.paragraph):
        if isinstance(paragraph.parent, nodes.section):
            copy = paragraph.deepcopy()
            for formula in list(copy.findall(nodes.math)):
                text = in_words(formula.astext()) or "\ue000"
                formula.parent.replace(formula, nodes.Text(text))
            for sentence in re.split(r"(?<=[.?!])\s+", " ".join(copy.astext().split())):
                sound = "\ue000" not in sentence and re.search(r"[.?!]$", sentence)
                if told and (not sound or len(told) + len(sentence) > DESCRIPTION):
                    return told
                if sound:
                    told = f"{told} {sentence}".strip()
    return told


class Described(Editor):
    """The tags of a page's head with another description."""

    def __init__(self, tags: str, told: str) -> None:
        super().__init__(tags)
        self.told = told

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        kind, value = attrs[0]
        if tag == "meta" and value in ("description", "og:description"):
            new = f'<meta {kind}="{value}" content="{self.told}" />'
            self.replace(self.here, self.behind, new)


def describe(
    app: Sphinx, name: str, template: str, context: dict[str, Any], document: nodes.document | None
) -> None:
    """Replace the descriptions that opengraph makes, in which formulas are raw TeX."""
    if document is None:
        return
    told = html.escape(description(document) or app.config.html_title)
    context["metatags"] = Described(context["metatags"], told).edited()


def landing(app: Sphinx) -> None:
    """The root of the site sends to the first page, and says for whom it is."""
    root = app.config.root_doc
    page = (Path(app.outdir) / f"{root}.html").read_text(encoding="utf-8")
    title = f"<title>{html.escape(app.config.html_title)}</title>"
    tags = re.findall(r'<meta (?:property="og:|name="(?:description|twitter))[^>]*>', page)
    tags += re.findall(r'<link rel="(?:canonical|icon)"[^>]*>', page)
    head = [
        '<meta charset="utf-8"/>',
        title,
        *tags,
        f'<meta http-equiv="refresh" content="0; url={root}.html"/>',
    ]
    body = f'<p><a href="{root}.html">{html.escape(app.config.html_title)}</a></p>'
    text = '<!DOCTYPE html>\n<html lang="en"><head>\n{}\n</head><body>{}</body></html>\n'
    page = protected(text.format("\n".join(head), body))
    (Path(app.outdir) / "index.html").write_text(page, encoding="utf-8")


LOST = """<!DOCTYPE html>
<html lang="en"><head>
<meta charset="utf-8"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<title>No such page · {title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ max-width: 30rem; margin: 20vh auto; padding: 0 1rem; font: 1.1rem/1.5 sans-serif; }}
</style>
</head><body>
<h1>There is no such page</h1>
<p>The address may be old. Begin at <a href="{base}{root}.html">{title}</a>,
or <a href="{base}search.html">search the book</a>.</p>
</body></html>
"""


def lost(app: Sphinx) -> None:
    """The page for an address that leads nowhere; served at any depth, so it stands alone."""
    fields = {"title": app.config.html_title, "base": app.config.html_baseurl}
    page = protected(LOST.format(**fields, root=app.config.root_doc))
    (Path(app.outdir) / "404.html").write_text(page, encoding="utf-8")


def complete(app: Sphinx, error: Exception | None) -> None:
    """Write the pages beside the book, and give figures a palette: a third of the size."""
    if error or app.builder.format != "html":
        return
    if needle_search.whole(app):
        needle_rewriting.nothing_in_vain()
    landing(app)
    lost(app)
    for path in (Path(app.outdir) / "_images").glob("*.png"):
        with Image.open(path) as image:
            if image.mode != "P":
                few = image.convert("RGB").quantize(256, COLORS, dither=Image.Dither.NONE)
                few.save(path, compress_level=8)


def setup(app: Sphinx) -> None:
    needle_rewriting.setup(app)
    app.connect("html-page-context", describe, priority=900)  # after opengraph
    needle_search.setup(app)
    app.connect("build-finished", complete, priority=400)  # before a bare index.html is written
