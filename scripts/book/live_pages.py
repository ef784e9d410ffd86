"""Put beside the pages what a browser needs to run them: parts, packages, functions of the book.

What does not depend on the book is fetched by `scripts/book/live_assets.py`; here the functions of
`needle` and `utils` are packed, the files of the page are added, and it is written down what each
chapter needs.
"""

from __future__ import annotations

import io
import json
import shutil
import sys
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from scripts.book.closure import home, reached
from scripts.book.live_assets import EPOCH, ROOT, SITE, WANTED, complete, save, sha256
from scripts.book.live_licences import table

PARTS = ROOT / "site" / "_live"
ALWAYS = {"numpy", "scipy", "matplotlib", "joblib", "threadpoolctl", "tqdm", "cloudpickle"}
TESTED = ("explorer_points", "own_", "fresh_")  # results that no page reads
OPTIONAL = {"matplotlib_inline", "anywidget", "ipywidgets", "traitlets", "IPython"}


def needs(notebook: Path, entries: dict[str, Any]) -> tuple[list[str], list[str]]:
    """The packages of the lock that a chapter needs, and the modules that are nowhere in it."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    lines = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    modules = reached("\n".join(lines), at_once=True)
    asked = {module.partition(".")[0] for module in modules if not home(module)}
    known = {module: name for name, entry in entries.items() for module in entry["imports"]}
    packages = {known[module] for module in asked if module in known}
    missing = asked - set(known) - sys.stdlib_module_names - OPTIONAL
    return sorted(packages | ALWAYS), sorted(missing)


def closure(names: list[str], entries: dict[str, Any]) -> set[str]:
    found: set[str] = set()
    for name in names:
        found |= {name} | closure(entries[name]["depends"], entries)
    return found


def book_zip() -> bytes:
    """The functions of the book with their stored results, and what runs the cells."""
    target = io.BytesIO()
    folders = [ROOT / name for name in ("needle", "utils", "experiments", "exercises")]
    paths = [path for folder in folders for path in sorted(folder.rglob("*"))]
    files = {
        path.relative_to(ROOT): path
        for path in paths
        if path.suffix != ".toml" and not path.name.startswith(TESTED)
    }
    files |= {Path("_live") / path.name: path for path in sorted(PARTS.glob("*.py"))}
    with zipfile.ZipFile(target, "w") as packed:
        for name, path in files.items():
            if path.is_file() and "__pycache__" not in path.parts:
                entry = zipfile.ZipInfo(name.as_posix(), EPOCH)
                packed.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED, 9)
    return target.getvalue()


def licences() -> str:
    """What the site ships for the browser's Python, and on whose terms, in Markdown."""
    if not WANTED or not SITE.is_dir():
        return "This copy of the site was built without Python for the browser.\n"
    parts = sum(path.stat().st_size for path in PARTS.glob("*.[mc]*s"))
    return table(SITE, len(book_zip()) + parts)


def stage(
    source: Path,
    notebooks: Iterable[Path],
    seconds: dict[str, list[float]],
    preview: bool = False,
) -> None:
    """Put beside the sources of the pages what the site serves and what the button says."""
    if not WANTED:
        return
    if not complete():
        if preview:
            print(
                "a preview without Python for the browser: scripts/book/live_assets.py fetches it"
            )
            return
        raise SystemExit("Python for the browser is not complete: run scripts/book/live_assets.py")
    target = source / "_live" / "live"
    shutil.copytree(SITE, target)
    for path in sorted(PARTS.iterdir()):
        if path.suffix in (".mjs", ".css"):
            shutil.copy(path, target)
    save(target / "book.zip", book_zip())
    contents = {path.name: path.read_bytes() for path in sorted(target.iterdir())}
    manifest = {n: {"sha256": sha256(c), "size": len(c)} for n, c in contents.items()}
    save(target / "manifest.json", json.dumps(manifest, indent=1).encode())
    entries = json.loads(contents["packages.json"])["packages"]
    first = sum(len(contents[n]) for n in contents if n.startswith(("pyodide", "python", "book")))
    chapters = {}
    for path in notebooks:
        packages, missing = needs(path, entries)
        wheels = sum(manifest[entries[n]["file_name"]]["size"] for n in closure(packages, entries))
        chapters[f"chapters/{path.stem}"] = {
            **{"packages": packages, "missing": missing, "bytes": first + wheels},
            "seconds": seconds.get(path.stem, []),
        }
    version = sha256(b"".join(contents[n] for n in contents if n.endswith((".mjs", ".css"))))[:12]
    save(source / "_live.json", json.dumps({"version": version, "chapters": chapters}).encode())
