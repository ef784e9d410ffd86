"""A pytest plugin: nbval runs cells as a reader does, so that a trailing ';' hides a result."""

from __future__ import annotations

from typing import Any

from nbval.kernel import RunningKernel


def execute_cell_input(self: Any, cell_input: str, allow_stdin: bool | None = None) -> Any:
    return self.kc.execute(cell_input, allow_stdin=allow_stdin, stop_on_error=False)


RunningKernel.execute_cell_input = execute_cell_input
