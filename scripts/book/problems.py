"""Problem sets without solutions, one a chapter and one a session of the course: `make problems`.

Each is a notebook with a place for every answer, and a PDF. Titles and texts come from the
exercises as they stand; references lead to the published book.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import nbformat
import yaml
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from scripts.book import lab, plain_html, teaching
from scripts.book.browser_assets import SITE
from scripts.book.chapter import title
from scripts.book.run_notebooks import ROOT, write
from scripts.book.teaching import Problem, problems
from scripts.check.browser import browser, serve

TARGET = ROOT / "_build" / "problems"
START = "from exercises import check, hint  # run it in a checkout of the book"
PAPER = {
    "format": "A4",
    "margin": {"top": "18mm", "bottom": "20mm", "left": "20mm", "right": "20mm"},
}
STYLE = """<style>
@font-face { font-family: T; src: url(_static/fonts/text.woff2) }
@font-face { font-family: T; font-style: italic; src: url(_static/fonts/text-italic.woff2) }
@font-face { font-family: T; font-weight: 700; src: url(_static/fonts/text-bold.woff2) }
body { font: 11pt/1.45 T, serif; color: #1f2430 }
h1 { font-size: 21pt; line-height: 1.15 } h2 { font-size: 14pt; margin: 1.6em 0 .2em }
h2, p:has(> em:only-child) { break-after: avoid } a { color: inherit } code { font-size: .85em }
</style>"""


def address() -> str:
    """Where the book is published, from the one place that names its repository."""
    settings = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    owner, name = settings["repository"]["url"].rstrip("/").split("/")[-2:]
    return f"https://{owner}.github.io/{name}"


def statement(problem: Problem, number: int) -> str:
    """A problem as Markdown that any reader of notebooks shows: no directive, no label is left."""
    text = re.sub(r"(\$\$)\s*\(eq-[\w-]+\)", r"\1", lab.words(problem.body, ""))
    text = re.sub(r", (\d+)\]\((?=\d\d_)", r", Chapter \1](", text)
    text = re.sub(r", ([A-Z])\]\((?=[A-Z]_)", r", Appendix \1](", text)
    text = re.sub(
        r"\]\(((?:\d\d|[A-Z])_\w+)\.ipynb(#[\w-]+)?\)", rf"]({address()}/chapters/\1.html\2)", text
    )
    return f"## {number}. {problem.title}\n\n{text.strip()}"


def sheet(title: str, about: str, chosen: list[Problem]) -> Any:
    """The notebook of a set."""
    cells = [new_markdown_cell(f"# {title}\n\n{about}"), new_code_cell(START)]
    for number, problem in enumerate(chosen, 1):
        cells.append(new_markdown_cell(statement(problem, number)))
        asked = (
            f'check("{problem.label}")  # says what is asked; then check("{problem.label}", answer)'
        )
        cells.append(new_code_cell(asked))
    for k, cell in enumerate(cells):
        cell["id"] = f"problem-{k:02d}"
    return new_notebook(cells=cells, metadata={"kernelspec": lab.PLAIN})


def told(chosen: list[Problem]) -> str:
    """What stands under the title of a set."""
    minutes = sum(problem.minutes for problem in chosen)
    return (
        f"{len(chosen)} problems, about {minutes / 60:.1f} hours. "
        f"From [Attention and the needle]({address()}); text CC BY 4.0."
    )


def sets() -> dict[str, tuple[str, list[Problem]]]:
    """Name → title and problems: of every chapter that has some, and of every session."""
    found: dict[str, tuple[str, list[Problem]]] = {}
    for problem in problems().values():
        name = f"chapter-{problem.chapter.stem}"
        found.setdefault(name, (title(problem.chapter), []))[1].append(problem)
    for number, (name, _, labels) in enumerate(teaching.plan()["course"], 1):
        chosen = [problems()[label] for label in labels]
        found[f"session-{number:02d}"] = (f"Session {number}: {name}", chosen)
    return found


def printable(notebook: Any) -> str:
    """The text of a set as a page to print, without its cells of code."""
    source = "\n\n".join(c.source for c in notebook.cells if c.cell_type == "markdown")
    title = notebook.cells[0].source.splitlines()[0].lstrip("# ")
    return plain_html.page(title, STYLE, plain_html.rendered(source), base="/")


def printed(instance: Any, host: str, page_html: str) -> bytes:
    """A page as PDF, once its formulas are set."""
    context = instance.new_context()
    page = context.new_page()
    own = f"{host}/sheet.html"
    page.route(own, lambda route: route.fulfill(body=page_html, content_type="text/html"))
    page.goto(own)
    page.evaluate("() => MathJax.startup.promise.then(() => document.fonts.ready).then(() => 1)")
    data: bytes = page.pdf(**PAPER)
    context.close()
    return data


def main(names: list[str], target: Path = TARGET, *, pdf: bool = True) -> list[Path]:
    """Write the sets, all or those named."""
    wanted = {name: found for name, found in sets().items() if not names or name in names}
    if missing := set(names) - set(wanted):
        raise SystemExit(f"there is no set {sorted(missing)}; there are {', '.join(sets())}")
    books = {name: sheet(title, told(some), some) for name, (title, some) in wanted.items()}
    paths = []
    for name, notebook in books.items():
        paths.append(target / f"{name}.ipynb")
        write(paths[-1], nbformat.writes(notebook) + "\n")
    if pdf:
        with serve(SITE) as host, browser() as instance:
            for name, notebook in books.items():
                paths.append(target / f"{name}.pdf")
                paths[-1].write_bytes(printed(instance, host, printable(notebook)))
    print(f"{len(books)} problem sets in {target}", flush=True)
    return paths


if __name__ == "__main__":
    main(sys.argv[1:])
