"""The ledger: every claim of the paper and of the book, with the agreements that hold it.

python -m scripts.book.ledger      print what the page 'Ledger' shows of the stored notebooks
"""

from __future__ import annotations

import html
import json
import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from scripts.book.chapter import agreements as chapter_agreements
from scripts.book.chapter import boxes
from scripts.book.ledger_calibration import calibration
from scripts.book.run_notebooks import chapters
from scripts.book.statements import chapter_title
from utils.agreement_table import MIME

CLAIMS = Path(__file__).with_name("claims.toml")
WHOSE = {"paper": "the paper", "classical": "classical", "book": "this book"}
OF_BOX = {
    "paper": "proved there",
    "classical": "proved there",
    "proved here": "proved here",
    "derived here": "derived",
    "conjectured": "conjectured",
    "measured": "measured",
}
COLUMNS = ["claim", "whose", "status", "stated", "checked"]
COLUMNS += ["theory", "simulation", "s.e.", "z", "trials"]
NUMBERS = 5  # the last columns


@dataclass(frozen=True)
class Claim:
    """An entry of claims.toml."""

    words: str
    whose: str
    stated: str
    status: str | None = None
    also: tuple[str, ...] = ()
    agreements: tuple[str, ...] = ()
    reason: str | None = None
    rest: bool = False


@dataclass(frozen=True)
class Checked:
    """An agreement of a notebook, and the chapter that shows it."""

    chapter: Path
    record: dict[str, Any]

    @property
    def loudest(self) -> dict[str, Any]:
        """The row with the largest |z|; trials without spread that miss the theory come first."""
        rows = self.record["rows"]
        return max(rows, key=lambda row: math.inf if row["z"] is None else abs(row["z"]))


def claims(text: str) -> list[Claim]:
    """The claims of a file in TOML; an error for words that it may not use."""
    lists = ("agreements", "also")
    found = [
        Claim(**entry | {name: tuple(entry.get(name, ())) for name in lists})
        for entry in tomllib.loads(text)["claim"]
    ]
    for claim in found:
        if claim.whose not in WHOSE or claim.status not in {None, *OF_BOX.values()}:
            raise SystemExit(f"claims.toml, “{claim.words}”: {claim.whose}, {claim.status}")
    return found


def agreements(notebooks: Mapping[Path, Path]) -> dict[str, Checked]:
    """The agreements in the executed copies of chapters, by name, in order."""
    return {
        record["claim"]: Checked(chapter, record)
        for chapter, copy in notebooks.items()
        for record in chapter_agreements(copy)
    }


def owned(listed: list[Claim], names: list[str]) -> list[list[str]]:
    """The agreements behind each claim; the build ends where a claim or an agreement has none.

    A name may stand behind several claims. A glob takes what no claim names and no earlier
    claim has taken by its glob.
    """
    exact = {name for claim in listed for name in claim.agreements if "*" not in name}
    if unknown := exact - set(names):
        raise SystemExit(f"claims.toml names no agreement of a chapter: {', '.join(unknown)}")
    free = [name for name in names if name not in exact]
    behind = []
    for claim in listed:
        taken = [n for n in free if any(fnmatchcase(n, glob) for glob in claim.agreements)]
        free = [name for name in free if name not in taken]
        behind.append([name for name in names if name in claim.agreements or name in taken])
        if not (behind[-1] or claim.reason or claim.rest):
            raise SystemExit(f"a claim without agreement or reason: “{claim.words}”")
    if free:
        raise SystemExit(f"agreements that no claim of claims.toml owns: {', '.join(free)}")
    return behind


def stated(claim: Claim, labels: dict[str, str | None], pages: list[Path]) -> tuple[str, str]:
    """The status of a claim, and a link to where it is stated."""
    if claim.stated in labels:
        status = claim.status or OF_BOX.get(labels[claim.stated] or "")
        link = f"{{prf:ref}}`{claim.stated}`"
    else:
        titles = {f"chapters/{path.stem}": chapter_title(path) for path in pages}
        if claim.stated not in titles:
            raise SystemExit(f"“{claim.words}” is stated at {claim.stated}, which does not exist")
        status, link = claim.status, f"[{titles[claim.stated]}]({claim.stated}.ipynb)"
    if not status:
        raise SystemExit(f"a claim without status: “{claim.words}”")
    if unknown := [label for label in claim.also if label not in labels]:
        raise SystemExit(f"“{claim.words}” is also stated at {unknown[0]}, which does not exist")
    return status, link


