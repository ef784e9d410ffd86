"""The button that lets a chapter run in the reader's browser.

`scripts/book/live_pages.py` puts what the site serves, and `_live.json` with what is known of each
chapter, beside the pages; where it has not, the pages show no button. Before the click a page holds
the few lines below and loads nothing; the click imports `live/page.mjs`.
"""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.errors import ExtensionError

BLOCK = """
<div class="live-start d-print-none" hidden data-bytes="{bytes}"
 data-packages="{packages}" data-seconds="{seconds}">
<p><button type="button" class="btn btn-sm" data-live="start"
 style="color: inherit; border-color: currentcolor">
Run this page</button> <span role="status"><span class="roomy">Edit and run every cell
here: </span>{megabytes} MB<span class="roomy"> once, nothing sent anywhere</span></span></p>
<script>
(() => {{
  const block = document.querySelector(".live-start");
  const button = block.querySelector("button");
  const seen = `needle-live:${{location.pathname}}`;
  let begin, here = false;
  const started = new Promise((resolve) => {{ begin = resolve; }});
  const go = (click) => {{
    if (here) return;
    button.disabled = true;
    block.querySelector("span").textContent = "Python is being fetched …";
    import("{base}page.mjs?{version}").then((live) => {{
      here = true;
      begin(live.start(block, click));
    }}).catch((error) => {{
      button.disabled = false;
      block.querySelector("span").textContent = `This did not work: ${{error.message}}`;
    }});
  }};
  window.book = Object.assign(window.book ?? {{}}, {{
    python: (code) => started.then((live) => live.python(code)),
  }});
  const able = self.Worker && self.WebAssembly && self.DecompressionStream;
  block.hidden = !able || location.protocol === "file:";
  button.addEventListener("click", go);
  window.addEventListener("load", () => {{
    try {{ if (!block.hidden && sessionStorage[seen]) go(); }} catch {{}}
  }});
}})();
</script>
</div>
"""


def read(app: Sphinx) -> dict[str, Any]:
    """What was put beside the pages; nothing where Python was left out."""
    path = Path(app.srcdir) / "_live.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def add_files(app: Sphinx, config: Config) -> None:
    if read(app):
        config.html_extra_path = [*config.html_extra_path, "_live"]


def add_button(
    app: Sphinx, name: str, template: str, context: dict[str, Any], document: nodes.document | None
) -> None:
    known = read(app)
    chapter = known.get("chapters", {}).get(name)
    if document is None or not chapter or chapter["missing"]:
        return
    before, place, after = context["body"].partition("<!-- live -->")
    if not place:
        raise ExtensionError(f"{name}: the button found no place beside the switch of modes")
    block = BLOCK.format(
        base=html.escape(app.builder.get_relative_uri(name, "live/x").rsplit("x", 1)[0]),
        version=known["version"],
        bytes=chapter["bytes"],
        megabytes=f"{chapter['bytes'] / 1e6:.0f}",
        packages=" ".join(chapter["packages"]),
        seconds=" ".join(f"{value:g}" for value in chapter["seconds"]),
    )
    context["body"] = f"{before}{block}{after}"


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("config-inited", add_files, priority=900)
    app.connect("html-page-context", add_button)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
