"""HTML read tag by tag: what is replaced is named by its tag, and all the rest stays to the letter.

A page that the theme has finished, or a piece of one, is read once by the parser of the standard
library, which says at which letter a tag begins; a subclass notes what shall stand there instead.
"""

from __future__ import annotations

from html.parser import HTMLParser
from itertools import accumulate


class Editor(HTMLParser):
    """Notes replacements in a text; `edited()` reads it and makes them."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=False)
        self.text = text
        self.edits: list[tuple[int, int, str]] = []
        self._lines = [0, *accumulate(len(line) + 1 for line in text.split("\n"))]

    @property
    def here(self) -> int:
        """Where the tag or the text begins that is being handled."""
        line, letter = self.getpos()
        return self._lines[line - 1] + letter

    @property
    def tag(self) -> str:
        """The opening tag that is being handled, as it is written."""
        return self.get_starttag_text() or ""

    @property
    def behind(self) -> int:
        """Where the text goes on after this opening tag."""
        return self.here + len(self.tag)

    def after(self) -> int:
        """Where the text goes on after the closing tag that is being handled."""
        return self.text.index(">", self.here) + 1

    def replace(self, start: int, end: int, new: str) -> None:
        self.edits.append((start, end, new))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)

    def edited(self) -> str:
        """The text with its replacements; of two that overlap the one that begins first."""
        self.feed(self.text)
        self.close()
        done, at = [], 0
        for start, end, new in sorted(self.edits, key=lambda edit: (edit[0], edit[1])):
            if start >= at:
                done += [self.text[at:start], new]
                at = end
        return "".join([*done, self.text[at:]])
