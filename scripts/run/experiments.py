"""The catalogue of experiments, `experiments/*.toml`: read, checked, held against results."""

from __future__ import annotations

import ast
import importlib
import inspect
import itertools
import textwrap
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from needle.trials.keys import digest, outer_values
from utils.results import Stored, _plain

FOLDER = Path(__file__).resolve().parents[2] / "experiments"
NEEDED = {"about": str, "figure": str, "function": str, "seed": int, "trials": int, "quick": dict}
SHAPES = {"grid": dict, "points": list}


def catalogue(folder: Path = FOLDER) -> dict[str, dict[str, Any]]:
    """All experiments by name; ValueError for an entry that is not one, and says why."""
    found: dict[str, dict[str, Any]] = {}
    for file in sorted(folder.glob("*.toml")):
        try:
            tables = tomllib.loads(file.read_text(encoding="utf-8"))
        except tomllib.TOMLDecodeError as error:
            raise ValueError(f"{file.name}: {error}") from None
        for name, entry in tables.items():
            if name in found:
                raise ValueError(f"{file.name}: {name} is defined twice")
            if breaches := list(_breaches(entry)):
                raise ValueError(f"{file.name}: {name}: {'; '.join(breaches)}")
            found[name] = entry
    return found


def _breaches(entry: Any) -> Iterator[str]:
    """What is wrong with one entry."""
    if not isinstance(entry, dict):
        yield "not a table"
        return
    for key, kind in NEEDED.items():
        if key not in entry:
            yield f"{key} is missing"
        elif type(entry[key]) is not kind:
            yield f"{key} = {entry[key]!r} must be of type {kind.__name__}"
    if unknown := set(entry) - set(NEEDED) - set(SHAPES):
        yield f"unknown keys {sorted(unknown)}"
    yield from _shape(entry, "")
    quick = entry.get("quick")
    if isinstance(quick, dict):
        if unknown := set(quick) - set(SHAPES) - {"trials"}:
            yield f"quick has unknown keys {sorted(unknown)}"
        yield from _shape(chosen(entry, "quick"), "quick: ")
    if isinstance(entry.get("function"), str):
        try:
            function_of(entry["function"])
        except (ValueError, ImportError, AttributeError) as error:
            yield f"function = {entry['function']!r}: {error}"


def _shape(table: Mapping[str, Any], where: str) -> Iterator[str]:
    given = [key for key in SHAPES if key in table]
    if len(given) != 1:
        yield f"{where}either grid or points is needed, not {given or 'neither'}"
        return
    value = table[given[0]]
    values = value.values() if isinstance(value, dict) else value
    kind = list if given == ["grid"] else dict
    if not isinstance(value, SHAPES[given[0]]) or not all(type(v) is kind for v in values):
        inside = "lists" if kind is list else "tables"
        yield f"{where}{given[0]} = {value!r} must hold {inside}"
    elif not all(values):
        yield f"{where}{given[0]} has an empty part"
    if isinstance(table.get("trials"), int) and table["trials"] < 1:
        yield f"{where}trials = {table['trials']} must be at least 1"


def chosen(entry: Mapping[str, Any], profile: str) -> dict[str, Any]:
    """The table of a profile: `quick` replaces the trials, and grid or points."""
    quick = dict(entry["quick"]) if profile == "quick" else {}
    kept = {k: v for k, v in entry.items() if k not in SHAPES or not set(quick) & set(SHAPES)}
    return kept | quick


def function_of(name: str) -> Callable[..., Any]:
    """The function named `module:function`."""
    module, _, function = name.partition(":")
    if not function:
        raise ValueError("it must be named module:function")
    found = getattr(importlib.import_module(module), function)
    if not inspect.isfunction(found) or "rng" not in inspect.signature(found).parameters:
        raise ValueError("it must be a plain function with an argument rng")
    return found


def source_of(function: Callable[..., Any]) -> str:
    """A name of a function's code and that of the functions beside it, comments left out."""
    seen: dict[str, str] = {}

    def visit(part: Callable[..., Any]) -> None:
        if part.__qualname__ not in seen:
            tree = ast.parse(textwrap.dedent(inspect.getsource(part)))
            for node in ast.walk(tree):
                if isinstance(node, ast.FunctionDef) and ast.get_docstring(node) is not None:
                    node.body = node.body[1:] or [ast.Pass()]
            seen[part.__qualname__] = ast.unparse(tree)
            for value in outer_values(part).values():
                if inspect.isfunction(value) and value.__module__ == part.__module__:
                    visit(value)

    visit(inspect.unwrap(function))
    return digest(*(seen[name] for name in sorted(seen)))[:12]


def points_of(table: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The points of an experiment, as the stored file spells their parameters."""
    if "points" in table:
        points = table["points"]
    else:
        names = list(table["grid"])
        points = [
            dict(zip(names, values, strict=True))
            for values in itertools.product(*table["grid"].values())
        ]
    names = list(dict.fromkeys(name for point in points for name in point))
    return [{name: _plain(str(point.get(name, ""))) for name in names} for point in points]


def differences(entry: Mapping[str, Any], result: Stored) -> list[str]:
    """Where what is stored is not what the catalogue asks for."""
    found = []
    wanted = points_of(entry)
    missing = [point for point in wanted if point not in result.points]
    extra = [point for point in result.points if point not in wanted]
    found += [f"{len(missing)} points are missing, for example {missing[0]}"] if missing else []
    found += [f"{len(extra)} points are not asked for, like {extra[0]}"] if extra else []
    trials = {e.trials for estimates in result.estimates for e in estimates.values()}
    if trials != {entry["trials"]}:
        found.append(f"trials are {sorted(trials)}, not {entry['trials']}")
    if result.seed != entry["seed"]:
        found.append(f"the seed is {result.seed}, not {entry['seed']}")
    for fact, now in (
        ("function", entry["function"]),
        ("source", source_of(function_of(entry["function"]))),
    ):
        if result.facts.get(fact, now) != now:
            found.append(f"the {fact} was {result.facts[fact]}, and is {now}")
    return found
