"""What the wheel needs and what the site ships, part by part, in CycloneDX: `make sbom`."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, metadata, requires
from pathlib import Path
from typing import Any

from scripts.book import browser_assets, live_assets
from scripts.book.live_licences import terms
from scripts.book.run_notebooks import ROOT, write

FOLDER = ROOT / "_build" / "sbom"
NAME = "attention-and-the-needle"
LICENCES = ("License-Expression", "License")


def part(kind: str, name: str, version: str, licence: str = "", **digests: str) -> dict[str, Any]:
    """One component; `kind` is where it comes from, pypi or npm."""
    place = f"pkg:{kind}/{name.lower().replace('@', '%40')}@{version}"
    found: dict[str, Any] = {"type": "library", "name": name, "version": version, "purl": place}
    if digests:
        found["hashes"] = [{"alg": alg, "content": text} for alg, text in digests.items()]
    if licence and len(licence) < 60:
        found["licenses"] = [{"license": {"name": licence}}]
    return found


def needed(name: str, seen: set[str]) -> Iterator[str]:
    """The packages that a package installs, and theirs, without extras."""
    for line in requires(name) or ():
        other = re.split(r"[^\w.-]", line)[0]
        if "extra ==" not in line and other.lower() not in seen:
            try:
                metadata(other)
            except PackageNotFoundError:  # of another system
                continue
            seen.add(other.lower())
            yield other
            yield from needed(other, seen)


def wheel() -> list[dict[str, Any]]:
    """What an installation of the wheel brings along, as installed here."""
    found = []
    for name in sorted(needed(NAME, set()), key=str.lower):
        about = metadata(name)
        licence = next((about[key] for key in LICENCES if key in about), "")
        found.append(part("pypi", about["Name"], about["Version"], licence))
    return found


def page() -> list[dict[str, Any]]:
    """What the site ships of others: from npm, and as wheels for the browser."""
    found = []
    for name, package in json.loads(browser_assets.LOCK.read_text())["packages"].items():
        if package.get("for") != "tests":
            digest = base64.b64decode(package["integrity"].partition("-")[2]).hex()
            found.append(part("npm", name, package["version"], **{"SHA-512": digest}))
    core = json.loads(live_assets.LOCK.read_text())["core"]
    digest = base64.b64decode(core["integrity"].partition("-")[2]).hex()
    found.append(part("npm", core["name"], core["version"], "MPL-2.0", **{"SHA-512": digest}))
    for path in sorted(live_assets.SITE.glob("*.whl")):
        name, version, licence = terms(path)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        found.append(part("pypi", name, version, licence, **{"SHA-256": digest}))
    return found


def bill(name: str, parts: list[dict[str, Any]]) -> dict[str, Any]:
    """A file of CycloneDX 1.6."""
    about = metadata(NAME)
    whole = {"type": "application", "name": name, "version": about["Version"]}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": whole},
        "components": parts,
    }


def main() -> None:
    for name, parts in (("wheel", wheel()), ("page", page())):
        path: Path = FOLDER / f"{name}.cdx.json"
        write(path, json.dumps(bill(f"{NAME}-{name}", parts), indent=1) + "\n")
        print(f"{path.relative_to(ROOT)}: {len(parts)} parts")


if __name__ == "__main__":
    main()
