"""Slides from the executed chapters, with reveal.js: HTML without a network, and PDF.

A file of `site/slides/` is a chapter's talk in Markdown: slides between lines of three dashes,
what the speaker says after `Notes:`, and in place of pictures the name of a figure or an explorer
of the chapter, `![](figure-3-1)` or `![](explorer:needle)`. These are taken from the built page, so
slides show what the book shows. `make book` writes the HTML, `make slides` prints it.
"""

from __future__ import annotations

import html
import re
import shutil
import sys
from pathlib import Path
from typing import Any

from bs4 import BeautifulSoup

from scripts.book import plain_html
from scripts.book.browser_assets import SITE
from scripts.book.run_notebooks import ROOT
from scripts.check.browser import browser, serve, settle

SOURCES = ROOT / "site" / "slides"
HTML = ROOT / "_build" / "html"
PICTURE = re.compile(r'<p><img src="(figure-[\w-]+|explorer:\w+)" alt="" ?/></p>')
FIGURE = r'<figure[^>]*\bid="{}"[^>]*>(.*?)</figure>'
STYLES = (
    "vendor/reveal/reveal.css",
    "_static/type.css",
    "_static/explorers/explore.css",
    "slides/slides.css",
)
SCRIPTS = ("vendor/reveal/reveal.js", "vendor/reveal/notes.js", "_static/explore.js")
START = """// an explorer is as large as its slide allows
const fit = () => {
  for (const place of document.querySelectorAll("[data-explorer]")) {
    place.style.zoom = 1;
    if (place.offsetHeight) place.style.zoom = Math.min(1.2, 560 / place.offsetHeight);
  }
};
addEventListener("DOMContentLoaded", () => Reveal.initialize({
  width: 1280, height: 720, margin: 0.03, slideNumber: true, transition: "none",
  pdfSeparateFragments: false, center: false, plugins: [RevealNotes],
  showNotes: new URLSearchParams(location.search).has("notes") ? "separate-page" : false,
}).then(() => {
  Reveal.on("slidechanged", fit);
  const drawn = { attributeFilter: ["data-ready"], subtree: true };
  new MutationObserver(fit).observe(document.body, drawn);
  fit();
}));"""

DRAWN = """() => [...document.querySelectorAll("[data-explorer]")].every(place =>
    [...place.querySelectorAll("svg")].some(svg => svg.getBoundingClientRect().width > 99))"""


def speaker_script(text: str) -> str:
    """The script of reveal's window for the speaker, which the policy of the page must know.

    It stands in a template literal, in which only two characters are escaped.
    """
    found = re.search(r"<script>(.*?)<\\/script>", text, re.S)
    if not found or "${" in found[1] or re.search(r"\\[^\\/]", found[1].replace(r"\\", "")):
        raise SystemExit("reveal.js has changed its notes; mend scripts/book/slides.py")
    return found[1].replace(r"\/", "/").replace("\\\\", "\\")


def picture(name: str, chapter: str, address: str) -> str:
    """A figure of a built page, or an explorer, with its number."""
    if name.startswith("explorer:"):
        place = BeautifulSoup(chapter, "html.parser").select_one(f"[data-explorer='{name[9:]}']")
        if place is None:
            raise SystemExit(f"{address} has no {name}")
        return str(place)
    found = re.search(FIGURE.format(name), chapter, re.S)
    if not found:
        raise SystemExit(f"{address} has no {name}")
    plates = re.sub(r"<figcaption.*?</figcaption>", "", found[1], flags=re.S)
    plates = plates.replace('loading="lazy" ', "")
    number = name.removeprefix("figure-").replace("-", ".").upper()
    link = f'<a href="../{address}#{name}">Figure {number}</a>'
    return f'<figure class="book-figure">{plates}<figcaption>{link}</figcaption></figure>'


def slide(source: str, chapter: str, address: str) -> str:
    """One slide, with what the speaker says."""
    shown, _, said = source.partition("\nNotes:")
    if not said.strip():
        raise SystemExit(f"a slide of {address} has no notes: {shown.strip()[:40]}")
    body = PICTURE.sub(
        lambda match: picture(match[1], chapter, address), plain_html.rendered(shown.strip())
    )
    notes = f'<aside class="notes">{plain_html.rendered(said.strip())}</aside>'
    return f'<section>\n<div class="sheet">{body}</div>{notes}\n</section>'


def talk(source: Path, site: Path) -> str:
    """The slides of a chapter as a page of the site."""
    address = f"chapters/{source.stem}.html"
    chapter = (site / address).read_text(encoding="utf-8")
    parts = source.read_text(encoding="utf-8").split("\n---\n")
    slides = "\n".join(slide(part, chapter, address) for part in parts)
    title = html.unescape(parts[0].strip().splitlines()[0].lstrip("# "))
    head = ['<link rel="icon" href="../_static/needle.svg"/>']
    head += [f'<link rel="stylesheet" href="../{name}"/>' for name in STYLES]
    head += [f'<script src="../{name}" defer></script>' for name in SCRIPTS]
    head.append(f"<script>{START}</script>")
    body = f'<main class="reveal"><div class="slides">\n{slides}\n</div></main>'
    return plain_html.page(title, "\n".join(head), body, base="../")


def write_slides(site: Path = HTML) -> list[Path]:
    """The slides of all chapters that have some, below a built site."""
    sys.path.insert(0, str(ROOT / "site" / "ext"))
    from needle_policy import digest, protected

    target = site / "slides"
    target.mkdir(exist_ok=True)
    shutil.copy(SOURCES / "slides.css", target)
    notes = SITE / "vendor" / "reveal" / "notes.js"
    known = digest(speaker_script(notes.read_text(encoding="utf-8"))) if notes.exists() else ""
    paths = []
    for source in sorted(SOURCES.glob("*.md")):
        if not (site / "chapters" / f"{source.stem}.html").exists():
            continue  # a small book, built by a test
        page = protected(talk(source, site)).replace(
            "script-src 'self'", f"frame-src 'self'; script-src 'self' {known}".rstrip(), 1
        )
        paths.append(target / f"{source.stem}.html")
        paths[-1].write_text(page, encoding="utf-8")
    return paths


def printed(instance: Any, address: str) -> bytes:
    """The slides as PDF, a page a slide, by reveal's own view for print."""
    context = instance.new_context(viewport={"width": 1280, "height": 720})
    page = context.new_page()
    page.goto(f"{address}?view=print")
    page.wait_for_selector(".pdf-page")
    settle(page)
    page.wait_for_function(DRAWN)
    page.evaluate("() => fit()")
    data: bytes = page.pdf(prefer_css_page_size=True, print_background=True)
    context.close()
    return data


def main() -> None:
    if not (HTML / "index.html").exists():
        raise SystemExit("there is no built site: run `make book` first")
    with serve(HTML) as host, browser() as instance:
        for path in write_slides():
            path.with_suffix(".pdf").write_bytes(printed(instance, f"{host}/slides/{path.name}"))
            print(f"{path.with_suffix('.pdf')}", flush=True)
    print("in a browser: `make serve`, then /slides/ and the name of a chapter")


if __name__ == "__main__":
    main()
