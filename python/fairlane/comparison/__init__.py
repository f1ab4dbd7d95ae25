"""Two results compared job by job: runs, studies, or treatments of a study.

The change is that of throughput, ``B`` against ``A``: +0.1 means that a job does 10% more in the same time under ``B``.

- Two runs are compared over the iterations that a job completed in both, in pairs, as W is. The interval says what
  other iterations on the same hosts would give.
- Two studies, or treatments, are compared at the points that they have in common, in pairs; the interval is that over
  placements, or over seeds where there is one placement. With fewer than three of them there is none.

A job without iterations is compared by the mean latency of its messages in two runs; then a positive change means that
latency is lower under ``B``. Which changes are beyond noise is decided over all jobs together: the expected share of
false ones among them is at most 5% (see ``statistics.comparing``).
"""

from fairlane.comparison.changes import Comparison, compare
from fairlane.comparison.sides import Side, side_of

__all__ = ["Comparison", "Side", "compare", "side_of"]
