"""Everything at once: one pass, and the same data again."""

from .batch import Gradient as Gradient
from .batch import gradient as gradient
from .batch import simulate_descent as simulate_descent
from .flow import Bag as Bag
from .flow import Cloud as Cloud
from .flow import Frame as Frame
from .flow import Rates as Rates
from .flow import State as State
from .flow import bags as bags
from .flow import drift as drift
from .flow import falling_points as falling_points
from .flow import flow_error as flow_error
from .flow import frame_of as frame_of
from .flow import normal_rule as normal_rule
from .flow import products as products
from .flow import sample_cloud as sample_cloud
from .onepass import predict_training as predict_training
from .onepass import simulate_training as simulate_training
from .rounds import predict_rounds as predict_rounds
from .rounds import simulate_rounds as simulate_rounds
