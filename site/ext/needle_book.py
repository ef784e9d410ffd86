"""What the book adds to Sphinx: results as boxes, folded code, numbers of appendices, its parts."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import needle_docstrings
import needle_figures
import needle_links
import needle_page
import needle_reading
from docutils import nodes
from myst_nb.sphinx_ import HideCodeCellNode
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.environment import BuildEnvironment
from sphinx_proof.directive import DEFAULT_REALTYP_TO_COUNTERTYP, ElementDirective


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


def number_appendices(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Number theorems of appendix B as B.1, B.2, …: the table of contents numbers chapters only."""
    for page, kinds in env.toc_fignumbers.items():
        if match := re.fullmatch(r"chapters/([A-Z])_.*", page):
            for numbers in kinds.values():
                for count, identifier in enumerate(numbers, 1):
                    numbers[identifier] = (match[1], count)
    return []


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
    app.connect("env-get-updated", number_appendices, priority=900)  # after Sphinx has numbered
    app.connect("config-inited", from_the_checkout, priority=1)
    app.connect("config-inited", static_files, priority=2)
    app.connect("config-inited", set_base_url, priority=900)
    for part in (needle_figures, needle_links, needle_docstrings, needle_page, needle_reading):
        part.setup(app)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