def left_out(listed: list[Claim], labels: Mapping[str, str | None]) -> list[str]:
    """Statements with a status that no claim of the ledger names."""
    named = {label for claim in listed for label in (claim.stated, *claim.also)}
    return [label for label, status in labels.items() if status and label not in named]


def anchor(name: str) -> str:
    """The id of an agreement on the page of its chapter."""
    return f"agreement-{name}"


def number(value: float | None) -> str:
    """A number in print; one that machines cannot write is without bound."""
    return "∞" if value is None else f"{value:g}".replace("-", "−")


def line(cells: list[str]) -> str:
    # a bar would end the column, and words may hold mathematics with bars
    safe = [re.sub(r"(?<!\\)\|", r"\\vert ", cell) for cell in cells]
    return f"| {' | '.join(safe)} |"


def table(listed: list[Claim], found: dict[str, Checked], pages: list[Path]) -> list[str]:
    """One line for each claim and each agreement behind it."""
    labels = {
        box.label: box.status
        for path in pages
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]
        if cell["cell_type"] == "markdown"
        for box in boxes("".join(cell["source"]))
        if box.label and box.kind.startswith("prf:")
    }
    lines = [line(COLUMNS), line(["---"] * (len(COLUMNS) - NUMBERS) + ["---:"] * NUMBERS)]
    for claim, names in zip(listed, owned(listed, list(found)), strict=True):
        status, link = stated(claim, labels, pages)
        every = ", ".join([link, *(f"{{prf:ref}}`{label}`" for label in claim.also)])
        for name in names:
            said = [WHOSE[claim.whose], status, every if name == names[0] else link]
            words = claim.words
            if claim.rest:
                words = f"{words}: {name.split('-', 1)[1].replace('-', ' ')}"
            row, page = found[name].loudest, found[name].chapter.stem
            address = f"chapters/{page}.html#{anchor(name)}"
            error = number(row["standard_error"]) if row["standard_error"] else "exact"
            numbers = [number(row["theory"]), number(row["simulation"]), error, number(row["z"])]
            trials = f"{row['trials']}" if row["trials"] else "–"
            where = f'<a class="reference internal" href="{address}">{html.escape(name)}</a>'
            lines.append(line([words, *said, where, *numbers, trials]))
        if claim.reason and not names:
            said = [WHOSE[claim.whose], status, every, f"not checked: {claim.reason}"]
            lines.append(line([claim.words, *said, *["–"] * NUMBERS]))
    if missing := left_out(listed, labels):
        raise SystemExit(f"statements that no claim of claims.toml names: {', '.join(missing)}")
    return lines


def ledger_page(notebooks: Mapping[Path, Path], text: str | None = None) -> str:
    """The generated part of the page, from the executed copy of each chapter."""
    listed = claims(CLAIMS.read_text(encoding="utf-8") if text is None else text)
    found = agreements(notebooks)
    lines = ["## Every claim", "", ":::{div} ledger", *table(listed, found, list(notebooks)), ":::"]
    lines += [
        "",
        "## All z-scores together",
        "",
        *calibration({name: one.record for name, one in found.items()}),
    ]
    lines += ["", '<script type="module" src="_static/ledger.mjs"></script>']
    return "\n".join(lines) + "\n"


def mark_agreements(notebook: Path) -> None:
    """Give every agreement of a staged notebook the id that the ledger links to."""
    content = json.loads(notebook.read_text(encoding="utf-8"))
    for cell in content["cells"]:
        for output in cell.get("outputs", []):
            if record := output.get("data", {}).get(MIME):
                page = "".join(output["data"]["text/html"])
                place = f'<details id="{anchor(record["claim"])}"'
                output["data"]["text/html"] = page.replace("<details", place, 1)
    notebook.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")


if __name__ == "__main__":
    print(ledger_page({path: path for path in chapters()}))
