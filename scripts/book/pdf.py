"""The whole book as one PDF, printed by the browser: `make pdf` (no TeX needed).

Each page of the built site is printed by itself. The pieces are put together here: numbered
throughout, with a table of contents, bookmarks, and links that lead to places in the same file.
"""

from __future__ import annotations

import html
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import urldefrag

import yaml
from pypdf import PageObject, PdfReader, PdfWriter
from pypdf.generic import ArrayObject, DictionaryObject, FloatObject, NameObject, NullObject

from scripts.book.build_book import BUILD, HTML, toc_pages
from scripts.book.run_notebooks import ROOT
from scripts.check.browser import browser, opened, serve

TARGET = BUILD / "attention-and-the-needle.pdf"
TITLE = yaml.safe_load((ROOT / "_config.yml").read_text())["title"]
PAPER = {
    "format": "A4",
    "margin": {"top": "16mm", "bottom": "20mm", "left": "17mm", "right": "17mm"},
}
SCALE, WIDTH = 0.85, 780  # of the text, and the width of the paper's text in its pixels
SETTLED = "() => new Promise(done => requestAnimationFrame(() => setTimeout(done, 50)))"
# Chromium loads by itself what waits for a reader to come near, but waits two seconds for a picture
# that was told to wait no longer
LOADED = """() => Promise.all([...document.images].map(image => {
    const ahead = new Image();
    ahead.src = image.src;
    return ahead.decode();
}))"""
HEADINGS = """() => {
    const told = heading => heading.innerText.replace(/#$/, "").replace(/\\s+/g, " ").trim();
    const sections = [...document.querySelectorAll("article section > h2")];
    const named = sections.map(heading => [told(heading), heading.parentElement.id]);
    return [told(document.querySelector("article h1")), ...named];
}"""
# Chromium gives a name to a place only when something on the page links to it
NAME_ALL = """() => {
    const box = document.createElement("div");
    box.style = "position: absolute; top: 0; left: 0; font-size: 1px; line-height: 1px; opacity: 0";
    for (const { id } of document.querySelectorAll("article [id]")) {
        const link = box.appendChild(document.createElement("a"));
        link.href = `#${id}`;
        link.textContent = ".";
    }
    document.querySelector("article").prepend(box);
}"""
# The pages below a page, such as those of the modules, are printed with it; their first places
GATHER = """async addresses => {
    const article = document.querySelector("article"), first = {};
    for (const address of addresses) {
        const text = await (await fetch(address)).text();
        const section = new DOMParser().parseFromString(text, "text/html")
            .querySelector("article section");
        for (const title of section.querySelectorAll("h1")) {
            const lower = document.createElement("h2");
            lower.append(...title.childNodes);
            title.replaceWith(lower);
        }
        for (const link of section.querySelectorAll("a[href]"))
            link.href = new URL(link.getAttribute("href"), new URL(address, location.href));
        article.append(document.adoptNode(section));
        first[address] = section.id;
    }
    await window.MathJax?.typesetPromise?.();
    return first;
}"""
CONTENTS = """<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>{title}</title><style>
body {{ font: 10.5pt/1.5 sans-serif; color: #222 }}
h1 {{ margin: 6cm 0 1cm; font-size: 30pt }} h2 {{ break-before: page }}
a {{ color: inherit; text-decoration: none; display: flex; gap: .6em }}
a span:last-child {{ margin-left: auto }}
.chapter {{ margin-top: .5em; font-weight: bold }} .section {{ padding-left: 1.4em }}
</style><h1>{title}</h1><p>{about}</p><h2>Contents</h2>{lines}</html>"""
FOOT = """<!DOCTYPE html><meta charset="utf-8"><style>
@page {{ size: A4; margin: 0 }} body {{ margin: 0; font: 8pt sans-serif; color: #555 }}
div {{ position: relative; height: 297mm; break-after: page }}
p {{ position: absolute; bottom: 9mm; left: 17mm; right: 17mm; margin: 0;
     display: flex; justify-content: space-between }}
</style>{pages}"""


@dataclass
class Piece:
    """One page of the site, printed."""

    name: str
    reader: PdfReader
    title: str
    sections: list[tuple[str, str]]  # title and id of its sections of the second level
    start: int = 0  # its first page in the whole
    places: dict[str, Any] = field(default_factory=dict)  # id → place in the piece
    below: dict[str, str] = field(default_factory=dict)  # pages printed with it, their first place

    def page_of(self, identifier: str) -> int:
        place = self.places.get(identifier)
        number = self.reader.get_destination_page_number(place) if place is not None else 0
        return self.start + (number or 0)


def printed(instance: Any, host: str, name: str) -> Piece:
    """Print one page, light, everything unfolded, all its places named."""
    with opened(instance, f"{host}/{name}.html") as page:
        inside = sorted(path.stem for path in (HTML / name).glob("*.html"))
        below = page.evaluate(GATHER, [f"{name}/{stem}.html" for stem in inside])
        page.evaluate(LOADED)
        page.emulate_media(media="print")
        page.evaluate("() => window.book?.read?.('code')")  # the book holds its programs
        page.add_style_tag(content="#jb-print-toc { display: none !important }")
        page.set_viewport_size({"width": WIDTH, "height": 1000})  # formulas are fitted to the paper
        page.evaluate(SETTLED)
        title, *sections = page.evaluate(HEADINGS)
        page.evaluate(NAME_ALL)
        data = page.pdf(**PAPER, scale=SCALE, print_background=True)  # joined, tags would be lost
    reader = PdfReader(BytesIO(data))
    places = {key.lstrip("/"): place for key, place in reader.named_destinations.items()}
    names = {address.removesuffix(".html"): place for address, place in below.items()}
    return Piece(name, reader, title, sections, places=places, below=names)


