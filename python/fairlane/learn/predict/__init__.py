"""Run times of timesteps from network counters: models, their errors on held-out runs, runs out of distribution.

``table.CounterTable`` reads counters; ``validation.compare`` and ``clusters.local`` cross-validate by run;
``model.fit`` makes a model to keep.
"""

from fairlane.learn.models import REGRESSORS
from fairlane.learn.predict.clusters import Clusters, Shape, distances, local, shapes
from fairlane.learn.predict.hyperparameters import HYPERPARAMETERS
from fairlane.learn.predict.model import Predictor, fit
from fairlane.learn.predict.parts import PARTS, Decomposition, Parts, pursue, split
from fairlane.learn.predict.table import CounterTable
from fairlane.learn.predict.validation import Comparison, Difference, compare

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
