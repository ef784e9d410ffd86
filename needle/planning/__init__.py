"""From numbers to a decision."""

from .answer import Plan as Plan
from .answer import PlanRow as PlanRow
from .answer import advise as advise
from .planner import plan as plan
from .printed import number as number
from .tuner import Recipe as Recipe
from .tuner import Tuner as Tuner
