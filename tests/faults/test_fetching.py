"""What set-up fetches, from a registry that fails in every way: one line, and what to do."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import shutil
import tarfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from scripts.book import browser_assets, live_assets

pytestmark = pytest.mark.slow


def archive(text: str) -> bytes:
    """A package with one file, as npm packs it."""
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w:gz") as packed:
        for name, content in (
            ("package.json", '{"name": "straw", "version": "1.0.0"}'),
            ("a.js", text),
        ):
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size = len(content)
            packed.addfile(entry, io.BytesIO(content.encode()))
    return target.getvalue()


def integrity(content: bytes) -> str:
    return "sha512-" + base64.b64encode(hashlib.sha512(content).digest()).decode()


GOOD, OTHER = archive("let a = 1;" * 500), archive("let b = 2;" * 500)


class Registry(BaseHTTPRequestHandler):
    """A registry of one package; `fault` says what it does wrong."""

    fault = ""

    def do_GET(self) -> None:
        package = self.path == "/straw"
        if self.fault in ("500", "404") or (self.fault == "file 500" and not package):
            self.send_error(int(self.fault[-3:]))
            return
        sent = GOOD if self.fault != "other bytes" else OTHER
        claimed = OTHER if self.fault == "another package" else GOOD
        if self.fault == "another package":
            sent = OTHER
        body = sent
        if package:
            host = f"http://{self.headers['Host']}"
            dist = {"tarball": f"{host}/straw/-/straw-1.0.0.tgz", "integrity": integrity(claimed)}
            version = {"name": "straw", "version": "1.0.0", "dist": dist}
            about = {
                "name": "straw",
                "dist-tags": {"latest": "1.0.0"},
                "versions": {"1.0.0": version},
            }
            body = json.dumps(about).encode()
        if self.fault == "cut" and not package:
            body = body[: len(body) // 2]
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body if self.fault != "broken off" or package else body[:100])

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Registry]]:
    if not shutil.which("npm"):
        pytest.skip("there is no npm here to be told about")
    handler = type("Handler", (Registry,), {})
    server = HTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("npm_config_registry", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("npm_config_fetch_retries", "0")
    yield handler
    server.shutdown()
    server.server_close()


def fetch(folder: Path) -> Path:
    return browser_assets.fetch("straw", "1.0.0", integrity(GOOD), folder)


@pytest.mark.parametrize("home", ["a home", "no home", "a home that cannot be written"])
def test_a_package_arrives_with_any_home(home, registry, tmp_path, monkeypatch):
    if home == "no home":
        monkeypatch.delenv("HOME", raising=False)
    elif home != "a home":
        (tmp_path / "file").write_text("")
        monkeypatch.setenv("HOME", str(tmp_path / "file" / "below"))
    assert (fetch(tmp_path) / "a.js").read_text().startswith("let a = 1;")


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("500", "the registry answers with an error of its own; try again later"),
        ("file 500", "the registry answers with an error of its own; try again later"),
        ("404", "the registry does not have it"),
        ("broken off", "the connection broke off; run it again"),
        ("cut", "what came is cut short or is not what it should be; run it again"),
        ("other bytes", "what came is cut short or is not what it should be; run it again"),
        ("another package", "is not what browser-assets.lock.json names"),
    ],
)
def test_a_fault_of_the_registry_is_said_in_a_line(fault, words, registry, tmp_path):
    registry.fault = fault
    with pytest.raises(SystemExit, match=words) as refusal:
        fetch(tmp_path)
    assert "straw@1.0.0" in str(refusal.value)
    assert "\n" not in str(refusal.value)
    registry.fault = ""
    (again := tmp_path / "again").mkdir()
    assert fetch(again).is_dir()


def test_a_registry_that_is_gone_is_said_in_a_line(registry, tmp_path, monkeypatch):
    monkeypatch.setenv("npm_config_registry", "http://127.0.0.1:9")
    with pytest.raises(SystemExit, match="the registry does not answer; look at the network"):
        fetch(tmp_path)


def test_without_npm_and_without_an_index_it_is_said_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("PIP_RETRIES", "0")
    if Path(browser_assets.sys.executable).with_name("npm").exists():
        pytest.skip("this environment has an npm of its own")
    with pytest.raises(SystemExit, match=r"install Node\.js"):
        browser_assets.npm()


def test_where_python_for_the_browser_cannot_be_had_the_way_without_is_named(monkeypatch):
    def gone() -> None:
        raise SystemExit("pip could not fetch open_webui==0.12.4: see above what it says")

    monkeypatch.setattr(live_assets, "complete", lambda: False)
    monkeypatch.setattr(live_assets, "assemble", gone)
    with pytest.raises(SystemExit, match="LIVE=0 leaves Python for the browser out"):
        live_assets.main()
