"""Names in code lead to their documentation: those that a page imports from `needle` and `utils`.

In the cells of a chapter a name that was imported is a link wherever it is used by itself, and so
is the name of its module; in the text a name set as code is a link if it is one of these, or
written out with its module.
"""

from __future__ import annotations

import ast
import html
import re
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

PACKAGES = ("needle", "utils")
CELL = re.compile(
    r'(<div class="highlight-i?python3?[^>]*><div class="highlight"><pre>)(.*?)(</pre>)', re.S
)
USED = re.compile(
    r'(<span class="o">\.</span>)?<span class="(n|nn|nf)">([\w.]+)</span>'
    r'(<span class="o">=</span>)?'
)
INLINE = re.compile(
    r'<code class="docutils literal notranslate"><span class="pre">([\w.]+)(\(\))?</span></code>'
)
INSIDE_LINK = re.compile(r"<a\b[^>]*>.*?</a>", re.S)


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


def linked(body: str, names: dict[str, str], addresses: dict[str, str]) -> str:
    """A page whose names are links to their addresses."""

    def link(inside: str, address: str) -> str:
        return f'<a class="code-link" href="{html.escape(address)}">{inside}</a>'

    def use(match: re.Match[str]) -> str:
        attribute, kind, name, keyword = match.groups()
        address = addresses.get(names.get(name, ""))
        if attribute or keyword or kind == "nf" or not address:
            return match[0]
        return link(f'<span class="{kind}">{name}</span>', address)

    def mention(match: re.Match[str]) -> str:
        name = match[1]
        address = addresses.get(names.get(name, name if "." in name else ""))
        return link(match[0], address) if address else match[0]

    def text(part: str) -> str:
        done, end = [], 0
        for old in INSIDE_LINK.finditer(part):  # a link within a link is none
            done += [INLINE.sub(mention, part[end : old.start()]), old[0]]
            end = old.end()
        return "".join([*done, INLINE.sub(mention, part[end:])])

    done, end = [], 0
    for cell in CELL.finditer(body):
        done += [text(body[end : cell.start()]), cell[1], USED.sub(use, cell[2]), cell[3]]
        end = cell.end()
    return "".join([*done, text(body[end:])])


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
