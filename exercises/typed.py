"""An answer that was typed on a page: run it, and hand its last value to the check."""

from __future__ import annotations

import ast
import sys
from typing import Any

import numpy as np

from .desk import check
from .judging import Refused, deadline
from .reply import Reply


def value_of(source: str, space: dict[str, Any]) -> Any:
    """The value of the last line: an expression, a function that it defines, or what it assigns.

    >>> value_of("def f(x):\\n    return 2 * x", {})(3)
    6
    """
    tree = ast.parse(source)
    if not tree.body:
        raise Refused("There is no answer yet.")
    last = tree.body[-1]
    if isinstance(last, ast.Expr):
        name = "_answer"
        assign = ast.Assign([ast.Name(name, ast.Store())], last.value)
        tree.body[-1] = ast.copy_location(assign, last)
    elif isinstance(last, ast.FunctionDef):
        name = last.name
    elif isinstance(last, ast.Assign) and isinstance(last.targets[0], ast.Name):
        name = last.targets[0].id
    else:
        raise Refused("The last line must be the answer: a value, a function or an assignment.")
    exec(compile(ast.fix_missing_locations(tree), "<answer>", "exec"), space)
    return space[name]


def reply(name: str, source: str, *, seconds: float = 10.0) -> Reply:
    """What `check` says to a typed answer; `np` and the variables of the page are at hand."""
    space = {"np": np} | dict(vars(sys.modules["__main__"]))
    try:
        with deadline(seconds):
            answer = value_of(source, space)
    except Refused as refusal:
        return Reply(False, str(refusal))
    except SyntaxError as error:
        return Reply(False, f"Python cannot read line {error.lineno}: {error.msg}.")
    except (Exception, SystemExit) as error:
        return Reply(False, f"Your code raises {type(error).__name__}: {error}.")
    return check(name, answer, seconds=seconds)
