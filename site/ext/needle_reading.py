"""The reading mode: on a page the text runs on; code and checks wait in folds, one a figure.

Notebooks stay plain, and Jupyter shows them as they are. Before the exercises of a page this
transform of the document tree

- lifts a figure, an explorer, or an output that is meant for readers (its HTML begins with an
  element of class `shown`) out of its cell, and leaves in a fold below it all cells since the last;
- lets the cells that follow join that fold; a section without figures has one fold, at its end;
- puts an agreement into the text as a mark, at the end of the paragraph before it, with a card
  that opens by `popover`, without script; the table stays with its cell too;
- puts a paragraph that begins **How it was made.** into the fold of its figure, and those that
  begin **How this was checked.** into one at the end of their section;
- sets what is said of a statement, its status and where it is checked, beside or below it.

`<html data-read="reading|code">` says which of two modes is chosen; `_static/reading.js` sets it.
"""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import needle_verdicts
from docutils import nodes
from needle_verdicts import Verdict, card, mark, verdicts, words
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

MADE, CHECKED = "How it was made.", "How this was checked."
OF_BOX = ("Status:", "Where it is checked:")
LAST = "exercises"  # where a reader turns from reading to doing: all stays as it is
IMPORTS = ("from ", "import ")
SWITCH = """
<div class="above-text d-print-none">
<div class="reading-switch" role="group" aria-label="What this page shows">
<button type="button" data-mode="reading" aria-pressed="true">Reading</button>
<button type="button" data-mode="code" aria-pressed="false" aria-keyshortcuts="c">With code</button>
</div><!-- live --></div>
"""


class fold(nodes.General, nodes.Element):
    """A `<details>` with cells and what belongs to them."""


class lifted(nodes.General, nodes.Element):
    """What stands in the text although a cell has made it; `cell` is the id of the cell."""


class statement(nodes.General, nodes.Element):
    """A box with, beside or below it, who vouches for it and where it is checked."""


def is_cell(node: nodes.Node) -> bool:
    return isinstance(node, nodes.container) and "cell" in node["classes"]


def begins(node: nodes.Node, lead: str) -> bool:
    """Whether a paragraph begins with these words in bold."""
    if not isinstance(node, nodes.paragraph):
        return False
    first = next((child for child in node.children if child.astext()), None)  # Text("") comes first
    return isinstance(first, nodes.strong) and first.astext() == lead


class Shown(HTMLParser):
    """Whether HTML begins with an explorer, or with an element of the class `shown`."""

    found: bool | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: (value or "").split() for name, value in attrs}
        if self.found is None:
            marked = "shown" in given.get("class", []) or "data-explorer" in given
            self.found = tag in ("div", "figure") and marked


def is_shown(node: nodes.Node) -> bool:
    """A figure, or HTML for readers that no figure holds."""
    if isinstance(node, nodes.figure):
        return True
    if not isinstance(node, nodes.raw) or isinstance(node.parent, nodes.figure):
        return False
    text, reader = node.astext().lstrip(), Shown()
    reader.feed(text[: text.find(">") + 1] if text.startswith("<") else "")
    return bool(reader.found)


def taken(node: nodes.Node) -> Any:
    """A node, out of where it stood."""
    node.parent.remove(node)
    return node


def lift(thing: nodes.Node, cell: nodes.Element) -> lifted:
    """Something out of the output of a cell, and the boxes around it that it leaves empty."""
    around: Any = thing.parent
    around.remove(thing)
    while around is not cell and not around.children:
        box, around = around, around.parent
        around.remove(box)
    return lifted("", thing, cell=cell["ids"][-1])


def only_prepares(cell: nodes.Element) -> bool:
    """Whether a cell imports and shows nothing: it may wait for the next fold of the page."""
    return len(cell.children) == 1 and cell.astext().startswith(IMPORTS)


