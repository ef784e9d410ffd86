"""What a page weighs on the line of a reader."""

from __future__ import annotations

import functools
import gzip
import re
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote, urlsplit

COLD, SECOND, REQUESTS = 900_000, 300_000, 60  # compressed bytes of a first and of a second page
KEPT = re.compile(  # what any page leaves behind for the next: its frame, MathJax, its plain fonts
    r"/_static/(?!explorers|sections)|/vendor/.*\.m?js|MathJax_(Zero|Main-R|Math-I|Size1)"
)


@functools.cache
def weight(path: Path) -> int:
    """Bytes on the line: compressed, except what already is."""
    data = path.read_bytes()
    packed = path.suffix in (".png", ".woff", ".woff2")
    return len(data) if packed else len(gzip.compress(data, 6))


def burden(site: Path, addresses: Iterable[str]) -> tuple[int, int, int]:
    """Of all that was asked for: bytes on a first visit, as a second page, and requests."""
    paths = {unquote(urlsplit(a).path) for a in addresses if a.startswith("http")}
    each = {path: weight(site / path.removeprefix("/")) for path in paths}
    new = sum(size for path, size in each.items() if not KEPT.search(path))
    return sum(each.values()), new, len(paths)
