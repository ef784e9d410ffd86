"""Single-layer attention for bags that hide a needle: simulations and exact theory.

The names that most work needs, loaded when first used; `__init__.pyi` lists them, room by room.

>>> import needle
>>> needle.SparseTokens(L=10, R=1, theta=5.0, pi=0.5).theta
5.0
"""

from ._lazy import contents

__version__ = "0.3.0"
__getattr__, __dir__ = contents(__name__, __file__)
