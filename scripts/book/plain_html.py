"""Markdown with formulas as plain HTML: for problem sets and slides, which are no pages."""

from __future__ import annotations

import html
from typing import Any

from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin

MATHJAX = """<script>
MathJax = { options: { enableMenu: false }, chtml: { matchFontHeight: false, scale: 1.07 } };
</script>
<script src="{base}vendor/mathjax/tex-mml-chtml.js" defer></script>"""


def _formula(content: str, options: dict[str, Any]) -> str:
    text = html.escape(content.strip())
    return rf"\[{text}\]" if options["display_mode"] else rf"\({text}\)"


def rendered(text: str) -> str:
    r"""Markdown as HTML, formulas left to MathJax.

    >>> rendered("A *short* $x < y$.")
    '<p>A <em>short</em> <span class="math inline">\\(x &lt; y\\)</span>.</p>\n'
    """
    reader = MarkdownIt("commonmark", {"html": True}).enable("table")
    reader.use(dollarmath_plugin, renderer=_formula, allow_labels=True)
    return str(reader.render(text))


def page(title: str, head: str, body: str, base: str = "") -> str:
    """A whole page; `base` leads to the folder of the site's files."""
    return (
        '<!DOCTYPE html>\n<html lang="en" data-theme="light"><head><meta charset="utf-8"/>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1"/>\n'
        f"<title>{html.escape(title)}</title>\n{MATHJAX.replace('{base}', base)}\n{head}\n"
        f"</head><body>\n{body}\n</body></html>\n"
    )
