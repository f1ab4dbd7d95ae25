"""The table ``fabric`` of a scenario: a topology, its parameters, and a routing."""

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from fairlane.core.errors import Problem
from fairlane.core.units import Bandwidth, Duration, Written
from fairlane.inputs.parameters import Parameterised, named, table_of_name
from fairlane.inputs.problems import Problems
from fairlane.inputs.table import Table

MAX_RAILS = 8  # maximum number of adapters of a host


class Adapter(Table):
    """Properties of an adapter that differ from those of the topology's links."""

    bandwidth: Annotated[Bandwidth, Field(gt=0)] | None = None
    """Bandwidth of its cable, in both directions. Default: the topology's."""
    latency: Annotated[Duration, Field(gt=0)] | None = None
    """Latency of its cable, in both directions. Default: the topology's."""
    message_gap: Duration = 0
    """Minimum time between two messages that it sends: the inverse of its message rate, the gap of LogP."""


class Rails(Table):
    """The adapters (rails) of each host, if there are several."""

    count: int = Field(ge=1, le=MAX_RAILS)
    """Number of adapters of each host."""
    wiring: Literal["planes", "shared", "rail_optimised"] = "planes"
    """``planes``: each adapter is connected to a copy of the topology with switches of its own. ``shared``: all are
    connected to one fabric; the topology's hosts are adapters then, and consecutive ones form a host.
    ``rail_optimised``: one fabric, in which each switch with hosts serves one rail of a group of hosts. With `n` rails,
    `n` consecutive switches make a group, which has as many hosts as a switch."""
    adapters: list[Adapter] = Field(default_factory=list)
    """Properties of each adapter, in order. Default: all are equal."""

    @model_validator(mode="after")
    def _one_for_each(self) -> Self:
        if self.adapters and len(self.adapters) != self.count:
            message = f"describes {len(self.adapters)} of {self.count} adapters"
            raise Problems(Problem("adapters", message, allowed=f"none, or one table for each of the {self.count}"))
        return self

    def spec(self) -> dict[str, Any]:
        """The rails as the simulator takes them."""
        return {"count": self.count, "wiring": self.wiring, "adapters": [dict(adapter) for adapter in self.adapters]}


def _count(given: Any) -> Any:
    """A number alone is that many adapters, all alike."""
    return {"count": given} if isinstance(given, int) and not isinstance(given, bool) else given


RailsField = Annotated[Written[Rails], BeforeValidator(_count, json_schema_input_type=Rails | int)]
"""A model's field that takes how many adapters there are, or a table."""


class Routing(Parameterised):
    """The routing algorithm with its parameters (see ``fairlane list routings``)."""

    of_table = "routing"
    name: str
    """Name of the routing."""


class FabricTable(Parameterised):
    """Hosts, switches and links: a topology with its parameters (see ``fairlane list topologies``), and a routing."""

    of_table = name_key = "topology"
    topology: str
    """Name of the topology."""
    routing: (
        Annotated[Written[Routing], BeforeValidator(table_of_name, json_schema_input_type=Routing | str)] | None
    ) = None
    """The routing's name, or a table with name and parameters. Default: the topology's default routing."""
    rails: RailsField | None = None
    """Adapters of each host: a number or a table. Default: one, or as many as an imported fabric has."""

    @property
    def spec(self) -> dict[str, Any]:
        """The fabric as the simulator takes it."""
        spec: dict[str, Any] = {"topology": self.topology, "params": self.parameters}
        if self.rails:
            spec["rails"] = self.rails.spec()
        if self.routing is None:
            return {**spec, "routing": named("topology", self.topology, "topology").routing}
        return {**spec, "routing": self.routing.name, "routing_params": self.routing.parameters}
