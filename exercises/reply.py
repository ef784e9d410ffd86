"""What a check answers: right or not, and a sentence that teaches without giving it away."""

from __future__ import annotations

import html
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Reply:
    """The answer to an answer; true if it was right. `items` stand below the words as a list."""

    right: bool | None
    words: str
    items: tuple[str, ...] = field(default=())

    def __bool__(self) -> bool:
        return bool(self.right)

    def __str__(self) -> str:
        lines = [f"{self.sign}{self.words}", *(f"  - {item}" for item in self.items)]
        return "\n".join(lines)

    __repr__ = __str__

    @property
    def sign(self) -> str:
        """A tick, a cross, or nothing where there was no answer to judge."""
        return {True: "✓ ", False: "✗ ", None: ""}[self.right]

    def _repr_html_(self) -> str:
        kind = {True: "right", False: "wrong", None: "asked"}[self.right]
        items = "".join(f"<li>{html.escape(item)}</li>" for item in self.items)
        below = f"<ul>{items}</ul>" if items else ""
        words = html.escape(self.sign + self.words)
        return f'<div class="exercise-reply {kind}" role="status"><p>{words}</p>{below}</div>'
