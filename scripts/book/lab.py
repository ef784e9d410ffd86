"""The chapters in JupyterLab, readable there: what `make lab` starts and Binder prepares.

    python -m scripts.book.lab               working copies in _build/lab, and JupyterLab on them
    python -m scripts.book.lab --stage       the copies only
    python -m scripts.book.lab --in-place    the chapters where they are (for Binder)

JupyterLab knows nothing of Sphinx. So in the copies folded code is folded Jupyter's way, solutions
are sections that open with a click, exercises have headings, citations name their authors and link
to the paper, and references into another chapter link to its notebook. Theorem boxes and references
within a chapter are left to jupyterlab_myst. A copy that a reader has changed is never overwritten.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from scripts.book.chapter import DIRECTIVE, boxes, title
from scripts.book.run_notebooks import ROOT, chapters, write

LAB, ENVIRONMENT = ROOT / "_build" / "lab", ROOT / ".venv-lab"
PLAIN = {"display_name": "Python 3", "language": "python", "name": "python3"}
OVERRIDES = {  # no news, no questions, no pop-ups
    "@jupyterlab/apputils-extension:notification": {
        "fetchNews": "false",
        "checkForUpdates": False,
        "doNotDisturbMode": True,
    },
    "@jupyterlab/notebook-extension:tracker": {"windowingMode": "none"},
}
START = """# Attention and the needle

Every chapter is a notebook that has been executed; run it again, change it, break it. These are
working copies: `make lab` never overwrites one that you have changed.

**Begin with** [Chapter 1](chapters/{first}), or play with its explorer in the next cell
(Shift+Enter runs a cell). In a chapter, *Run → Run All Cells* takes about {seconds} seconds; every
claim ends in a verdict, theory against simulation, whose table unfolds. Code that only draws is
folded: a click on the three dots opens it. Solutions are folded sections below their exercises.
[Your own numbers](your_numbers.ipynb) is the plan for your own bags, with sliders.

