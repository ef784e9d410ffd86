"""Agreements on a page: what a cell has shown of one, told in a sentence, a mark and its card."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from docutils import nodes
from sphinx.application import Sphinx

LARGEST = re.compile(r"\|z\| ([\d.]+|inf|∞) [≤>] ([\d.]+) in (\d+) rows?")
TRIALS = re.compile(r"over (\d+) trials( or more at each of \d+ sizes)?")


class mark(nodes.Inline, nodes.Element):
    """The button of one or more agreements; without text, so that nothing else reads it."""


class Verdict(NamedTuple):
    """An agreement as its cell shows it, told in a sentence."""

    claim: str
    sentence: str
    table: str
    rows: int
    largest: float | None  # |z|; None where numbers were held to equality
    holds: bool


def verdicts(cell: nodes.Element) -> Iterator[Verdict]:
    """The agreements in the outputs of a cell."""
    for raw in cell.findall(nodes.raw):
        for found in raw.astext().split("<details ")[1:]:
            if 'class="agreement"' not in found.partition(">")[0]:
                continue
            summary, _, inside = found.partition("</details>")[0].partition("</summary>")
            claim, _, said = summary.partition("<summary>")[2].rpartition("</code>")
            claim, said = claim.partition("<code>")[2], said.lstrip()
            size, holds = LARGEST.search(said), not re.search("DISAGREES|NOT EQUAL", said)
            rows = int(size[3]) if size else inside.count("<tr>") - 1
            largest = float(size[1].replace("∞", "inf")) if size else None
            yield Verdict(claim or "", sentence(said), inside, rows, largest, holds)


def sentence(said: str) -> str:
    """A verdict in a sentence.

    >>> sentence("agrees: max |z| 0.7 ≤ 4.1 in 3 rows; false alarm: 1 in 10,000")
    '3 numbers: off by at most 0.7 standard errors; 4.1 are allowed (false alarm: 1 in 10,000)'
    """
    size, trials = LARGEST.search(said), TRIALS.search(said)
    if not size:
        return "Computed twice, and equal" if "NOT" not in said else "Computed twice, NOT equal"
    numbers = f"{size[3]} number{'s' * (size[3] != '1')}"
    draws = f", {trials[1]} draws each{trials[2] or ''}" if trials else ""
    alarm = said.partition("false alarm: ")[2]
    risk = f" (false alarm: {alarm})" if alarm else ""
    found = f"off by at most {size[1]} standard errors; {size[2]} are allowed"
    return f"{numbers}{draws}: {found}{risk}"


def card(found: list[Verdict], key: str) -> str:
    """What a mark opens: for each agreement its sentence, its table and the name of its claim."""
    held = all(verdict.holds for verdict in found)
    title = "Theory and simulation agree" if held else "Theory and simulation disagree"
    parts = "".join(
        f"<section><p>{verdict.sentence}.</p>"
        f'<div class="scroll" tabindex="0">{verdict.table}</div>'
        f'<p class="claim"><code>{verdict.claim}</code></p></section>'
        for verdict in found
    )
    return f'<div popover id="{key}" class="card-of-check"><p class="told">{title}</p>{parts}</div>'


def words(found: list[Verdict]) -> str:
    """What a mark says: how many numbers, and the largest |z| of them."""
    rows = sum(verdict.rows for verdict in found)
    sizes = [verdict.largest for verdict in found if verdict.largest is not None]
    told = f"z ≤ {max(sizes):.1f}" if sizes else "equal"
    return f"{rows} row{'s' * (rows > 1)}, {told}"


def visit_mark(self: Any, node: mark) -> None:
    sign, told = ("✓", "agree") if node["holds"] else ("✗", "disagree")
    label = f"Theory and simulation {told}: {node['words']}. Show the numbers"
    self.body.append(
        f' <button type="button" class="check" popovertarget="{node["key"]}" aria-label="{label}">'
        f'<span class="tick">{sign}</span> {html.escape(node["words"])}'
    )


def depart_mark(self: Any, node: mark) -> None:
    self.body.append("</button>")


def setup(app: Sphinx) -> None:
    app.add_node(mark, html=(visit_mark, depart_mark))
