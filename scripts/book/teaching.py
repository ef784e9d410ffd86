"""The page for teachers: the course, which exercise carries which idea, projects.

`site/teaching.yml` says what belongs together; titles, kinds, times come from the exercises.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import nbformat
import yaml

from exercises.desk import find
from scripts.book.chapter import MARK, boxes, title
from scripts.book.run_notebooks import ROOT, chapters

SOURCE = ROOT / "site" / "teaching.yml"
PROJECTS = ROOT / "site" / "projects"
EFFORT = re.compile(r"(★+) · (\d+) min")


@dataclass(frozen=True)
class Problem:
    """An exercise of the book, without its solution."""

    label: str
    title: str
    chapter: Path
    body: str  # its first line is the mark
    kind: str
    stars: int
    minutes: int

    @property
    def answered(self) -> str:
        return "check" if find(self.label).judge else "list"


@cache
def problems() -> dict[str, Problem]:
    """All exercises of the book by their labels, in its order."""
    found = {}
    for path in chapters():
        for cell in nbformat.read(path, as_version=4).cells:
            for box in boxes(cell.source) if cell.cell_type == "markdown" else ():
                if box.kind != "exercise" or not box.label:
                    continue
                body = box.body.strip()
                mark, effort = MARK.match(body), EFFORT.search(body)
                if not mark or not effort:
                    raise ValueError(f"{box.label} does not begin with its mark")
                kind, stars, minutes = mark["kind"], len(effort[1]), int(effort[2])
                found[box.label] = Problem(box.label, box.title, path, body, kind, stars, minutes)
    return found


@cache
def plan() -> dict[str, Any]:
    """What `site/teaching.yml` says."""
    return dict(yaml.safe_load(SOURCE.read_text(encoding="utf-8")))


def course() -> str:
    """The sessions with what is read and the problem set, its time in hours."""
    lines = ["| session | what it treats, and what is read before | problem set |"]
    lines.append("| ---: | --- | --- |")
    for number, (name, page, labels) in enumerate(plan()["course"], 1):
        links = "; ".join(f"{{ref}}`{problems()[label].title} <{label}>`" for label in labels)
        hours = sum(problems()[label].minutes for label in labels) / 60
        read = f"[{title(ROOT / f'{page}.ipynb')}]({page}.ipynb)"
        lines.append(f"| {number} | **{name}** <br> {read} | {links}; {hours:.1f} hours |")
    return "\n".join(lines)


def named(label: str) -> str:
    """An exercise as a link with its title, kind, stars and minutes."""
    found = problems()[label]
    answers = "" if found.answered == "check" else ", list"
    effort = f"{found.kind.lower()} {'★' * found.stars} {found.minutes} min{answers}"
    return f"{{ref}}`{found.title} <{label}>`, {effort}"


def ideas() -> str:
    """Which exercise carries which idea."""
    lines = ["| idea | exercises |", "| --- | --- |"]
    for name, labels in plan()["ideas"].items():
        lines.append(f"| {name} | {' <br> '.join(map(named, labels))} |")
    return "\n".join(lines)


def projects() -> str:
    """The projects, each with its notebook and what a good result would show."""
    parts = []
    for name, shows in plan()["projects"].items():
        cells = nbformat.read(PROJECTS / f"{name}.ipynb", as_version=4).cells
        heading, question, needs = cells[0].source.split("\n\n")
        named = heading.removeprefix("# Project: ").strip()
        parts.append(
            f"**{named[0].upper()}{named[1:]}.** {question} {needs}\n\n"
            f"A good result: {shows}. {{download}}`Starting notebook <projects/{name}.ipynb>`."
        )
    return "\n\n".join(parts)


def teaching_page() -> str:
    """The generated part of the page."""
    count = len(problems())
    checked = sum(problem.answered == "check" for problem in problems().values())
    told = (
        f"All {count} exercises, each with three hints. {checked} of them judge an answer, on the "
        "page and in Jupyter, against theory or a fresh simulation; where it says *list* there is "
        "a list of what a complete answer holds."
    )
    return (
        f"{course()}\n\n## Which exercise carries which idea\n\n{told}\n\n{ideas()}\n\n"
        "## Projects\n\nEach begins with a notebook that runs in seconds: a question, a simulation "
        "that agrees with what is known, a first figure that is not in the book.\n\n"
        f"{projects()}\n\n## Slides\n\n{slides()}\n"
    )


def slides() -> str:
    """The slides that there are, by chapter."""
    lines = []
    for path in sorted((ROOT / "site" / "slides").glob("[01]*.md")):
        name = path.stem
        number = int(name.split("_")[0])
        named = f"Chapter {number}: {title(ROOT / 'chapters' / f'{name}.ipynb')}"
        lines.append(f'- <a href="slides/{name}.html">{named}</a>')
    return (
        "Built from the key figures and explorers of the executed chapters; the key S opens the "
        "speaker's notes, F fills the screen, and `make slides` prints them as PDF.\n\n"
        + "\n".join(lines)
    )