class Reading(SphinxPostTransform):
    """Sort the cells of a page into folds."""

    default_priority = 25  # after captions are found, before mentions of figures become links

    def run(self, **kwargs: Any) -> None:
        cells = list(filter(is_cell, self.document.findall()))
        if self.app.builder.format != "html" or not cells:
            return
        for number, cell in enumerate(cells, 1):
            cell["ids"] = [*cell["ids"], f"cell-{number}"]  # type: ignore[index]
        self.waiting: list[nodes.Element] = []  # cells that no fold has taken yet
        self.fold: fold | None = None  # the one that cells may join
        self.text: nodes.Element | None = None  # where the mark of an agreement goes
        self.notes: list[nodes.Element] = []  # how things were checked, for the end of the section
        self.marks: list[tuple[mark, list[Verdict]]] = []
        top = next(iter(self.document.findall(nodes.section)))
        self.walk(top)
        self.close(top)
        for button, found in self.marks:
            button["key"] = re.sub(r"\W+", "-", f"check-{found[0].claim}")
            button["words"], button["holds"] = words(found), all(v.holds for v in found)
            top += nodes.raw("", card(found, button["key"]), format="html")
        title = top.next_node(nodes.title)
        top.insert(top.index(title) + 1, nodes.raw("", SWITCH, format="html"))

    def walk(self, section: nodes.Element) -> bool:
        """Sort what stands in a section; False where the exercises begin."""
        for child in list(section.children):
            if isinstance(child, nodes.section):
                if LAST in child["ids"]:
                    return False
                self.fold = self.text = None
                going = self.walk(child)
                if section.parent is self.document:
                    self.close(child)
                if not going:
                    return False
            elif is_cell(child):
                self.cell(child)  # type: ignore[arg-type]
            elif begins(child, MADE) and self.fold is not None:
                self.fold.insert(0, taken(child))
            elif begins(child, CHECKED):
                self.notes.append(taken(child))
            elif isinstance(child, nodes.Element) and "proof" in child["classes"]:
                self.state(child)
            elif not isinstance(child, nodes.comment | nodes.target | nodes.title | nodes.raw):
                self.prose(child)
        return True

    def prose(self, node: nodes.Node) -> None:
        """Text ends what a fold may take, and its last paragraph bears the next mark."""
        self.fold = None
        inside = list(node.findall(nodes.paragraph))
        if isinstance(node, nodes.paragraph | nodes.bullet_list | nodes.enumerated_list) and inside:
            self.text = inside[-1]
        if isinstance(node, nodes.paragraph):
            self.tell(node)

    def state(self, box: nodes.Element) -> None:
        """A box begins: what is said of it will stand in a note of its own."""
        self.fold = None
        whole = statement()
        box.parent.replace(box, whole)
        whole += box

    def tell(self, paragraph: nodes.paragraph) -> None:
        """A paragraph, or its end, that tells of the statement before it goes beside the box."""
        before = paragraph.parent.children[: paragraph.parent.index(paragraph)]
        boxes = [node for node in before if isinstance(node, statement)]
        leads = [k for k, n in enumerate(paragraph.children) if isinstance(n, nodes.strong)]
        at = next((k for k in leads if paragraph[k].astext().startswith(OF_BOX)), None)
        if not boxes or at is None:
            return
        note = nodes.paragraph("", "", *paragraph.children[at:])
        del paragraph[at:]
        if len(boxes[-1].children) == 1:
            boxes[-1] += nodes.container(classes=["of-statement"])
        boxes[-1][1] += note
        said, told = (len(part.astext().split()) for part in boxes[-1].children)
        formulas = sum(1 for _ in boxes[-1][0].findall(nodes.math_block))  # each a height
        if told > 28 + said / 2 + 12 * formulas and "below" not in boxes[-1][1]["classes"]:
            boxes[-1][1]["classes"].append("below")  # a margin longer than the text leaves a gap
        self.text = note
        if not paragraph.astext():
            paragraph.parent.remove(paragraph)

    def cell(self, cell: nodes.Element) -> None:
        """A cell waits for the next figure, joins the fold before it, or has what makes a fold."""
        cell["hide_mode"] = ""  # one fold, not one within another
        parent, place, found = cell.parent, cell.parent.index(cell), list(verdicts(cell))
        things = [node for node in cell.findall() if is_shown(node)]
        for thing in things:
            parent.insert(place, lift(thing, cell))
            place += 1
        self.waiting.append(taken(cell))
        if things:
            self.fold = fold()
            parent.insert(place, self.fold)
            captions = list(things[-1].findall(nodes.caption))
            self.text = captions[0] if captions else self.text
        if self.fold is not None:
            self.fold.extend(self.waiting)
            self.waiting = []
        if found and self.text is not None:
            self.mark(self.text, found)

    def mark(self, text: nodes.Element, found: list[Verdict]) -> None:
        """A mark at the end of the text before an agreement; one mark a place."""
        for button, known in self.marks:
            if button.parent is text:
                known.extend(found)
                return
        button = mark()
        text += button
        self.marks.append((button, found))

    def close(self, section: nodes.Element) -> None:
        """At the end of a section: what was checked, and the cells that no figure has taken."""
        self.fold = self.text = None
        left = [] if all(map(only_prepares, self.waiting)) else self.waiting
        if not left and not self.notes:
            return
        folds = list(section.findall(fold))
        if folds and not self.notes:
            last = folds[-1]
        else:
            last = fold(checked=bool(self.notes))
            inner = [k for k, n in enumerate(section.children) if isinstance(n, nodes.section)]
            own = section.parent is self.document or not inner
            section.insert(len(section.children) if own else inner[0], last)
        last.extend([*self.notes, *left])
        self.notes, self.waiting = [], [] if left else self.waiting


def visit_fold(self: Any, node: fold) -> None:
    """The line that opens it says how many agreements are inside."""
    checks = sum(len(list(verdicts(cell))) for cell in node.children if is_cell(cell))
    told = "How this was checked" if node.get("checked") else "Code"
    count = f' <span class="checks">{checks} check{"s" * (checks > 1)}</span>' if checks else ""
    summary = f'<summary><span class="what">{told}</span>{count}</summary>'
    self.body.append(f'<details class="code">{summary}\n')


def depart_fold(self: Any, node: fold) -> None:
    self.body.append("</details>\n")


def visit_lifted(self: Any, node: lifted) -> None:
    self.body.append(f'<div class="lifted" data-cell="{node["cell"]}">\n')


def depart_block(self: Any, node: nodes.Element) -> None:
    self.body.append("</div>\n")


def visit_statement(self: Any, node: statement) -> None:
    self.body.append('<div class="statement">\n')


def setup(app: Sphinx) -> None:
    app.add_post_transform(Reading)
    app.add_node(fold, html=(visit_fold, depart_fold))
    app.add_node(lifted, html=(visit_lifted, depart_block))
    app.add_node(statement, html=(visit_statement, depart_block))
    needle_verdicts.setup(app)
