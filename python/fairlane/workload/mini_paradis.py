"""Mini-ParaDiS: nearest neighbours whose work drifts apart (Savoie 2020, section 5.3; Bulatov 2004)."""

from pydantic import Field

from fairlane.workload.imbalance import Growing, ImbalanceField
from fairlane.workload.nearest_neighbor import NearestNeighbor

__all__ = ["MiniParadis"]


class MiniParadis(NearestNeighbor):
    """Nearest neighbours whose compute times drift apart as the run goes on, as dislocations gather on some ranks.

    The sum of the ranks' compute times stays the same. With ``imbalance.per_variant`` each variant starts further on.
    """

    imbalance: ImbalanceField = Field(default_factory=Growing, description="how Y is divided among the ranks")
