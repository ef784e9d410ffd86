"""What any learner can find: the channel of a bag, message passing, thresholds."""

from .amp import Exact as Exact
from .amp import Literal as Literal
from .amp import fresh_error as fresh_error
from .amp import simulate_learning as simulate_learning
from .amp import subset_weights as subset_weights
from .crowd import Crowd as Crowd
from .limit import all_solutions as all_solutions
from .limit import learning_thresholds as learning_thresholds
from .limit import predict_learning as predict_learning
from .limit import samples_for as samples_for
from .limit import state_evolution as state_evolution
from .norms import LongBags as LongBags
from .norms import simulate_guessing as simulate_guessing
from .posterior import Channel as Channel
from .posterior import Handful as Handful
from .posterior import channel as channel
from .posterior import log_subsets as log_subsets
from .posterior import race as race
from .verdicts import bayes_error as bayes_error
from .verdicts import bayes_rates as bayes_rates
