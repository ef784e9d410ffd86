"""Figures: an output and the paragraph after it made one, and links to it wherever it is named."""

from __future__ import annotations

import re
from typing import Any

import imagesize
import needle_svg
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

NAME = re.compile(r"Figure (\w+)\.(\d+)")
MESSAGE = 120  # letters of the first sentence of a caption, at most, if it is to be set in bold
NUMBER = r"([A-Z]|\d+)\.(\d+)"
MENTION = re.compile(rf"Figures? {NUMBER}(?:(?:, | and |, and | or | to |–){NUMBER})*(?!\d)")


class Captions(SphinxPostTransform):
    """Turn '**Figure 3.2.** …' after a cell with a figure into the figcaption and alt text."""

    default_priority = 20  # after myst-nb has chosen among the media types of an output

    def run(self, **kwargs: Any) -> None:
        for paragraph in list(self.document.findall(nodes.paragraph)):
            label = next((child for child in paragraph.children if child.astext()), None)
            if not isinstance(label, nodes.strong):
                continue
            match = NAME.fullmatch(label.astext().rstrip("."))
            if match and (outputs := self.outputs_before(paragraph)):
                self.wrap(outputs, paragraph, "figure-{}-{}".format(*match.groups()).lower())

    @staticmethod
    def outputs_before(paragraph: nodes.paragraph) -> list[nodes.Node]:
        """The images of the cell just before a paragraph, or its widget."""
        index = paragraph.parent.index(paragraph)
        cell = paragraph.parent.children[index - 1] if index else None
        while isinstance(cell, nodes.comment | nodes.target) and index > 1:
            index -= 1
            cell = paragraph.parent.children[index - 1]
        if not isinstance(cell, nodes.container):
            return []
        images = [n for n in cell.findall() if isinstance(n, nodes.image)]
        return images or [n for n in cell.findall(nodes.raw) if "widget-view" in n.astext()][-1:]

    def wrap(self, outputs: list[nodes.Node], paragraph: nodes.paragraph, identifier: str) -> None:
        """Make a figure of one or more plates; several stand side by side where there is room."""
        caption = nodes.caption("", "", *emphasized(paragraph.children))
        figure = nodes.figure("", ids=[identifier], classes=["book-figure"])
        for output in outputs[:-1]:
            output.parent.remove(output)
        outputs[-1].parent.replace(outputs[-1], figure)
        # read aloud: the first sentence; the whole caption follows anyway
        spoken = " ".join(paragraph.astext().split())
        text = re.match(r"(Figure \S+ .*?[.?!])(?=\s|$)|.*", spoken)[0]  # type: ignore[index]
        several = len(outputs) > 1
        figure += nodes.raw("", '<div class="plates">', format="html") if several else []
        for number, output in enumerate(outputs, 1):
            plate = '<div class="plate">'
            said = f"{text} (plate {number} of {len(outputs)})" if several else text
            if isinstance(output, nodes.image) and output["uri"].endswith(".svg"):
                drawing = (self.app.srcdir / output["uri"]).read_text(encoding="utf-8")
                key = f"{identifier.replace('figure-', 'f')}-{number}"
                output = nodes.raw("", needle_svg.inline(drawing, key, said), format="html")
            elif isinstance(output, nodes.image):
                output["alt"] = said
                width, _ = imagesize.get(self.app.srcdir / output["uri"])
                plate = f'<div class="plate" style="--pixels: {width}px">'
            figure += [nodes.raw("", plate, format="html"), output]
            figure += nodes.raw("", "</div>", format="html")
        figure += nodes.raw("", "</div>", format="html") if several else []
        figure += caption
        paragraph.parent.remove(paragraph)


def emphasized(children: list[nodes.Node]) -> list[nodes.Node]:
    """A caption whose first sentence, if it is short, is set as what there is to see."""
    label, *rest = (node for node in children if node.astext())
    if not rest or isinstance(rest[0], nodes.strong):
        return children
    sentence: list[nodes.Node] = []
    for place, node in enumerate(rest):
        end = re.search(r"[.?!](?=\s|$)", node) if isinstance(node, nodes.Text) else None
        if end and end.end() <= MESSAGE and sum(len(n.astext()) for n in sentence) <= MESSAGE:
            first, others = nodes.Text(node[: end.end()].lstrip()), nodes.Text(node[end.end() :])
            message = nodes.strong("", "", *sentence, first, classes=["message"])
            return [label, nodes.Text(" "), message, others, *rest[place + 1 :]]
        if end:
            break
        sentence.append(nodes.Text(node.lstrip()) if not sentence else node)  # type: ignore[attr-defined]
    return children


class FigureLinks(SphinxPostTransform):
    """Link 'Figure 3.2' and 'Figures 3.2 and 3.4' to the figures, in whatever chapter they are."""

    default_priority = 30
    quiet = nodes.caption | nodes.reference | nodes.literal | nodes.literal_block | nodes.raw
    quiet |= nodes.title | nodes.math | nodes.math_block

    def run(self, **kwargs: Any) -> None:
        pages = {
            name.split("/")[1].split("_")[0].lstrip("0"): name
            for name in self.env.found_docs
            if name.startswith("chapters/")
        }
        for text in list(self.document.findall(nodes.Text)):
            ancestor: Any = text.parent
            while ancestor is not None and not isinstance(ancestor, self.quiet):
                ancestor = ancestor.parent
            if ancestor is None and text.parent is not None and MENTION.search(text):
                text.parent.replace(text, self.linked(str(text), pages))

    def linked(self, text: str, pages: dict[str, str]) -> list[nodes.Node]:
        parts: list[nodes.Node] = []
        end = 0
        for mention in MENTION.finditer(text):
            for match in re.finditer(rf"(?:Figure )?{NUMBER}", mention[0]):
                if match[1] not in pages:
                    continue
                page, start = pages[match[1]], mention.start() + match.start()
                uri = f"#figure-{match[1]}-{match[2]}".lower()
                if page != self.env.docname:
                    uri = self.app.builder.get_relative_uri(self.env.docname, page) + uri
                parts.append(nodes.Text(text[end:start]))
                parts.append(nodes.reference("", match[0], internal=True, refuri=uri))
                end = mention.start() + match.end()
        return [*parts, nodes.Text(text[end:])]


def setup(app: Sphinx) -> None:
    app.add_post_transform(Captions)
    app.add_post_transform(FigureLinks)
