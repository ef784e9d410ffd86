from needle.kit import Estimate as Estimate

from .agreement import AgreementError as AgreementError
from .agreement import agree as agree
from .agreement import extrapolate as extrapolate
from .explorers import explore as explore
from .figures import COLORS as COLORS
from .figures import color_of as color_of
from .figures import finish as finish
from .figures import heat as heat
from .figures import mark as mark
from .figures import panels as panels
from .figures import shades as shades
from .figures import simulation as simulation
from .figures import theory as theory
from .results import agreements as agreements
from .results import stored as stored
from .tables import small_table as small_table
