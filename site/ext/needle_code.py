"""Names in code lead to their documentation: those that a page imports from `needle` and `utils`.

In the cells of a chapter a name that was imported is a link wherever it is used by itself, and so
is the name of its module; in the text a name set as code is a link if it is one of these, or
written out with its module.
"""

from __future__ import annotations

import ast
import html
from typing import Any

from docutils import nodes
from needle_html import Editor
from sphinx.application import Sphinx

PACKAGES = ("needle", "utils")
CELL = ('<div class="highlight-python', '<div class="highlight-ipython')
INLINE = '<code class="docutils literal notranslate"><span class="pre">'


def imported(code: str) -> dict[str, str]:
    """What a cell calls the things that it imports from the packages.

    >>> imported("from needle.plans import plan as p")
    {'p': 'needle.plans.plan', 'needle.plans': 'needle.plans'}
    """
    try:
        tree = ast.parse(code)
    except SyntaxError:  # a magic of IPython, a piece of a program
        return {}
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in PACKAGES:
            module = str(node.module)
            found |= {alias.asname or alias.name: f"{module}.{alias.name}" for alias in node.names}
            found[module] = module
    return found


class Names(Editor):
    """A page whose names become links to their addresses."""

    def __init__(self, body: str, names: dict[str, str], addresses: dict[str, str]) -> None:
        super().__init__(body)
        self.names, self.addresses = names, addresses
        self.in_link = self.in_cell = False

    def link(self, start: int, end: int, full: str | None) -> None:
        if address := self.addresses.get(full or ""):
            opening = f'<a class="code-link" href="{html.escape(address)}">'
            self.replace(start, end, f"{opening}{self.text[start:end]}</a>")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        text, here = self.text, self.here
        if tag == "div":
            self.in_cell = self.in_cell or text.startswith(CELL, here)
        elif tag == "a":  # a link within a link is none
            self.in_link = True
        elif self.in_cell and self.tag in ('<span class="n">', '<span class="nn">'):
            self.use()
        elif text.startswith(INLINE, here) and not self.in_link:
            start = here + len(INLINE)
            end = text.index("<", start)
            name = text[start:end].removesuffix("()")
            if text.startswith("</span></code>", end):
                full = self.names.get(name, name if "." in name else "")
                self.link(here, end + len("</span></code>"), full)

    def use(self) -> None:
        """A name in a cell: neither an attribute nor the name of an argument."""
        end = self.text.index("</span>", self.here) + len("</span>")
        attribute = self.text.endswith('<span class="o">.</span>', 0, self.here)
        if not attribute and not self.text.startswith('<span class="o">=</span>', end):
            self.link(self.here, end, self.names.get(self.text[self.behind : end - len("</span>")]))

    def handle_endtag(self, tag: str) -> None:
        self.in_link = self.in_link and tag != "a"
        self.in_cell = self.in_cell and tag != "pre"


def linked(body: str, names: dict[str, str], addresses: dict[str, str]) -> str:
    """A page whose names are links to their addresses."""
    return Names(body, names, addresses).edited()


def link_names(
    app: Sphinx, name: str, template: str, context: dict[str, Any], document: nodes.document | None
) -> None:
    """Pass the body of a page through `linked`; pages of functions link by themselves."""
    if document is None or name.startswith("api") or app.builder.format != "html":
        return
    names: dict[str, str] = {}
    for block in document.findall(nodes.literal_block):
        names |= imported(block.astext())
    addresses = {}
    for full, entry in app.env.domaindata["py"]["objects"].items():
        page = app.builder.get_relative_uri(name, entry.docname)
        addresses[full] = f"{page}#{entry.node_id}"
        if entry.objtype != "module" and full.startswith(PACKAGES):  # as tables of contents list it
            *parts, last = full.split(".")
            for k in range(1, len(parts)):
                addresses.setdefault(".".join([*parts[:k], last]), addresses[full])
    context["body"] = linked(context["body"], names, addresses)


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("html-page-context", link_names, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
