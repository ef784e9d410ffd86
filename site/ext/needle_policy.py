"""What a page may load and run: files of this site, and the scripts that it was built with.

A host of static pages sets no headers, so the policy stands in the page. A script within a page
runs only if its hash is listed; styles may stand anywhere, since MathJax and figures make them.
Where Python runs in the page, its worker comes from a file of the site, and compiles WebAssembly.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re

SCRIPT = re.compile(r"<script(?P<about>[^>]*)>(?P<text>.*?)</script>", re.S)
HANDLER = re.compile(r"""<[a-z][^<>]*?\son[a-z]+=(?P<quote>["'])(?P<text>.*?)(?P=quote)""", re.S)
DATA = re.compile(r"""type=["']?(?!text/javascript|module)[\w/.+-]+""")
HEAD = re.compile(r'<head[^>]*>(\s*<meta charset="[^"]*" ?/?>)?')  # which comes within 1024 bytes
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


def policy(page: str) -> str:
    """The policy of a finished page."""
    scripts = [
        digest(found["text"])
        for found in SCRIPT.finditer(page)
        if found["text"].strip()
        and "src=" not in found["about"]
        and not DATA.search(found["about"])
    ]
    markup = SCRIPT.sub("", page)
    handlers = [digest(html.unescape(found["text"])) for found in HANDLER.finditer(markup)]
    allowed = ["'self'", *dict.fromkeys(scripts)]
    if handlers:
        allowed += ["'unsafe-hashes'", *dict.fromkeys(handlers)]
    rules = {**FIXED, "script-src": " ".join(allowed)}
    if LIVE in page:
        rules["script-src"] += " blob: 'wasm-unsafe-eval'"
        rules["worker-src"] += " blob:"
    return "; ".join(f"{name} {value}" for name, value in rules.items())


def protected(page: str) -> str:
    """The page with its policy, which comes before all that it rules.

    >>> protected("<head><title>A</title></head>")[:55]
    '<head><meta http-equiv="Content-Security-Policy" conten'
    """
    tag = f'<meta http-equiv="Content-Security-Policy" content="{policy(page)}" />'
    return HEAD.sub(lambda head: f"{head[0]}{tag}", page, count=1)
