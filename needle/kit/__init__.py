"""Checks of input, nodes and grids of quadrature, losses, records."""

from .checks import check_array as check_array
from .checks import check_choice as check_choice
from .checks import check_flag as check_flag
from .checks import check_integer as check_integer
from .checks import check_is as check_is
from .checks import check_labels as check_labels
from .checks import check_real as check_real
from .checks import check_rng as check_rng
from .losses import Logistic as Logistic
from .losses import Loss as Loss
from .losses import Square as Square
from .losses import get_loss as get_loss
from .nodes import falling_normals as falling_normals
from .nodes import falling_sums as falling_sums
from .nodes import gaussian_nodes as gaussian_nodes
from .nodes import merge as merge
from .nodes import softmax_sums as softmax_sums
from .records import Alignment as Alignment
from .records import ConvergenceError as ConvergenceError
from .records import Descent as Descent
from .records import Estimate as Estimate
from .records import Learning as Learning
from .records import Readout as Readout
from .records import Thresholds as Thresholds
from .records import Training as Training
