"""From numbers to a decision."""

from .answer import Plan as Plan
from .answer import PlanRow as PlanRow
from .answer import advise as advise
from .answer import number as number
from .planner import plan as plan
from .tuner import Recipe as Recipe
from .tuner import Tuner as Tuner
from .tuner import descend as descend
