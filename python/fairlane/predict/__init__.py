"""Run times of timesteps from network counters: models, how far off they are on new runs, when to doubt them.

``CounterTable`` reads counters; ``compare`` and ``local`` cross-validate by run; ``fit`` makes a model to keep.
"""

from fairlane.predict.clusters import Clusters, Shape, distances, shapes
from fairlane.predict.decomposition import Decomposition, pursue, split
from fairlane.predict.fitting import fit
from fairlane.predict.model import Predictor, load_predictor
from fairlane.predict.parts import PARTS, Parts
from fairlane.predict.regressors import REGRESSORS
from fairlane.predict.table import CounterTable
from fairlane.predict.validation import Comparison, compare, local

__all__ = [
    "PARTS",
    "REGRESSORS",
    "Clusters",
    "Comparison",
    "CounterTable",
    "Decomposition",
    "Parts",
    "Predictor",
    "Shape",
    "compare",
    "distances",
    "fit",
    "load_predictor",
    "local",
    "pursue",
    "shapes",
    "split",
]
