"""What the book changes in the HTML of the theme.

The theme leaves no other way to do this than to change what it has written. A page is read tag by
tag; each change has a reason, and says how often it must apply to a page, so that a new version of
the theme that no longer fits stops the build instead of passing unseen.
"""

from __future__ import annotations

import html
from collections import Counter
from typing import Any

import imagesize
from needle_html import Editor
from needle_icons import NO_ICON, Icons
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

# why, and how often on a page: a number, or None for any
REASONS: dict[str, tuple[str, int | None]] = {
    "theme": (
        "the theme is known before the first paint, and no choice made in an old menu of MathJax "
        "asks for files that are not there",
        1,
    ),
    "icons": ("1.5 MB of script that blocks the first text; icons are drawn in place", 1),
    "faces of icons": ("a style sheet and three fonts for a dozen icons", 4),
    "defer": ("nothing that these scripts do is needed before the text stands", None),
    "skip": ("the exercises are two keys away, and the first solution few more", None),
    "triangle": ("a triangle beside a page that has pages of its own says nothing aloud", None),
    "shortcut": ("who asks for the button by its name, Search, does not say Ctrl+K", None),
    "button": ("a button with a text is called by its text", 1),
    "role": ("a role that is withdrawn, and a list without items; both are paragraphs", None),
    "solution": ("a click on the title of a solution opens it, and leads nowhere else", None),
    "glued": (
        "no line begins with the comma after a formula or ends with the bracket before it",
        None,
    ),
    "id": ("an id stands once on a page", None),
    "viewport": ("said once is enough", None),
    "search": ("sections are ranked and quoted, not pages, see `needle_search.py`", None),
}
FORMULA = '<span class="math notranslate nohighlight">'
OPENING, CLOSING = "([“", ",.;:?!)]”"
TWICE = {"solution-content", "exercise-content", "proof-content"}
OF_SEARCH = ("_static/searchtools.js", "_static/language_data.js", "searchindex.js")

applied: Counter[str] = Counter()  # how often each change in the whole book