def contents(instance: Any, pieces: list[Piece], host: str) -> PdfReader:
    """The title and the table of contents."""

    def line(kind: str, title: str, address: str, page: int) -> str:
        text = f"<span>{html.escape(title)}</span><span>{page + 1}</span>"
        return f'<div class="{kind}"><a href="{host}/{address}">{text}</a></div>'

    lines = []
    for piece in pieces:
        lines.append(line("chapter", piece.title, f"{piece.name}.html", piece.start))
        for title, place in piece.sections if piece.name.startswith("chapters/") else ():
            lines.append(line("section", title, f"{piece.name}.html#{place}", piece.page_of(place)))
    about = "Every number in this book was computed by the code printed beside it."
    page = instance.new_page()
    page.set_content(CONTENTS.format(title=html.escape(TITLE), about=about, lines="".join(lines)))
    data = page.pdf(**PAPER, print_background=True)
    page.close()
    return PdfReader(BytesIO(data))


def feet(instance: Any, names: list[str]) -> list[PageObject]:
    """For every page its foot: of which chapter, and its number."""
    pages = "".join(
        f"<div><p><span>{html.escape(name)}</span><span>{number}</span></p></div>"
        for number, name in enumerate(names, 1)
    )
    page = instance.new_page()
    page.set_content(FOOT.format(pages=pages))
    data = page.pdf(prefer_css_page_size=True)
    page.close()
    return list(PdfReader(BytesIO(data)).pages)


def links(page: PageObject) -> Iterator[DictionaryObject]:
    for reference in page.get("/Annots", ()):
        note = reference.get_object()
        if note.get("/Subtype") == "/Link":
            yield note


def lead(note: DictionaryObject, own: Piece | None, pieces: dict[str, Piece], host: str) -> Any:
    """The piece and the place a link leads to, when that is in the book."""
    action = note.get("/A", DictionaryObject()).get_object()
    if "/Dest" in note or "/D" in action:
        return own, str(note.get("/Dest") or action["/D"]).lstrip("/")
    address, place = urldefrag(str(action.get("/URI", "")))
    name = address.removeprefix(f"{host}/").removesuffix(".html")
    if not address.startswith(host):
        return None, place
    above = next((piece for piece in pieces.values() if name in piece.below), None)
    return (above, place or above.below[name]) if above else (pieces.get(name), place)


def joined(front: PdfReader, pieces: list[Piece], feet_of: Any, host: str) -> PdfWriter:
    """All pages in order, with feet, bookmarks, and links that stay in the file."""
    writer = PdfWriter()
    by_name = {piece.name: piece for piece in pieces}
    owners: list[Piece | None] = [None] * len(front.pages)
    for reader, owner in [(front, None), *((piece.reader, piece) for piece in pieces)]:
        for page in reader.pages:
            writer.add_page(page)
        if owner:
            owners += [owner] * len(reader.pages)
    names = [owner.title if owner else TITLE for owner in owners]
    for page, foot in zip(writer.pages, feet_of(names), strict=True):
        page.merge_page(foot)
        page.compress_content_streams()
    for page, owner in zip(writer.pages, owners, strict=True):
        for note in list(links(page)):
            target, identifier = lead(note, owner, by_name, host)
            if target is None:
                if str(note.get("/A", {}).get("/URI", "")).startswith(host):  # slides: not on paper
                    page["/Annots"].remove(note.indirect_reference)
                continue
            place = target.places.get(identifier)
            top = place.top if place is not None else None
            height = FloatObject(top) if isinstance(top, int | float) else NullObject()
            where = writer.pages[target.page_of(identifier)].indirect_reference
            for key in ("/A", "/Dest"):
                note.pop(key, None)
            note[NameObject("/Dest")] = ArrayObject(
                [where, NameObject("/XYZ"), NullObject(), height, NullObject()]
            )
    for piece in pieces:
        mark = writer.add_outline_item(title=piece.title, page_number=piece.start)
        for title, place in piece.sections:
            writer.add_outline_item(title=title, page_number=piece.page_of(place), parent=mark)
    writer.add_metadata({"/Title": TITLE})
    return writer


def book(names: list[str], target: Path, chromium: Any = None) -> Path:
    """Print pages of the built site into one file, by a browser that is open or one of its own."""
    with serve(HTML) as host, nullcontext(chromium) if chromium else browser() as instance:
        pieces = []
        for name in names:
            pieces.append(printed(instance, host, name))
            print(f"{name}: {len(pieces[-1].reader.pages)} pages", flush=True)
        front = contents(instance, pieces, host)
        start = len(front.pages)
        for piece in pieces:
            piece.start, start = start, start + len(piece.reader.pages)
        again = contents(instance, pieces, host)  # now that the numbers are known
        if len(again.pages) != len(front.pages):
            raise SystemExit("the table of contents changed its length with its numbers")
        writer = joined(again, pieces, lambda all_names: feet(instance, all_names), host)
    target.parent.mkdir(parents=True, exist_ok=True)
    writer.compress_identical_objects()
    writer.write(target)
    print(f"{len(writer.pages)} pages: {target}")
    return target


if __name__ == "__main__":
    if not (HTML / "index.html").exists():
        sys.exit("there is no built site: run `make book` first")
    book(sys.argv[1:] or toc_pages(), TARGET)
