"""What the book adds to Sphinx: figures, links to them, folded code, docstrings in plain text."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import imagesize
import needle_page
import needle_reading
import needle_svg
from docutils import nodes
from myst_nb.sphinx_ import HideCodeCellNode
from numpy.typing import ArrayLike
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.environment import BuildEnvironment
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.typing import stringify_annotation
from sphinx_proof.directive import DEFAULT_REALTYP_TO_COUNTERTYP, ElementDirective

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
        spoken = re.sub(r"\s+", " ", paragraph.astext())
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


class Result(ElementDirective):
    """A box for what is derived and not proved, counted along with the theorems."""

    name = "result"


def visit_folded(self: Any, node: HideCodeCellNode) -> None:
    """A folded cell: myst-nb says 'Toggle hidden content' whatever is inside; say what it is."""
    words = "The code"
    if "above-input" not in node["classes"]:
        words = "The output"
    elif len(node.children) > 1:
        words = "The code and its output"
    elif re.match(r"(?:from|import) ", node.astext()):
        words = "The imports"
    elif next(iter(node.parent.findall(nodes.figure)), None) is not None:
        words = "The code that draws this figure"
    self.body.append(f'<details class="folded"><summary>{words}</summary>\n')


def depart_folded(self: Any, node: HideCodeCellNode) -> None:
    self.body.append("</details>\n")


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
                name = re.sub(r"^0*([^_]+)_.*", r"\1", page.split("/")[-1])
                link = nodes.reference("", name, internal=True, refuri=f"{uri}#{found[page]}")
                entry[-1] += [link, nodes.Text("." if page == pages[-1] else ", ")]


def number_appendices(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Number theorems of appendix B as B.1, B.2, …: the table of contents numbers chapters only."""
    for page, kinds in env.toc_fignumbers.items():
        if match := re.fullmatch(r"chapters/([A-Z])_.*", page):
            for numbers in kinds.values():
                for count, identifier in enumerate(numbers, 1):
                    numbers[identifier] = (match[1], count)
    return []


def plain(text: str) -> str:
    """Text in which |w|, x_i and * mean themselves, and `name` is code."""
    pieces = re.split(r"(``.*?``|`[^`]*`)", text)
    pieces[::2] = [re.sub(r"([|*\\`]|_(?!\w)|_(?=_))", r"\\\1", piece) for piece in pieces[::2]]
    pieces[1::2] = [f"``{piece.strip('`')}``" for piece in pieces[1::2]]
    return "".join(pieces)


def plain_docstring(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Docstrings are written for people, in sections underlined by dashes.

    An entry "name : meaning" of a section becomes an item of a list, an example stays as it is, and
    where the indentation of a paragraph changes, the blank line that markup asks for is added.
    """
    done: list[str] = []
    section = example = False
    run = indent = 0
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        example = bool(line.strip()) and (example or line.lstrip().startswith(">>>"))
        if re.fullmatch(r"-{3,}", line):
            continue
        if re.fullmatch(r"-{3,}", following):
            done += ["", f".. rubric:: {line}", ""]
            section, run = True, 0
        elif example or not line.strip():
            done.append(line)
            run = 0
        elif section and (entry := re.match(r"(\S.*?) : (.*)", line)):
            done += ["", f"- **{plain(entry[1])}**: {plain(entry[2])}"]
            run = 0
        elif section and line.startswith(" "):
            done.append(f"  {plain(line.strip())}")
        else:
            before, indent = indent, len(line) - len(line.lstrip())
            if run and (indent < before or (indent > before and run > 1)):
                done.append("")
            run = run + 1 if run and indent == before else 1
            done.append(plain(line))
    lines[:] = done


def short_signature(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, signature: str, returns: str
) -> tuple[str, str]:
    """ArrayLike is called by its name, not by what it stands for."""
    for mode in ("smart", "fully-qualified-except-typing"):
        signature = (signature or "").replace(stringify_annotation(ArrayLike, mode), "ArrayLike")
    return signature, returns


def skip_field_aliases(
    app: Sphinx, what: str, name: str, obj: Any, skip: bool, options: Any
) -> bool | None:
    """The fields of a NamedTuple are explained in its docstring, not by their numbers."""
    return True if (getattr(obj, "__doc__", "") or "").startswith("Alias for field") else None


def set_base_url(app: Sphinx, config: Config) -> None:
    """The address of the published site follows from that of the repository."""
    match = re.search(r"github\.com/([^/]+)/([^/]+)", config.html_theme_options["repository_url"])
    if match:
        config.html_baseurl = f"https://{match[1]}.github.io/{match[2]}/"
        config.ogp_site_url = config.html_baseurl


def from_the_checkout(app: Sphinx, config: Config) -> None:
    """Sphinx was pointed to the checkout, not to the copy that `make book` stages: stage it."""
    root = Path(__file__).resolve().parents[2]
    if (root / "scripts").is_dir():
        sys.path.insert(0, str(root))
        from scripts.book import plain_build

        plain_build.send(app, config)


def static_files(app: Sphinx, config: Config) -> None:
    """Styles and scripts in the order of their names: that of a folder is the file system's."""
    folder = Path(app.srcdir) / "_static"
    config.html_static_path = ["_static"]
    for kind in ("css", "js"):
        names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob(f"*.{kind}"))
        setattr(config, f"html_{kind}_files", names)


def setup(app: Sphinx) -> dict[str, Any]:
    DEFAULT_REALTYP_TO_COUNTERTYP["result"] = "theorem"
    app.add_directive_to_domain("prf", "result", Result)
    app.add_node(HideCodeCellNode, override=True, html=(visit_folded, depart_folded))
    app.add_post_transform(Captions)
    app.add_post_transform(FigureLinks)
    app.add_post_transform(StatementLinks)
    app.add_post_transform(ReferenceLinks)
    app.connect("env-get-updated", number_appendices, priority=900)  # after Sphinx has numbered
    app.connect("autodoc-process-docstring", plain_docstring)
    app.connect("autodoc-process-signature", short_signature)
    app.connect("autodoc-skip-member", skip_field_aliases)
    app.connect("config-inited", from_the_checkout, priority=1)
    app.connect("config-inited", static_files, priority=2)
    app.connect("config-inited", set_base_url, priority=900)
    needle_page.setup(app)
    needle_reading.setup(app)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
