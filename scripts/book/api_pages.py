"""The pages of functions: one for each room of `needle`, and one for `utils`, from docstrings."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from scripts.book import closure
from scripts.book.run_notebooks import ROOT, write

ROOMS = (
    *("kit", "data", "oracle", "steps", "learning", "readout"),
    *("training", "planning", "bags", "trials"),
)


def modules() -> dict[str, list[str]]:
    """The rooms of needle and utils, each with its modules."""
    folders = {f"needle.{room}": ROOT / "needle" / room for room in ROOMS}
    folders["utils"] = ROOT / "utils"
    return {
        package: [f"{package}.{file.stem}" for file in sorted(folder.glob("[!_]*.py"))]
        for package, folder in folders.items()
        if (folder / "__init__.py").is_file()
    }


def said(package: str) -> str:
    """The first paragraph of a module's docstring, for a table."""
    tree = ast.parse(Path(str(closure.home(package))).read_text(encoding="utf-8"))
    text = (ast.get_docstring(tree) or "").partition("\n\n")[0].replace("\n", " ")
    return re.sub(r"([|*_$\\])", r"\\\1", text)


def page(package: str) -> str:
    """The page of a room: what it is for, and its functions, module by module."""
    parts = [f"# `{package}`", said(package)]
    for module in modules()[package]:
        lines = ["```{eval-rst}", f".. automodule:: {module}", "   :members:", "```"]
        parts.append(f"## {module.rpartition('.')[2]}\n\n" + "\n".join(lines))
    return "\n\n".join(parts) + "\n"


def index() -> str:
    """Every room with what it is for, each a link to its page."""
    lines = ["| room | |", "| --- | --- |"]
    for package in modules():
        lines.append(f"| [`{package}`](api/{package.rpartition('.')[2]}.md) | {said(package)} |")
    return "\n".join(lines) + "\n"


def stage(source: Path) -> None:
    """A page for each room, filled from docstrings, below that of all in the contents."""
    names = [package.rpartition(".")[2] for package in modules()]
    for name, package in zip(names, modules(), strict=True):
        write(source / "api" / f"{name}.md", page(package))
    contents = (source / "_toc.yml").read_text(encoding="utf-8")
    below = "".join(f"\n          - file: api/{name}" for name in names)
    contents, count = re.subn(
        r"- file: api$", rf"\g<0>\n        sections:{below}", contents, flags=re.M
    )
    if count != 1:
        raise SystemExit(f"_toc.yml names the page of functions {count} times")
    (source / "_toc.yml").write_text(contents, encoding="utf-8")
