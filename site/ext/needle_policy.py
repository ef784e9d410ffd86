"""What a page may load and run: files of this site, and the scripts that it was built with.

A host of static pages sets no headers, so the policy stands in the page. A script within a page
runs only if its hash is listed; styles may stand anywhere, since MathJax and figures make them.
Where Python runs in the page, its worker comes from a file of the site, and compiles WebAssembly.
"""

from __future__ import annotations

import base64
import hashlib

from needle_html import Editor

RUNS = {"", "text/javascript", "module"}  # types of a script; all others are data
LIVE = 'data-live="start"'
FIXED = {
    "default-src": "'none'",
    "style-src": "'self' 'unsafe-inline'",
    "img-src": "'self' data: blob:",
    "font-src": "'self' data:",
    "connect-src": "'self'",
    "worker-src": "'self'",
    "media-src": "'self' data: blob:",
    "base-uri": "'self'",
    "form-action": "'self'",
}


def digest(text: str) -> str:
    """A script as a policy names it.

    >>> digest("alert(1)")
    "'sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI='"
    """
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


class Finished(Editor):
    """What runs in a finished page, and where its policy goes."""

    def __init__(self, page: str) -> None:
        super().__init__(page)
        self.scripts: list[str] = []
        self.handlers: list[str] = []
        self.head = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "head" or (tag == "meta" and "charset" in given and not self.edits):
            self.head = self.behind  # the encoding comes within the first 1024 bytes
        if tag == "script" and "src" not in given and (given.get("type") or "") in RUNS:
            text = self.text[self.behind : self.text.index("</script>", self.behind)]
            self.scripts += [digest(text)] * bool(text.strip())
        self.handlers += [digest(text or "") for name, text in attrs if name.startswith("on")]


def policy(page: Finished) -> str:
    """The policy of a finished page."""
    allowed = ["'self'", *dict.fromkeys(page.scripts)]
    if page.handlers:
        allowed += ["'unsafe-hashes'", *dict.fromkeys(page.handlers)]
    rules = {**FIXED, "script-src": " ".join(allowed)}
    if LIVE in page.text:
        rules["script-src"] += " blob: 'wasm-unsafe-eval'"
        rules["worker-src"] += " blob:"
    return "; ".join(f"{name} {value}" for name, value in rules.items())


def protected(page: str) -> str:
    """The page with its policy, which comes before all that it rules.

    >>> protected("<head><title>A</title></head>")[:55]
    '<head><meta http-equiv="Content-Security-Policy" conten'
    """
    finished = Finished(page)
    finished.edited()
    tag = f'<meta http-equiv="Content-Security-Policy" content="{policy(finished)}" />'
    return page[: finished.head] + tag + page[finished.head :]
