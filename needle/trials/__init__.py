"""Grids of trials on any executor, resumable."""

from .execution import SweepError as SweepError
from .execution import SweepWarning as SweepWarning
from .execution import Trial as Trial
from .execution import describe as describe
from .execution import gather as gather
from .grid import Sweep as Sweep
from .grid import sweep as sweep
from .keys import digest as digest
from .keys import environment as environment
from .keys import function_key as function_key
from .keys import is_local as is_local
from .keys import outer_values as outer_values
from .keys import package_source as package_source
from .keys import value_key as value_key
from .store import CacheWarning as CacheWarning
from .store import TrialStore as TrialStore
from .store import contents as contents
from .store import decode as decode
from .store import encode as encode
from .worker import pack as pack
from .worker import timed as timed
from .worker import work as work
