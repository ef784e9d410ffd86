"""The chapters in JupyterLab: what its copies look like, and one of them driven in a browser."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest

from scripts.book import lab
from scripts.book.run_notebooks import ROOT, chapters

WANTED = os.environ.get("NEEDLE_LAB", "1") not in ("", "0")
pytestmark = pytest.mark.xdist_group("lab")

POP_UPS = """window.popUps = []; new MutationObserver(() => popUps.push(...[
    ...document.querySelectorAll('.Toastify__toast, .jp-Dialog')].map(e => e.textContent))
    ).observe(document, { childList: true, subtree: true })"""


def copy(name: str) -> Any:
    path = ROOT / "chapters" / name
    return lab.readable(nbformat.read(path, as_version=4), name)


@pytest.mark.parametrize("path", chapters(), ids=lambda path: path.stem)
def test_a_copy_has_nothing_that_jupyterlab_cannot_show(path: Path) -> None:
    notebook = copy(path.name)
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    assert "{solution-" not in text
    assert "{cite" not in text
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [c.source for c in code] == [
        c.source for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"
    ]
    for cell in code:
        folded = "hide-input" in cell.metadata.get("tags", [])
        assert cell.metadata.get("jupyter", {}).get("source_hidden", False) is folded


def test_solutions_are_folded_sections_below_their_exercises() -> None:
    titles = [
        (re.match(r"#{4,5} (Exercise|Solution): (.+)", cell.source), cell)
        for cell in copy("03_separation.ipynb").cells
        if cell.cell_type == "markdown"
    ]
    found = [(match[1], match[2], cell) for match, cell in titles if match]
    assert [kind for kind, *_ in found] == ["Exercise", "Solution"] * (len(found) // 2)
    for (_, exercise, _), (_, solution, cell) in zip(found[::2], found[1::2], strict=True):
        assert exercise == solution
        assert cell.metadata["jp-MarkdownHeadingCollapsed"] is True


def test_a_changed_copy_is_left_alone(tmp_path: Path) -> None:
    count = lab.stage(tmp_path)
    assert count == len(chapters()) + 2
    assert lab.stage(tmp_path) == 0
    mine = tmp_path / "chapters" / chapters()[0].name
    mine.write_text(mine.read_text().replace("needle", "nail"))
    (tmp_path / "start.ipynb").unlink()
    assert lab.stage(tmp_path) == 1
    assert "nail" in mine.read_text()


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """JupyterLab as `make lab` starts it, on a free port."""
    if not (lab.ENVIRONMENT / "bin" / "jupyter-lab").exists():
        subprocess.run(["make", ".venv-lab/complete"], cwd=ROOT, check=True)
    lab.stage(lab.LAB)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ["--no-browser", "--allow-root", f"--port={port}", "--ServerApp.port_retries=0"]
    options += ["--IdentityProvider.token=", "--ServerApp.password="]
    environment = lab.prepare()
    server = subprocess.Popen(
        lab.command(*options), env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    here = f"http://127.0.0.1:{port}"
    try:
        for _ in range(300):
            try:
                urllib.request.urlopen(f"{here}/api", timeout=2).read()
                break
            except OSError:
                time.sleep(0.3)
        yield here
    finally:
        server.terminate()
        server.wait()


@pytest.mark.lab
@pytest.mark.skipif(not WANTED, reason="NEEDLE_LAB=0 leaves JupyterLab out")
def test_chapter_3_runs_and_its_explorer_answers(chromium: Any, address: str) -> None:
    """No pop-up, a theorem box and a folded solution; run all; an agreement and an explorer."""
    context = chromium.new_context(viewport={"width": 1400, "height": 1000})
    page = context.new_page()
    elsewhere = []
    page.on(
        "request",
        lambda r: r.url.startswith("http") and address not in r.url and elsewhere.append(r.url),
    )
    page.add_init_script(POP_UPS)
    page.goto(f"{address}/lab/tree/chapters/03_separation.ipynb?reset", timeout=600_000)
    page.wait_for_selector(".jp-Notebook .jp-MarkdownCell h1", timeout=600_000)
    page.wait_for_function(  # what runs before there is a kernel runs into nothing
        "() => document.querySelector('.jp-NotebookPanel-toolbar')"
        "?.textContent.includes('Kernel status: Idle')",
        timeout=600_000,
    )
    assert page.locator(".jp-Notebook aside, .jp-Notebook .myst-proof").count() > 0
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_text("Run All Cells", exact=True).click()
    explorer = page.locator(".explorer-frame")
    explorer.first.wait_for(state="attached", timeout=1_200_000)
    knob = page.locator('.explorer-frame input[name="theta"]').first
    knob.scroll_into_view_if_needed()
    sentence = page.locator(".explorer-sentence").first
    before = sentence.inner_text()
    knob.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function(
        "old => document.querySelector('.explorer-sentence').textContent !== old",
        arg=before,
        timeout=1_200_000,
    )
    assert "strength 6.5" in sentence.inner_text()
    assert "2000 simulated bags" in page.locator(".explorer-status").first.inner_text()
    page.wait_for_function(
        "() => document.querySelectorAll('details.agreement').length > 3", timeout=1_200_000
    )
    assert page.locator(".jp-OutputArea-output[data-mime-type*=error]").count() == 0
    assert page.evaluate("popUps") == []
    assert elsewhere == []
    context.close()


def test_the_settings_ask_nothing_and_tell_no_news() -> None:
    said = json.dumps(lab.OVERRIDES)
    assert '"fetchNews": "false"' in said and '"checkForUpdates": false' in said
