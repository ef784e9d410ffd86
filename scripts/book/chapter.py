"""A chapter as the checks read it: its cells, its boxes with their status, what its code left."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import nbformat

from utils.agreement_table import MIME

FOLDED = {"hide-input", "hide-cell", "remove-input", "remove-cell"}
STATEMENTS = ("theorem", "proposition", "lemma", "corollary", "result", "conjecture")
PROVED = ("paper", "classical", "proved here")  # what a theorem may be; the rest is a result
STATUSES = (*PROVED, "derived here", "conjectured", "measured")
KINDS = ("Proof", "Computation", "Experiment", "Modelling", "Method")
STATUS = re.compile(rf"\s*\*\*Status:\*\* (?P<status>{'|'.join(STATUSES)})[.;]")
MARK = re.compile(rf"\s*\*(?P<kind>{'|'.join(KINDS)}) · ★{{1,3}} · \d+ min\*[ ]*(?:\n|$)")
FIGURE_TYPES = ("image/", "application/vnd.jupyter.widget-view+json")
DIRECTIVE = re.compile(r"^(?P<fence>[`:]{3,})\{(?P<name>[\w:-]+)\}[ ]*(?P<argument>.*)$", re.M)


@dataclass(frozen=True)
class Chapter:
    """A notebook and the parts of it that the checks ask for."""

    path: Path
    notebook: Any

    @cached_property
    def tag(self) -> str:
        """What its figures are numbered by: 3 for 03_separation, B for B_alignment."""
        return self.path.stem.split("_")[0].lstrip("0")

    @property
    def is_appendix(self) -> bool:
        return not self.tag.isdigit()

    @cached_property
    def cells(self) -> list[Any]:
        return self.notebook.cells

    @cached_property
    def code(self) -> list[tuple[int, Any]]:
        return [(i, cell) for i, cell in enumerate(self.cells) if cell.cell_type == "code"]

    @cached_property
    def prose(self) -> list[tuple[int, Any]]:
        return [(i, cell) for i, cell in enumerate(self.cells) if cell.cell_type == "markdown"]

    @cached_property
    def solved(self) -> set[int]:
        """The cells between the start and the end of a solution."""
        inside, found = False, set()
        for i, cell in enumerate(self.cells):
            marks = re.findall(r"\{solution-(start|end)\}", cell.source)
            if cell.cell_type == "markdown" and marks:
                inside = marks[-1] == "start"
            elif inside:
                found.add(i)
        return found

    @cached_property
    def visible(self) -> list[tuple[int, Any]]:
        """The code cells whose code the page shows: not folded, and in no solution."""
        return [
            (i, cell)
            for i, cell in self.code
            if i not in self.solved and not FOLDED & set(cell.metadata.get("tags", []))
        ]

    @cached_property
    def directives(self) -> list[tuple[int, str, str, str]]:
        """(cell, name, argument, the text after it) of every MyST directive, in order."""
        return [
            (i, match["name"], match["argument"].strip(), cell.source[match.end() :])
            for i, cell in self.prose
            for match in DIRECTIVE.finditer(cell.source)
        ]


@dataclass(frozen=True)
class Box:
    """A definition, theorem, exercise …: a fenced directive, and the text that follows it."""

    kind: str
    title: str
    label: str | None
    body: str
    after: str

    @property
    def status(self) -> str | None:
        """Who vouches for a statement, from the paragraph that follows its box."""
        found = STATUS.match(self.after)
        return found["status"] if found else None

    @property
    def mark(self) -> str | None:
        """The kind of an exercise, from its first line."""
        found = MARK.match(self.after if self.kind.endswith("-start") else self.body)
        return found["kind"] if found else None


def boxes(source: str) -> Iterator[Box]:
    """Every fenced directive of a markdown cell, in order."""
    for match in DIRECTIVE.finditer(source):
        fence, rest = match["fence"], source[match.end() :]
        end = re.search(rf"^{fence[0]}{{{len(fence)},}}[ ]*$", rest, re.M)
        inner, after = (rest[: end.start()], rest[end.end() :]) if end else (rest, "")
        options = re.match(r"(?:\n:[\w-]+:[^\n]*)*", inner)
        options = options[0] if options else ""
        label = re.search(r":label: *(\S+)", options)
        body = inner[len(options) :]
        title = match["argument"].strip()
        yield Box(match["name"], title, label[1] if label else None, body, after)


def title(path: Path) -> str:
    """The first line of a notebook."""
    return str(nbformat.read(path, as_version=4).cells[0].source.splitlines()[0].lstrip("# "))


def agreements(path: Path) -> list[dict[str, Any]]:
    """What the agreements of an executed notebook say, in order."""
    return [
        output["data"][MIME]
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]
        for output in cell.get("outputs", [])
        if MIME in output.get("data", {})
    ]


def mime_types(cell: Any) -> set[str]:
    """The media types of all outputs of a code cell."""
    return {kind for output in cell.outputs for kind in output.get("data", {})}


def has_figure(cell: Any) -> bool:
    return cell.cell_type == "code" and any(
        kind.startswith(FIGURE_TYPES) for kind in mime_types(cell)
    )


def output_text(cell: Any) -> str:
    parts = []
    for output in cell.outputs:
        parts.append(output.get("text", ""))
        parts.extend(
            str(value) for kind, value in output.get("data", {}).items() if kind.startswith("text/")
        )
    return "\n".join(parts)


def imported(cell: Any) -> bool:
    try:
        tree = ast.parse(re.sub(r"^\s*[%!].*$", "", cell.source, flags=re.M))
    except SyntaxError:
        return False
    return any(isinstance(node, (ast.Import, ast.ImportFrom)) for node in ast.walk(tree))
