"""What the book changes in the HTML of the theme.

The theme leaves no other way to do this than to rewrite its HTML. Each rewriting names its reason
and says how often it must apply to a page, so that a new version of the theme that no longer fits
stops the build instead of passing unseen.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from pathlib import Path
from typing import Any

import imagesize
import pydata_sphinx_theme
from needle_policy import protected
from needle_tex import in_letters
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

BEFORE_PAINT = """<script>
    (() => {
      const page = document.documentElement.dataset;
      let mode = "auto";
      page.read = "reading";
      try {
        const stored = localStorage.getItem("mode");
        if (["light", "dark"].includes(stored)) mode = stored;
        localStorage.removeItem("MathJax-Menu-Settings");
        page.read = localStorage.getItem("needle-read") === "code" ? "code" : "reading";
      } catch {}
      const dark = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
      page.mode = mode;
      page.theme = mode === "auto" ? dark : mode;
    })();
  </script>"""
NO_SCRIPT = (
    '<noscript><p class="no-script">Without scripts the formulas of this page show as TeX; '
    "everything else works, and what is folded opens.</p></noscript>"
)

FORMULA = r'<span class="math notranslate nohighlight">[^<]*</span>'

# (pattern, what stands there instead, how often: a number, or None for any, and why)
REWRITINGS: list[tuple[str, str, int | None, str]] = [
    (
        r'<script data-cfasync="false">.*?</script>',
        BEFORE_PAINT,
        1,
        "the theme is known before the first paint, and no choice made in an old menu of MathJax "
        "asks for files that are not there",
    ),
    (
        r'<script src="[^"]*/fontawesome/[^"]*/js/all\.min\.js[^"]*"></script>',
        "",
        1,
        "1.5 MB of script that blocks the first text; icons are drawn in place, see `draw_icons`",
    ),
    (
        r"<link [^>]*/fontawesome/[^>]*/?>",
        "",
        4,
        "a style sheet and three fonts for a dozen icons",
    ),
    (
        r'<script (src="[^"]*_static/(?!\.\./|documentation_options)[^"]*\.js[^"]*")>'
        r"(?=</script>)(?=.*</head>)",
        r"<script defer \1>",
        None,
        "nothing that these scripts do is needed before the text stands",
    ),
    (
        r'(<a href="#main-content">Skip to main content</a>)(?=.*?<section id="exercises")',
        r'\1 <a href="#exercises">Skip to the exercises</a>',
        None,
        "the exercises are two keys away, and the first solution few more",
    ),
    (
        r'<summary>(?=<span class="toctree-toggle")',
        '<summary aria-label="Its pages">',
        None,
        "a triangle beside a page that has pages of its own says nothing aloud",
    ),
    (
        r'(<span class="search-button__kbd-shortcut")',
        r'\1 aria-hidden="true"',
        None,
        "who asks for the button by its name, Search, does not say Ctrl+K",
    ),
    (
        r'(<button class="btn search-button-field[^>]*?) aria-label="Search"',
        r"\1",
        1,
        "a button with a text is called by its text",
    ),
    (
        r' role="(?:doc-biblioentry"(?=>)|list"(?= class="citation-list"))',
        "",
        None,
        "a role that is withdrawn, and a list without items; the entries are plain paragraphs",
    ),
    (
        r'(<p class="admonition-title">Solution to)<a [^>]*>(.*?)</a>(?=</p>)',
        r"\1\2",
        None,
        "a click on the title of a solution opens it, and leads nowhere else",
    ),
    (
        rf"([(\[“]+{FORMULA}[,.;:?!)\]”]*|{FORMULA}[,.;:?!)\]”]+)",
        r'<span class="glued">\1</span>',
        None,
        "no line begins with the comma after a formula or ends with the bracket before it",
    ),
    (
        r'(<section[^>]*?) id="(?:solution|exercise|proof)-content"',
        r"\1",
        None,
        "an id stands once on a page",
    ),
    (
        r'<meta name="viewport" content="width=device-width, initial-scale=1" ?/>\s*',
        "",
        None,
        "said once is enough",
    ),
]


ICON = re.compile(r'<(i|span) class="([^"]*\bfa-([a-z-]+)[^"]*)"([^>]*)>\s*</\1>')
SIZES = {"lg", "fw", "sm", "solid", "regular", "brands"}


class Icons(dict[str, str]):
    """The drawing of an icon of the theme by its name, read from the theme's own script."""

    def __init__(self, script: Path) -> None:
        entry = r'"?([a-z0-9-]+)"?:\[(\d+),(\d+),\[([^\]]*)\],"[0-9a-f]+","([^"]+)"\]'
        for name, width, height, aliases, path in re.findall(entry, script.read_text("utf-8")):
            drawing = f'viewBox="0 0 {width} {height}"><path fill="currentColor" d="{path}"/></svg>'
            for known in (name, *re.findall(r'"([^"]+)"', aliases)):
                self[known] = drawing

    def __missing__(self, name: str) -> str:
        raise ExtensionError(f"the theme has no icon {name}; mend site/ext/needle_rewriting.py")


