"""The mathematics flows one way: what the imports of `utils` may point to."""

import ast
from pathlib import Path

import pytest

import utils

FILES = {path.stem: path for path in Path(utils.__file__).parent.glob("[!_]*.py")}
# Every module may import those to its left; a module not named here is to the right of all.
FLOW = [
    *("validation", "records", "losses", "model", "quadrature", "noise", "feature_law", "laws"),
    *("steps", "alignment", "saddle", "asymptotics", "readout", "separable", "capacity"),
    *("margin", "oracle", "separation"),
]
RUN = ["fingerprint", "worker", "execute", "cache", "sweep"]  # in this order
ASIDE = {"agreement", "agreement_table", *RUN, "figures"}  # know nothing of the mathematics


def imported(path: Path) -> set[str]:
    """The modules of `utils` that a file imports, relatively; not those of type hints alone."""
    found = set()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    hints = [n for n in tree.body if isinstance(n, ast.If) and "TYPE_CHECKING" in ast.dump(n.test)]
    tree.body = [node for node in tree.body if node not in hints]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            assert not any(alias.name.split(".")[0] == "utils" for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert (node.module or "").split(".")[0] not in ("utils", "scripts", "tests")
            if node.level:
                names = [node.module] if node.module else [alias.name for alias in node.names]
                found |= {str(name).split(".")[0] for name in names}
    return found


@pytest.mark.parametrize("name", sorted(FILES))
def test_imports_point_one_way(name):
    if name in RUN:
        assert imported(FILES[name]) <= {"validation", *RUN[: RUN.index(name)]}
        return
    if name in ASIDE:
        assert imported(FILES[name]) <= {"validation", "agreement_table"}
        return
    allowed = set(FLOW[: FLOW.index(name)]) if name in FLOW else set(FILES) - ASIDE
    assert imported(FILES[name]) <= allowed, f"{name} imports what stands to its right"


def ancestors(name: str, graph: dict[str, set[str]], above: tuple[str, ...] = ()) -> None:
    """Follow imports to their ends; a circle is an error."""
    assert name not in above, " → ".join([*above[above.index(name) :], name])
    for other in graph[name]:
        ancestors(other, graph, (*above, name))


def test_no_imports_go_in_a_circle():
    graph = {name: imported(path) & set(FILES) for name, path in FILES.items()}
    for name in graph:
        ancestors(name, graph)
    with pytest.raises(AssertionError, match="a → b → a"):
        ancestors("a", {"a": {"b"}, "b": {"a"}})


def test_every_module_of_the_flow_exists():
    assert set(FLOW) | ASIDE <= set(FILES)
