"""The list of changed constants: each still applies, and every room has some."""

from __future__ import annotations

import ast

import pytest

from scripts.check.physics import ROOT, changed, changes

LIST = list(changes([]))


@pytest.mark.parametrize("change", LIST, ids=lambda c: f"{c['file']}: {c['old'][:40]}")
def test_a_change_applies_once_and_is_python(change: dict[str, str]) -> None:
    assert change["old"] != change["new"]
    ast.parse(changed(change))
    assert (ROOT / change["by"].split(" ")[0]).is_file()


def test_every_room_of_mathematics_has_some() -> None:
    rooms = {change["file"].split("/")[1] for change in LIST}
    assert rooms >= {"kit", "data", "oracle", "steps", "learning", "readout", "planning", "bags"}
