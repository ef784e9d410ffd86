"""The reading path of a chapter, under its title: what it needs, how long it takes, what can wait.

`paths.yml` names the places; the time is counted here, from what stands in the text before the
exercises: 120 words a minute, a minute a figure or explorer, half a minute a displayed formula,
to the next five minutes. What is folded takes no time, and what may be skipped is taken off.
"""

from __future__ import annotations

import html
import math
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from docutils import nodes
from needle_glossary import chapter_name, section_link
from needle_reading import LAST, SWITCH, fold, lifted
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

PATHS = Path(__file__).with_name("paths.yml")
WORDS_A_MINUTE, A_FIGURE, A_FORMULA, STEP = 120, 1.0, 0.5, 5
FOLDED = ("dropdown", "toggle")


class Stop(NamedTuple):
    """What a chapter needs from before, and what a first reading may skip."""

    needs: list[str]
    skip: list[str]


@cache
def paths() -> dict[str, Stop]:
    """The reading path of each page."""
    entries = yaml.safe_load(PATHS.read_text(encoding="utf-8"))
    return {page: Stop(entry["needs"], entry["skip"]) for page, entry in entries.items()}


def minutes(words: int, figures: int, formulas: int) -> float:
    """How long a text takes.

    >>> minutes(1200, 3, 2)
    14.0
    """
    return words / WORDS_A_MINUTE + A_FIGURE * figures + A_FORMULA * formulas


def rounded(time: float) -> int:
    """To the next five minutes, at least five.

    >>> rounded(0.5), rounded(20), rounded(21.1)
    (5, 20, 25)
    """
    return max(STEP, STEP * math.ceil(time / STEP - 1e-9))


def is_folded(node: nodes.Node) -> bool:
    """Whether a reader has to open it first."""
    if isinstance(node, fold):
        return True
    return isinstance(node, nodes.Element) and any(
        name.startswith(FOLDED) for name in node.get("classes", ())
    )


def time_of(section: nodes.Element, without: frozenset[str] = frozenset()) -> float:
    """Minutes for a section and those inside it, up to the exercises, in reading mode."""
    count = [0, 0, 0]

    def walk(node: nodes.Node) -> bool:
        if isinstance(node, nodes.section) and (LAST in node["ids"]):
            return False
        if isinstance(node, nodes.section) and without.intersection(node["ids"]):
            return True
        if is_folded(node) or isinstance(node, nodes.raw | nodes.comment | nodes.title):
            return True
        if isinstance(node, lifted):
            count[1] += 1
            count[0] += sum(len(n.astext().split()) for n in node.findall(nodes.caption))
        elif isinstance(node, nodes.math_block):
            count[2] += 1
        elif isinstance(node, nodes.math):
            count[0] += 1
        elif isinstance(node, nodes.Text):
            count[0] += len(node.split())
        else:
            return all(walk(child) for child in node.children)
        return True

    walk(section)
    return minutes(*count)


class ReadingPath(SphinxPostTransform):
    """Put the path of a page under its title."""

    default_priority = 28  # after the reading mode has sorted the page

    def run(self, **kwargs: Any) -> None:
        path = paths().get(self.env.docname)
        if self.app.builder.format != "html" or path is None:
            return
        top = next(iter(self.document.findall(nodes.section)))
        place = top.index(top.next_node(nodes.title)) + 1
        after = top[place]
        place += isinstance(after, nodes.raw) and after.astext() == SWITCH
        top.insert(place, nodes.raw("", self.told(top, path), format="html"))

    def told(self, top: nodes.Element, path: Stop) -> str:
        """The path in HTML; a section that has gone is left out, and a test names it."""
        names = {
            identifier: section[0].astext()
            for section in top.findall(nodes.section)
            if isinstance(section[0], nodes.title)
            for identifier in section["ids"]
        }
        skipped = [name for name in path.skip if name in names]
        whole = rounded(time_of(top))
        short = rounded(time_of(top, frozenset(skipped)))
        parts = [f"<b>{whole} minutes</b>"]
        if short < whole:
            parts[0] += f", {short} at first reading"
        if needs := [self.link(place) for place in path.needs if self.known(place)]:
            parts.append(f"needs {' and '.join(needs)}")
        if skipped:
            links = [f'<a href="#{name}">{html.escape(names[name])}</a>' for name in skipped]
            parts.append(f"can wait: {', '.join(links)}")
        lines = "".join(f"<li>{part}</li>" for part in parts)
        return f'<nav class="reading-path" aria-label="Reading path"><ul>{lines}</ul></nav>'

    def known(self, place: str) -> bool:
        return place.partition("#")[0] in self.env.found_docs

    def link(self, place: str) -> str:
        uri, title = section_link(self.env, self.app.builder, self.env.docname, place)
        of = f'<span class="of">: {html.escape(title)}</span>' if "#" in place else ""
        return f'<a href="{uri}">{chapter_name(place.partition("#")[0])}{of}</a>'


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_post_transform(ReadingPath)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