class Page(Editor):
    """A page of the theme, and what shall stand in it instead: a method for each kind of tag."""

    def __init__(self, page: str, name: str, sizes: dict[str, tuple[int, int]], icons: Icons):
        super().__init__(page)
        self.name, self.sizes, self.icons = name, sizes, icons
        self.count: Counter[str] = Counter()
        self.leaving: tuple[str, int, str] | None = None  # an element that goes: whence, instead
        self.in_head, self.in_lines, self.title = True, False, ""
        self.styled = self.glued = 0  # where the last style sheet and the last formula end
        self.place = ""  # "article", "h1" from the title on, "h2" from the first section on

    def note(self, reason: str, *edit: Any) -> None:
        """A change, made for this reason."""
        self.count[reason] += 1
        if edit:
            self.replace(*edit)

    def leaves(self, tag: str, instead: str = "") -> None:
        """This element goes, with all that is inside."""
        self.leaving = tag, self.here, instead

    def has(self, addition: str) -> str:
        """This tag with one attribute more."""
        return f"{self.tag.rstrip('>')} {addition}>"

    def lacks(self, name: str, value: str) -> str:
        """This tag with one attribute less."""
        return self.tag.replace(f' {name}="{value}"', "", 1)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        rule = getattr(self, f"start_{tag}", None)
        if rule and self.leaving is None:
            rule({name: value or "" for name, value in attrs})

    def handle_endtag(self, tag: str) -> None:
        if self.leaving is None:
            getattr(self, f"end_{tag}", lambda: None)()
        elif tag == self.leaving[0]:
            self.replace(self.leaving[1], self.after(), self.leaving[2])
            self.leaving = None

    def start_script(self, given: dict[str, str]) -> None:
        source = given.get("src", "")
        name = source.partition("_static/")[2]
        if given.get("data-cfasync") == "false":
            self.note("theme")
            self.leaves("script", BEFORE_PAINT)
        elif "/fontawesome/" in source and "/js/all.min.js" in source:
            self.note("icons")
            self.leaves("script")
        elif self.name == "search" and source in OF_SEARCH:
            self.note("search")
            ours = '<script type="module" src="_static/search.mjs"></script>'
            self.leaves("script", ours if source == OF_SEARCH[0] else "")
        elif self.in_head and list(given) == ["src"] and ".js" in name:
            if not name.startswith(("../", "documentation_options")):
                self.note("defer", self.here, self.here + 7, "<script defer")
        elif self.text.startswith("document.write(`", self.text.find("document", self.behind)):
            end = self.text.index("</script", self.behind)
            inside = Page(self.text[self.behind : end], self.name, self.sizes, self.icons)
            self.replace(self.behind, end, inside.edited())
            self.count += inside.count

    def start_link(self, given: dict[str, str]) -> None:
        if "/fontawesome/" in given.get("href", ""):
            self.note("faces of icons", self.here, self.behind, "")
        elif given.get("rel") == "stylesheet":
            self.styled = self.behind

    def start_meta(self, given: dict[str, str]) -> None:
        if given.get("content") == "width=device-width, initial-scale=1":
            self.note("viewport", self.here, self.behind, "")

    def end_head(self) -> None:
        """The text waits for styles, not for its face."""
        self.in_head = False
        up = "../" * self.name.count("/")
        faces = ("text", "text-bold", "label", *["text-italic"] * ("<em" in self.text))
        fonts = "".join(
            f'\n  <link rel="preload" href="{up}_static/fonts/{face}.woff2" as="font" '
            'type="font/woff2" crossorigin />'
            for face in faces
        )
        self.replace(self.styled, self.styled, fonts)

    def start_a(self, given: dict[str, str]) -> None:
        if self.title.startswith("Solution to"):
            self.note("solution", self.here, self.behind, "")
        elif given.get("href") == "#main-content" and '<section id="exercises"' in self.text:
            end = self.text.index("</a>", self.behind) + 4
            self.note("skip", end, end, ' <a href="#exercises">Skip to the exercises</a>')

    def end_a(self) -> None:
        if self.title.startswith("Solution to"):
            self.replace(self.here, self.after(), "")

    def start_p(self, given: dict[str, str]) -> None:
        begins = given.get("class") == "admonition-title"
        self.title = self.text[self.behind : self.behind + 20] if begins else ""

    def end_p(self) -> None:
        self.title = ""

    def start_button(self, given: dict[str, str]) -> None:
        if given.get("class", "").startswith("btn search-button-field"):
            self.note("button", self.here, self.behind, self.lacks("aria-label", "Search"))

    def start_summary(self, given: dict[str, str]) -> None:
        if not given and self.text.startswith('<span class="toctree-toggle"', self.behind):
            self.note("triangle", self.here, self.behind, self.has('aria-label="Its pages"'))

    def start_section(self, given: dict[str, str]) -> None:
        if given.get("id") in TWICE:
            self.note("id", self.here, self.behind, self.lacks("id", given["id"]))

    def start_div(self, given: dict[str, str]) -> None:
        role = given.get("role", "")
        if role == "doc-biblioentry" or (role == "list" and given.get("class") == "citation-list"):
            self.note("role", self.here, self.behind, self.lacks("role", role))

    def start_article(self, given: dict[str, str]) -> None:
        if 'class="math ' in self.text:
            self.replace(self.behind, self.behind, NO_SCRIPT)
            self.place = "article"

    def start_h1(self, given: dict[str, str]) -> None:
        self.place = "h1" if self.place == "article" else self.place

    def start_h2(self, given: dict[str, str]) -> None:
        self.place = "h2"

    def start_i(self, given: dict[str, str]) -> None:
        """An icon becomes a small picture in the page: neither font nor script is needed."""
        classes = given.get("class", "")
        names = [part[3:] for part in classes.split() if part.startswith("fa-")]
        if names:
            name = next(name for name in names if name not in NO_ICON)
            others = self.tag.partition(f'class="{classes}"')[2].rstrip(">")
            drawn = f'<svg class="icon {classes}"{others} aria-hidden="true" {self.icons[name]}'
            self.leaves(self.tag[1:].split()[0], drawn)

    def start_span(self, given: dict[str, str]) -> None:
        if given.get("class") == "search-button__kbd-shortcut":
            self.note("shortcut", self.here, self.behind, self.has('aria-hidden="true"'))
        elif self.tag == FORMULA:
            self.formula()
        else:
            self.start_i(given)

    def formula(self) -> None:
        """With its brackets and commas; above the first section also in letters until it is set.

        Nothing moves then: its TeX is longer, by a line or two of a page's opening.
        """
        text, begin = self.text, self.here
        end = text.index("</span>", begin)
        if self.place == "h1":
            letters = in_letters(html.unescape(text[self.behind : end]))
            new = self.has(f'data-letters="{html.escape(letters, quote=True)}"')
            self.replace(begin, self.behind, new)
        end = last = end + len("</span>")
        while text[begin - 1] in OPENING and begin > self.glued:
            begin -= 1
        while text[end] in CLOSING:
            end += 1
        if begin < self.here or end > last:
            self.replace(begin, begin, '<span class="glued">')
            self.note("glued", end, end, "</span>")
        self.glued = end

    def start_img(self, given: dict[str, str]) -> None:
        """Images load when they are near, in room that is kept for them."""
        folder, _, name = given.get("src", "").rpartition("/")
        if folder.endswith("_images"):
            width, height = self.sizes[name]
            kept = f'<img loading="lazy" width="{width}" height="{height}"'
            self.replace(self.here, self.here + len("<img"), kept)

    def start_dl(self, given: dict[str, str]) -> None:
        """The lines of a long signature: Sphinx makes a list of definitions without terms."""
        first = self.text.find("<", self.behind)
        if not given and self.text.startswith("<dd>", first):
            self.in_lines = True
            self.replace(self.here, first, '<span class="sig-lines">')

    def start_dd(self, given: dict[str, str]) -> None:
        if self.in_lines:
            self.replace(self.here, self.behind, '<span class="sig-line">')

    def end_dd(self) -> None:
        if self.in_lines:
            self.replace(self.here, self.after(), "</span>")

    def end_dl(self) -> None:
        self.end_dd()
        self.in_lines = False


