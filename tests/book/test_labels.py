"""The docstrings of `utils` point to statements and equations that exist."""

import json
import re

from scripts.run_notebooks import ROOT, chapters


def labels(letter: str) -> set[str]:
    """The labels of one appendix."""
    (path,) = (path for path in chapters() if path.name.startswith(f"{letter}_"))
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    text = "\n".join("".join(cell["source"]) for cell in cells)
    return set(re.findall(r"^:label: (\S+)$", text, re.M)) | set(
        re.findall(r"\$\$ ?\((\S+)\)", text)
    )


def test_every_label_in_a_docstring_exists():
    named = 0
    for path in sorted((ROOT / "utils").glob("*.py")):
        text = path.read_text(encoding="utf-8")
        for letter, names in re.findall(
            r"Appendix ([A-E]), ((?:[\w-]+(?:,\s+|\s+and\s+)?)+)", text
        ):
            found = re.findall(rf"\b[a-z]+-{letter}-[\w-]+", names, re.I)
            assert set(found) <= labels(letter), (path.name, set(found) - labels(letter))
            named += len(found)
    assert named > 20
