"""Find or get a Chromium, and open it on the built site without letting it talk to anyone else.

python -m scripts.check.browser      print where it is, after installing it if need be
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
MAC = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def installed() -> str | None:
    """The path of an installed Chromium or Chrome."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    return found or (MAC if os.path.exists(MAC) else None)


def playwright_own() -> str | None:
    """The browser that playwright downloaded earlier, if it is there."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    return path if os.path.exists(path) else None


def find() -> str:
    """A browser: the installed one; on Debian as root one from apt; else playwright's own."""
    if path := installed() or playwright_own():
        return path
    if shutil.which("apt-get") and getattr(os, "geteuid", lambda: 1)() == 0:
        print("no Chromium: installing it with apt-get; SKIP_BROWSER=1 does without", flush=True)
        environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        install = ["install", "-y", "--no-install-recommends", "chromium"]
        for words in (["update"], install):
            command = ["apt-get", "-qq", "-o", "DPkg::Lock::Timeout=600", *words]
            subprocess.run(command, env=environment, stdout=subprocess.DEVNULL)
        if path := installed():
            return path
    print("no Chromium: asking playwright for its own", flush=True)
    subprocess.run([sys.executable, "-m", "playwright", "install", "chromium"])
    if path := playwright_own():
        return path
    raise RuntimeError("no Chromium can be found or installed; SKIP_BROWSER=1 leaves it out")


# a page's own list of what its Content-Security-Policy has refused
WATCH = (
    "addEventListener('securitypolicyviolation', e => { (window.broken ??= [])"
    ".push(`${e.violatedDirective}: ${e.blockedURI} ${e.sample}`); });"
)


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *arguments: Any) -> None:
        pass


@contextmanager
def serve(folder: Path, handler: type[QuietHandler] = QuietHandler) -> Iterator[str]:
    """Serve a folder on a free port of localhost; yields its address."""
    here = functools.partial(handler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), here) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@contextmanager
def launched(playwright: Any) -> Iterator[Any]:
    """A headless browser of its own: a process runs one playwright, which runs many browsers."""
    instance = playwright.chromium.launch(executable_path=find(), headless=True, args=FLAGS)
    yield instance
    instance.close()


@contextmanager
def browser() -> Iterator[Any]:
    """A headless browser of playwright."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright, launched(playwright) as instance:
        yield instance


def settle(page: Any) -> None:
    """Wait until a page has loaded, its mathematics is set and its explorers are drawn."""
    page.wait_for_load_state("load")
    page.evaluate("() => window.MathJax?.startup?.promise")
    page.evaluate("() => document.fonts.ready.then(() => true)")
    page.wait_for_function(
        "() => !document.querySelector('[data-explorer]:not([data-ready])')",
        timeout=180_000,
    )


def load_images(page: Any) -> None:
    """Load the figures that wait for a reader to come near."""
    page.evaluate(
        "() => Promise.all([...document.images].map("
        "i => { i.loading = 'eager'; return i.decode().catch(() => 0) }))"
    )


@contextmanager
def opened(
    instance: Any,
    address: str,
    *,
    width: int = 1280,
    height: int = 900,
    theme: str = "light",
    formulas: bool = True,
    **options: Any,
) -> Iterator[Any]:
    """A settled page in a fresh context, in a theme and at a width.

    Setting its formulas takes most of the time; who looks at something else may leave them as TeX.
    """
    context = instance.new_context(
        viewport={"width": width, "height": height},
        color_scheme=theme,
        **{"reduced_motion": "reduce", **options},
    )
    context.set_default_timeout(180_000)  # a guard: a machine may be busy
    context.add_init_script(f"localStorage.mode = '{theme}'; localStorage.theme = '{theme}';")
    context.add_init_script(WATCH)
    if not formulas:
        nothing = {"content_type": "text/javascript", "body": ""}
        context.route("**/mathjax/**", lambda route: route.fulfill(**nothing))
    page = context.new_page()
    page.requests_seen, page.failures, page.complaints = [], [], []
    page.on("request", lambda r: page.requests_seen.append(r.url))
    page.on("requestfailed", lambda r: page.failures.append(f"{r.url}: {r.failure}"))
    page.on("response", lambda r: r.status >= 400 and page.failures.append(f"{r.url}: {r.status}"))
    page.on("console", lambda m: m.type == "error" and page.complaints.append(m.text))
    page.on("pageerror", lambda e: page.complaints.append(str(e)))
    if not page.goto(address).ok:
        context.close()
        raise RuntimeError(f"there is no page {address}")
    settle(page)
    yield page
    context.close()


if __name__ == "__main__":
    print(find())
