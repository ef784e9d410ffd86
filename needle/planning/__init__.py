"""From numbers to a decision."""

from .planner import Plan as Plan
from .planner import PlanRow as PlanRow
from .planner import plan as plan
from .tuner import Recipe as Recipe
from .tuner import Tuner as Tuner
from .tuner import descend as descend
from .words import advise as advise
from .words import as_dict as as_dict
from .words import html_table as html_table
from .words import number as number
from .words import text_table as text_table
