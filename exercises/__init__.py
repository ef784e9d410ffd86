"""Exercises that answer: `check` compares a reader's answer with theory or simulation.

    from exercises import check, hint

    check("ch1-rare")                     # what is asked
    check("ch1-rare", lambda delta, pi: …)   # right, or what is wrong
    hint("ch1-rare", 1)                   # three hints each, from a nudge to nearly everything

The names are the labels of the exercises in the chapters. A file holds the checks of a chapter and
is loaded when the first of them is called.
"""

from .desk import check as check
from .desk import hint as hint
from .desk import names as names
from .reply import Reply as Reply