{chapters}
"""


@cache
def labels() -> dict[str, tuple[str, str]]:
    """The notebook and the title of every labelled box, section or equation of the book."""
    found = {}
    for path in chapters():
        for cell in nbformat.read(path, as_version=4).cells:
            if cell.cell_type != "markdown":
                continue
            for box in boxes(cell.source):
                if box.label:
                    found[box.label] = (path.name, box.title)
            for name, what in re.findall(r"^\(([\w-]+)\)=\s*\n#+ (.*)", cell.source, re.M):
                found[name] = (path.name, what)
            for name in re.findall(r"^\$\$ \((\S+)\)|:label: *(eq-\S+)", cell.source, re.M):
                found.setdefault("".join(name), (path.name, ""))
    return found


@cache
def sources() -> dict[str, str]:
    """A link for every key of references.bib: authors and year, leading to the text."""
    from pybtex.database import parse_file

    found = {}
    for key, entry in parse_file(str(ROOT / "references.bib")).entries.items():
        people = [" ".join(person.last_names) for person in entry.persons.get("author", [])]
        names = people[0] if people else key
        if len(people) == 2:
            names = " and ".join(people)
        elif len(people) > 2:
            names += " et al."
        text = re.sub(r"[{}\\\\]", "", f"{names} ({entry.fields.get('year', 'n.d.')})")
        where = entry.fields.get("url") or (
            f"https://doi.org/{entry.fields['doi']}" if "doi" in entry.fields else ""
        )
        if not where and "eprint" in entry.fields:
            where = f"https://arxiv.org/abs/{entry.fields['eprint']}"
        found[key] = f"[{text}]({where})" if where else text
    return found


def words(source: str, name: str) -> str:
    """Text whose citations and references into other chapters are plain links."""

    def cite(match: re.Match[str]) -> str:
        return "; ".join(sources().get(key.strip(), key.strip()) for key in match[1].split(","))

    def refer(match: re.Match[str]) -> str:
        label = match[2].strip()
        label = re.sub(r".*<(.*)>$", r"\1", label)
        where, what = labels().get(label, (name, ""))
        if where == name:
            return match[0]
        chapter = where.split("_")[0].lstrip("0")
        return f"[{what or 'an equation'}, {chapter}]({where})"

    source = re.sub(r"\{cite(?::\w+)?\}`([^`]+)`", cite, source)
    source = source.replace("{prf:result}", "{prf:observation}")  # a name that JupyterLab knows
    return re.sub(r"\{(prf:ref|eq|ref|numref)\}`([^`]+)`", refer, source)


def readable(notebook: Any, name: str) -> Any:
    """A chapter as JupyterLab can show it."""
    cells: list[Any] = []
    for cell in notebook.cells:
        if cell.cell_type == "code":
            if {"hide-input", "hide-cell"} & set(cell.metadata.get("tags", [])):
                cell.metadata["jupyter"] = {"source_hidden": True}
            cells.append(cell)
            continue
        kinds = {
            match["name"]: match["argument"].strip() for match in DIRECTIVE.finditer(cell.source)
        }
        if "solution-end" in kinds:
            continue
        if "solution-start" in kinds:
            solved = labels().get(kinds["solution-start"], ("", ""))[1]
            cell.source = f"##### Solution: {solved or kinds['solution-start']}"
            cell.metadata["jp-MarkdownHeadingCollapsed"] = True
        else:
            if "exercise" in kinds:
                heading = new_markdown_cell(f"#### Exercise: {kinds['exercise']}")
                heading["id"] = f"{cell['id']}-title"[-64:]
                cells.append(heading)
            cell.source = words(cell.source, name)
        cells.append(cell)
    notebook.cells = cells
    notebook.metadata["kernelspec"] = PLAIN
    return notebook


def landing(paths: list[Path]) -> Any:
    """The notebook that says where to begin."""
    lines = []
    for path in paths:
        name, number = title(path), path.stem.split("_")[0].lstrip("0")
        shown = name if name.startswith("Appendix") else f"Chapter {number}: {name}"
        lines.append(f"- [{shown}](chapters/{path.name})")
    text = START.format(first=paths[0].name, seconds=20, chapters="\n".join(lines))
    code = new_code_cell('from utils.explorers import explore\n\nexplore("needle")')
    cells = [new_markdown_cell(text), code]
    for k, cell in enumerate(cells):
        cell["id"] = f"start-{k}"
    return new_notebook(cells=cells, metadata={"kernelspec": PLAIN})


def own_numbers() -> Any:
    """The notebook with the plan as a figure, at exact numbers, and the plan itself."""
    page = (ROOT / "site" / "your_numbers.md").read_text(encoding="utf-8")
    head, question, *_ = page.split("\n\n")
    text = f"{head}\n\n{question}\n\nEvery move of a slider computes a plan: seconds, not moments."
    cells = [
        new_markdown_cell(text),
        new_code_cell('from utils.explorers import explore\n\nexplore("numbers")'),
        new_markdown_cell("The plan itself, for as many strengths as you like:"),
        new_code_cell(
            "from needle.planning.planner import plan\n\n"
            "plan(L=1000, R=3, d=500, n=4000, pi=0.3, theta=[4, 5, 6])"
        ),
    ]
    for k, cell in enumerate(cells):
        cell["id"] = f"numbers-{k}"
    return new_notebook(cells=cells, metadata={"kernelspec": PLAIN})


def stage(target: Path) -> int:
    """Write the copies; the ones that were changed since stay. Returns how many were written."""
    ledger = target / ".originals.json"
    known = json.loads(ledger.read_text()) if ledger.exists() else {}
    wanted = {"start.ipynb": landing(chapters()), "your_numbers.ipynb": own_numbers()}
    for path in chapters():
        notebook = nbformat.read(path, as_version=4)
        wanted[f"chapters/{path.name}"] = readable(notebook, path.name)
    written = 0
    for name, notebook in wanted.items():
        copy, text = target / name, nbformat.writes(notebook) + "\n"
        mine = hashlib.sha256(copy.read_bytes()).hexdigest() if copy.exists() else None
        if mine is None or mine == known.get(name):
            written += write(copy, text)
            known[name] = hashlib.sha256(text.encode()).hexdigest()
    write(ledger, json.dumps(known, indent=1))
    return written


def prepare() -> dict[str, str]:
    """Settings and kernel of JupyterLab's own environment; the variables under which it runs."""
    share = ENVIRONMENT / "share" / "jupyter"
    write(share / "lab" / "settings" / "overrides.json", json.dumps(OVERRIDES, indent=1))
    kernel = {
        "argv": [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": "Python 3",
        "language": "python",
        "metadata": {"debugger": True},
    }
    write(share / "kernels" / "python3" / "kernel.json", json.dumps(kernel, indent=1))
    book = Path(sys.prefix) / "share" / "jupyter"  # where the widgets' extensions are
    path = os.pathsep.join(map(str, (share, book)))  # the kernel of the book before that of the lab
    return {**os.environ, "JUPYTER_PATH": path, "PYTHONPATH": str(ROOT)}


def command(*options: str) -> list[str]:
    """The words that start JupyterLab on the copies."""
    lab = str(ENVIRONMENT / "bin" / "jupyter-lab")
    return [
        lab,
        f"--ServerApp.root_dir={LAB}",
        "--LabApp.default_url=/lab/tree/start.ipynb",
        *options,
    ]


def main() -> None:
    if "--in-place" in sys.argv[1:]:
        for path in chapters():
            notebook = readable(nbformat.read(path, as_version=4), path.name)
            write(path, nbformat.writes(notebook) + "\n")
        nbformat.write(landing(chapters()), ROOT / "start.ipynb")
        nbformat.write(own_numbers(), ROOT / "your_numbers.ipynb")
        return
    print(f"{stage(LAB)} notebook(s) brought up to date in {LAB.relative_to(ROOT)}", flush=True)
    if "--stage" not in sys.argv[1:]:
        words = command()
        os.execve(words[0], words, prepare())


if __name__ == "__main__":
    main()