def draw_icons(page: str, icons: Icons) -> str:
    """Each icon as a small picture in the page, so that neither a font nor a script is needed."""

    def drawn(match: re.Match[str]) -> str:
        names = re.findall(r"\bfa-([a-z-]+)", match[2])
        name = next(name for name in names if name not in SIZES)
        return f'<svg class="icon {match[2]}"{match[4]} aria-hidden="true" {icons[name]}'

    return ICON.sub(drawn, page)


SEARCH_PAGE = (
    r'(?:<script (?:defer )?src="(?:_static/(?:searchtools|language_data)|searchindex)'
    r'\.js"></script>\s*){3}',
    '<script type="module" src="_static/search.mjs"></script>\n  ',
    1,
    "sections are ranked and quoted instead of pages, see `needle_search.py`",
)


def while_waiting(page: str) -> str:
    """Formulas above the first heading are drawn in letters until they are set: nothing moves then.

    Their TeX is longer than what it becomes, by a line or two of a page's opening.
    """
    begin = page.find("<h1", page.find("<article"))
    end = page.find("<h2", begin)

    def lettered(match: re.Match[str]) -> str:
        letters = html.escape(in_letters(html.unescape(match[1])), quote=True)
        return match[0].replace(">", f' data-letters="{letters}">', 1)

    source = r'<span class="math notranslate nohighlight">([^<]*)</span>'
    return page[:begin] + re.sub(source, lettered, page[begin:end]) + page[end:]


applied: Counter[str] = Counter()  # how often each rewriting, by its reason, in the whole book


def finish(page: str, name: str, sizes: dict[str, tuple[int, int]]) -> str:
    """A page of HTML with every rewriting applied; an error where one does not fit."""
    for pattern, replacement, times, reason in [*REWRITINGS, *[SEARCH_PAGE] * (name == "search")]:
        page, count = re.subn(pattern, replacement, page, flags=re.S)
        applied[reason] += count
        if times is not None and count != times:
            raise ExtensionError(f"{name}: {count} times instead of {times}: {pattern} ({reason})")

    up = "../" * name.count("/")
    fonts = "".join(
        f'\n  <link rel="preload" href="{up}_static/fonts/{font}.woff2" as="font" '
        'type="font/woff2" crossorigin />'
        for font in ("text", "text-bold", "label", *["text-italic"] * ("<em" in page))
    )
    styled = page.find(">", page.rfind('rel="stylesheet"', 0, page.find("</head>"))) + 1
    page = page[:styled] + fonts + page[styled:]  # the text waits for styles, not for its face

    def image(match: re.Match[str]) -> str:
        """Images load when they are near, in room that is kept for them."""
        width, height = sizes[match[2]]
        return f'<img loading="lazy" width="{width}" height="{height}" {match[1]}'

    def parameters(match: re.Match[str]) -> str:
        """The lines of a long signature: Sphinx makes a list of definitions without terms."""
        lines = match[1].replace("<dd>", '<span class="sig-line">').replace("</dd>", "</span>")
        return f'<span class="sig-lines">{lines}</span>'

    page = re.sub(r"<dl>\s*((?:<dd>.*?</dd>\s*)+)</dl>", parameters, page, flags=re.S)
    page = re.sub(r'<img (?=([^>]*src="[^"]*_images/([^"/]+)"))\1', image, page)
    if 'class="math ' in page:
        page = re.sub(r"<article [^>]*>", rf"\g<0>{NO_SCRIPT}", page, count=1)
        page = while_waiting(page)
    return page


def rewrite_pages(app: Sphinx) -> None:
    """Pass every page through `finish` before it is written."""
    if app.builder.format != "html":
        return
    render = app.builder.templates.render  # type: ignore[attr-defined]
    sizes: dict[str, tuple[int, int]] = {}
    [script] = Path(pydata_sphinx_theme.__file__).parent.rglob("fontawesome/*/js/all.min.js")
    icons = Icons(script)

    def finished(template: str, context: dict[str, Any]) -> str:
        for source, name in app.builder.images.items():
            if name not in sizes:
                sizes[name] = imagesize.get(app.srcdir / source)
        page = render(template, context)
        whole = "<!DOCTYPE html>" in page[:100]  # the theme also renders its buttons, one by one
        name = context.get("pagename", template)
        return protected(draw_icons(finish(page, name, sizes), icons)) if whole else page

    app.builder.templates.render = finished  # type: ignore[attr-defined]


def nothing_in_vain() -> None:
    """Each rewriting has found something in the book; else the theme has changed under it."""
    if idle := [reason for *_, reason in [*REWRITINGS, SEARCH_PAGE] if not applied[reason]]:
        raise ExtensionError(f"on no page of the book was there anything to mend: {idle}")


def setup(app: Sphinx) -> None:
    applied.clear()
    app.connect("builder-inited", rewrite_pages)
