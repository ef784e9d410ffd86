"""The licences of what the site ships for the Python in the reader's browser."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path

from scripts.book.live_assets import LOCK

# Libraries of others that are compiled into the files, which do not always say so themselves.
INSIDE = {
    "Pyodide": {
        "CPython and its standard library": "PSF-2.0",
        "Emscripten, musl, libffi, Expat": "MIT",
        "zlib": "Zlib",
        "bzip2": "bzip2-1.0.6",
        "XZ Utils (liblzma)": "0BSD",
        "Zstandard": "BSD-3-Clause",
        "mpdecimal": "BSD-2-Clause",
        "SQLite": "public domain",
    },
    "scipy": {
        "OpenBLAS with LAPACK": "BSD-3-Clause",
        "SuperLU, ARPACK, UNU.RAN, DUCC FFT": "BSD-3-Clause",
        "HiGHS": "MIT",
        "Boost.Math": "BSL-1.0",
        "Qhull": "Qhull",
    },
    "scikit-learn": {"LIBSVM, LIBLINEAR": "BSD-3-Clause"},
    "matplotlib": {
        "FreeType": "FTL",
        "Anti-Grain Geometry": "AGG 2.4",
        "Qhull": "Qhull",
        "fonts DejaVu and STIX": "Bitstream Vera; STIX Fonts User License",
    },
    "pillow": {
        "libjpeg": "IJG",
        "libtiff": "libtiff",
        "libwebp": "BSD-3-Clause",
        "FreeType": "FTL",
    },
}
AFTER = """
Inside these files are compiled, besides:

"""
LAST = """
Pyodide's source and licence are at [github.com/pyodide/pyodide](https://github.com/pyodide/pyodide),
those of CPython and of what it includes at [docs.python.org](https://docs.python.org/3/license.html).
"""


def terms(wheel: Path) -> tuple[str, str, str]:
    """Name, version and licence, as a wheel states them."""
    with zipfile.ZipFile(wheel) as packed:
        path = next(name for name in packed.namelist() if name.endswith(".dist-info/METADATA"))
        head = packed.read(path).decode().split("\n\n")[0]
    fields = [r"License-Expression: (.+)", r"Classifier: License :: .+ :: (.+)", r"License: (.+)"]
    found = [match for field in fields if (match := re.search(rf"^{field}$", head, re.M))]
    name, version = (re.search(rf"^{key}: (.+)$", head, re.M) for key in ("Name", "Version"))
    assert name and version, wheel.name
    return name[1], version[1], found[0][1] if found else "see its licence file"


def table(site: Path, ours: int) -> str:
    """Everything in a folder that the site ships, and `ours` bytes of the book, in Markdown."""
    core = json.loads(LOCK.read_text())["core"]
    wheels = sorted(site.glob("*.whl"), key=lambda path: path.name.lower())
    others = [path for path in site.iterdir() if path not in wheels]
    rows = [(("Pyodide", core["version"], "MPL-2.0"), others)]
    rows += [(terms(wheel), [wheel]) for wheel in wheels]
    lines = ["| what | version | licence | MB |", "| --- | --- | --- | ---: |"]
    for row, files in rows:
        lines.append(f"| {' | '.join(row)} | {sum(f.stat().st_size for f in files) / 1e6:.2f} |")
    lines.append(
        f"| this book's functions and its part of the page | | BSD-3-Clause | {ours / 1e6:.2f} |"
    )
    lines += [AFTER, "| library | licence | in |", "| --- | --- | --- |"]
    for place, libraries in INSIDE.items():
        lines += [f"| {name} | {licence} | {place} |" for name, licence in libraries.items()]
    return "\n".join(lines) + "\n" + LAST
