"""Links on two pages of reference: statements to their boxes, works to those who cite them."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform


class StatementLinks(SphinxPostTransform):
    """On the page of statements the title of a box links to where its number does."""

    default_priority = 40  # after references are resolved

    def run(self, **kwargs: Any) -> None:
        for row in self.document.findall(nodes.row) if self.env.docname == "statements" else ():
            number, title, *_ = row.children
            link = next(iter(number.findall(nodes.reference)), None)
            if link is not None:
                [text] = title.children
                words = text.children
                text.clear()
                text += nodes.reference("", "", *words, internal=True, refuri=link["refuri"])


class ReferenceLinks(SphinxPostTransform):
    """On the page of references a preprint links to where it is, and each entry to who cites it."""

    default_priority = 40
    preprint = re.compile(r"arXiv:(\d{4}\.\d{4,5})")

    def run(self, **kwargs: Any) -> None:
        entries = list(self.document.findall(nodes.citation))
        for text in [text for entry in entries for text in entry.findall(nodes.Text)]:
            match = self.preprint.search(text)
            if match and not isinstance(text.parent, nodes.reference):
                uri = f"https://arxiv.org/abs/{match[1]}"
                link = nodes.reference("", match[0], internal=False, refuri=uri)
                before, after = text[: match.start()], text[match.end() :]
                text.parent.replace(text, [nodes.Text(before), link, nodes.Text(after)])
        domain: Any = self.env.get_domain("cite")
        keys = {citation.citation_id: citation.key for citation in domain.citations}
        root = self.config.root_doc
        order = [root, *self.env.toctree_includes.get(root, [])]
        for entry in entries:
            key = next((keys[name] for name in entry["ids"] if name in keys), None)
            found: dict[str, str] = {}  # the first place on each page
            for use in domain.citation_refs:
                if any(target.key == key for target in use.targets):
                    found.setdefault(use.docname, use.citation_ref_id)
            pages = sorted(found, key=order.index)
            if pages:
                entry[-1] += nodes.Text(" Cited in ")
            for page in pages:
                uri = self.app.builder.get_relative_uri(self.env.docname, page)
                name = page.split("/")[-1].partition("_")[0].lstrip("0")
                link = nodes.reference("", name, internal=True, refuri=f"{uri}#{found[page]}")
                entry[-1] += [link, nodes.Text("." if page == pages[-1] else ", ")]


def setup(app: Sphinx) -> None:
    app.add_post_transform(StatementLinks)
    app.add_post_transform(ReferenceLinks)
