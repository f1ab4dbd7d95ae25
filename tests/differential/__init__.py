"""Random scenarios that are run in different ways, all of which must agree bit for bit.

``python -m differential --seeds 0:2000`` (in ``tests``) tries many; a failure prints the seed that replays it.
"""

from differential.compare import Difference, compare
from differential.scenarios import draw

__all__ = ["Difference", "compare", "draw"]
