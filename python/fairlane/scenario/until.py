"""The table ``until``: a run that ends as soon as its results are precise enough."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from fairlane.errors import Problem
from fairlane.inputs.problems import Problems
from fairlane.inputs.table import Table
from fairlane.units import Duration

GROWTH = 1.25
"""Factor between the instants at which precision is checked."""
CHECKS = 24
"""At how many instants it is checked at most, the last one ``at_most``."""


def _share(given: Any) -> Any:
    """A number, or a text as ``1%``."""
    if not isinstance(given, str):
        return given
    try:
        return float(given.strip().removesuffix("%")) / (100 if given.strip().endswith("%") else 1)
    except ValueError:
        raise Problems(Problem("", "not a share", given, 'a share, as "1%" or 0.01')) from None


Share = Annotated[float, BeforeValidator(_share, json_schema_input_type=float | str), Field(gt=0, lt=1)]
"""A share between 0 and 1, also in percent."""


class Until(Table):
    """When a run ends: as soon as the 95% interval of every job is narrow enough; in place of ``duration``.

    It is checked at instants that do not depend on the machine.
    """

    precision: Share
    """What half of every job's interval may be at most: of ``w`` a change of throughput, as ``"1%"``, of
    ``time_per_iteration`` a share of it."""
    of: Literal["w", "time_per_iteration"] = "w"
    """What has to be precise."""
    at_most: Duration = Field(gt=0)
    """Simulated time after which the run ends whatever its precision."""

    @property
    def instants(self) -> list[int]:
        """When precision is checked, ps: each 1.25 times the one before, up to ``at_most``."""
        return sorted({max(1, round(self.at_most / GROWTH**back)) for back in range(CHECKS)})
