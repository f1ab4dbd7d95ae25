"""Run times of timesteps from network counters: models, their errors on held-out runs, runs out of distribution.

``table.CounterTable`` reads counters; ``validation.compare`` and ``clusters.local`` cross-validate by run;
``model.fit`` makes a model to keep.
"""

from fairlane.models import REGRESSORS
from fairlane.predict.clusters import Clusters, Shape, distances, local, shapes
from fairlane.predict.hyperparameters import HYPERPARAMETERS
from fairlane.predict.model import Predictor, fit
from fairlane.predict.parts import PARTS, Decomposition, Parts, pursue, split
from fairlane.predict.table import CounterTable
from fairlane.predict.validation import Comparison, Difference, compare

__all__ = [
    "HYPERPARAMETERS",
    "PARTS",
    "REGRESSORS",
    "Clusters",
    "Comparison",
    "CounterTable",
    "Decomposition",
    "Difference",
    "Parts",
    "Predictor",
    "Shape",
    "compare",
    "distances",
    "fit",
    "local",
    "pursue",
    "shapes",
    "split",
]
