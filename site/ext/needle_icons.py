"""The icons of the theme as drawings: neither a font nor a megabyte of script is needed."""

from __future__ import annotations

import re
from pathlib import Path

import pydata_sphinx_theme
from sphinx.errors import ExtensionError

NO_ICON = {"lg", "fw", "sm", "solid", "regular", "brands"}  # sizes and sets


class Icons(dict[str, str]):
    """The drawing of an icon of the theme by its name, read from the theme's own script."""

    def __init__(self) -> None:
        theme = Path(pydata_sphinx_theme.__file__).parent
        [script] = theme.rglob("fontawesome/*/js/all.min.js")
        entry = r'"?([a-z0-9-]+)"?:\[(\d+),(\d+),\[([^\]]*)\],"[0-9a-f]+","([^"]+)"\]'
        for name, width, height, aliases, path in re.findall(entry, script.read_text("utf-8")):
            drawing = f'viewBox="0 0 {width} {height}"><path fill="currentColor" d="{path}"/></svg>'
            for known in (name, *aliases.split('"')[1::2]):
                self[known] = drawing

    def __missing__(self, name: str) -> str:
        raise ExtensionError(f"the theme has no icon {name}; mend site/ext/needle_icons.py")