def finish(page: str, name: str, sizes: dict[str, tuple[int, int]], icons: Icons) -> str:
    """A page of HTML with every change; an error where one does not fit."""
    editor = Page(page, name, sizes, icons)
    done = editor.edited()
    applied.update(editor.count)
    for reason, (why, times) in REASONS.items():
        wanted = 3 * (name == "search") if reason == "search" else times
        if wanted is not None and editor.count[reason] != wanted:
            found = f"{editor.count[reason]} times instead of {wanted}"
            raise ExtensionError(f"{name}: {found}: {reason} ({why})")
    return done


def rewrite_pages(app: Sphinx) -> None:
    """Pass every page through `finish` before it is written."""
    if app.builder.format != "html":
        return
    render = app.builder.templates.render  # type: ignore[attr-defined]
    sizes: dict[str, tuple[int, int]] = {}
    icons = Icons()

    def finished(template: str, context: dict[str, Any]) -> str:
        for source, name in app.builder.images.items():
            if name not in sizes:
                sizes[name] = imagesize.get(app.srcdir / source)
        page = render(template, context)
        whole = "<!DOCTYPE html>" in page[:100]  # the theme also renders its buttons, one by one
        name = context.get("pagename", template)
        return protected(finish(page, name, sizes, icons)) if whole else page

    app.builder.templates.render = finished  # type: ignore[attr-defined]


def nothing_in_vain() -> None:
    """Each change was made somewhere in the book; else the theme has changed under it."""
    if idle := [why for reason, (why, _) in REASONS.items() if not applied[reason]]:
        raise ExtensionError(f"on no page of the book was there anything to mend: {idle}")


def setup(app: Sphinx) -> None:
    applied.clear()
    app.connect("builder-inited", rewrite_pages)
