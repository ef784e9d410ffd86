"""Take pictures of pages of the built site, for looking at.

    python -m scripts.check.screenshots                            every page
    python -m scripts.check.screenshots chapters/03_separation     only this one

They go to _build/screenshots as page-width-theme.png, full length, solutions unfolded; a long page
is cut into pieces of 2,400 pixels.
"""

from __future__ import annotations

import sys
from io import BytesIO

from PIL import Image

from scripts.book.build_book import BUILD, HTML, toc_pages
from scripts.check.browser import browser, load_images, opened, serve

FOLDER = BUILD / "screenshots"
WIDTHS, THEMES, PIECE = (1280, 380), ("light", "dark"), 2400


def main() -> None:
    pages = [name.removesuffix(".ipynb").removesuffix(".md") for name in sys.argv[1:]]
    FOLDER.mkdir(parents=True, exist_ok=True)
    with serve(HTML) as address, browser() as instance:
        for name in pages or toc_pages():
            stem = name.replace("/", "-")
            for old in FOLDER.glob(f"{stem}-*.png"):
                old.unlink()
            for width in WIDTHS:
                for theme in THEMES:
                    url = f"{address}/{name}.html"
                    with opened(instance, url, width=width, theme=theme) as page:
                        page.evaluate(
                            "() => document.querySelectorAll('details, .toggle-hidden').forEach("
                            "e => { e.open = true; e.classList.remove('toggle-hidden') })"
                        )
                        load_images(page)
                        picture = Image.open(BytesIO(page.screenshot(full_page=True)))
                    for part, top in enumerate(range(0, picture.height, PIECE), 1):
                        box = (0, top, picture.width, min(top + PIECE, picture.height))
                        picture.crop(box).save(FOLDER / f"{stem}-{width}-{theme}-{part}.png")
            print(f"{name}: {FOLDER}/{stem}-*.png", flush=True)


if __name__ == "__main__":
    main()
