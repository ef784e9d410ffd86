"""Tables of the explorers against direct answers: a thousand random points of each.

The direct answers stand in `experiments/results/explorer_points.csv`, made by
`experiments/explorers.py`; a few dozen fresh settings are computed on the spot in
`test_explorers.py`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from experiments.explorers import POINTS, TABLED, between, points
from utils.explorers.values import STRENGTHS
from utils.results import stored

BATCHES = 10
RELATIVE = ("capacity",)  # others of 1 where they are smaller than 1
STATED: dict[str, dict[str, tuple[float, float]]] = {  # gaps in nine of ten points, and in all
    "detection": {"attention": (0.015, 0.03), "": (1e-6, 1e-6)},
    "curves": {
        **{f"{kind}/error": (0.005, 0.02) for kind in ("pooled", "vectorized", "attention")},
        "": (0.005, 0.05),
    },
    "capacity": {"by_cosine": (0.02, 0.11), "by_sharpness": (0.02, 0.11), "": (1e-3, 1e-3)},
    "phase": {"": (1e-4, 1e-4)},
}
READ = """async ([name, points]) => {
    const base = new URL('/_static/explorers/', location.href);
    const module = await import(new URL(`${name}.mjs`, base));
    const { data } = await (await fetch(new URL(`${name}.json`, base))).json();
    const known = module.prepare(data);
    return points.map(([setting, ...places]) => {
        const values = module.compute(setting, known);
        return { ...values, read: module.read?.(values, ...places) };
    });
}"""


def places(name: str, point: dict[str, Any]) -> list[float]:
    """Where on the curves of an explorer a point lies, in the units of their axes."""
    if name == "curves":
        return [between(0.25, 64, point["at"])]
    if name == "capacity":
        return [point["at"], between(0.5, 5, point["at"])]
    return []


def shown(name: str, point: dict[str, Any], values: dict[str, Any]) -> dict[str, float]:
    """The numbers of the page that the direct answers are about; nan where it shows none."""
    if name == "detection":
        found = values["here"]
    elif name == "curves":
        found = values["read"]
    elif name == "capacity":
        here = values["by_cosine"][round(8 * point["cos"])]
        found = {"pooled": values["pooled"], "attention": here, **values["read"]}
    else:
        k = STRENGTHS.index(point["theta"])
        found = {key: values[key][k] for key in ("information", "algorithm")}
        found |= {"map": values["map"][round(100 * point["at"])], "last": values["path"][-1]}
        found |= {"lowest": min(values["fixed"]), "highest": max(values["fixed"])}
    return {key: math.nan if value is None else value for key, value in found.items()}


def pairs(explorer: Any, name: str) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """For each number what the page shows and what it should be, at all points."""
    direct = stored("explorer_points")
    chosen, wanted = [], []
    for batch in range(BATCHES):
        found = direct.only(explorer=name, batch=batch)
        keys = sorted({key.rpartition("/")[0] for key in found})
        for k, point in enumerate(points(name, batch)):
            chosen.append(point)
            wanted.append([float(found[f"{key}/{k}"]) for key in keys])
    with explorer(name) as page:
        asked = [[point, *places(name, point)] for point in chosen]
        answers = page.evaluate(READ, [name, asked])
    given = [shown(name, point, values) for point, values in zip(chosen, answers, strict=True)]
    assert len(given) == BATCHES * POINTS >= 1000
    columns = np.array(wanted).T
    return {
        key: (np.array([row[key] for row in given]), column)
        for key, column in zip(keys, columns, strict=True)
    }


@pytest.mark.parametrize("name", TABLED)
def test_tables_hold_at_a_thousand_random_points(explorer: Any, name: str) -> None:
    """What has no value in the one has none in the other; the rest is as near as it is said."""
    found = pairs(explorer, name)
    for key, (ours, theirs) in found.items():
        known = np.isfinite(theirs)
        assert np.array_equal(known, np.isfinite(ours)), key
        size = np.abs(theirs[known])
        size = size if name in RELATIVE else np.maximum(1.0, size)
        gaps = np.abs(ours[known] - theirs[known]) / size
        usual, worst = STATED[name].get(key, STATED[name][""])
        print(
            f"{name} {key}: {np.quantile(gaps, 0.9):.2g} in nine of ten, {gaps.max():.2g} at most"
        )
        assert np.quantile(gaps, 0.9) <= usual and gaps.max() <= worst, key
