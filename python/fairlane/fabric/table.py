"""The table ``fabric`` of a scenario: a topology, its parameters, and a routing."""

from typing import Annotated, Any, Self

from pydantic import BeforeValidator, model_validator

from fairlane.fabric.rails import RailsField
from fairlane.inputs.parameters import named
from fairlane.inputs.table import Parameterised, table_of_name
from fairlane.units import Written


class Routing(Parameterised):
    """The routing algorithm with its parameters (see ``fairlane list routings``)."""

    name: str
    """Name of the routing."""

    @model_validator(mode="after")
    def _known(self) -> Self:
        self._resolve("routing", self.name, "name")
        return self


class FabricTable(Parameterised):
    """Hosts, switches and links: a topology with its parameters (see ``fairlane list topologies``), and a routing."""

    topology: str
    """Name of the topology."""
    routing: (
        Annotated[Written[Routing], BeforeValidator(table_of_name, json_schema_input_type=Routing | str)] | None
    ) = None
    """The routing's name, or a table with name and parameters. Default: the topology's default routing."""
    rails: RailsField | None = None
    """Adapters of each host: a number or a table. Default: one, or as many as an imported fabric has."""

    @model_validator(mode="after")
    def _known(self) -> Self:
        self._resolve("topology", self.topology, "topology")
        return self

    @property
    def spec(self) -> dict[str, Any]:
        """The fabric as the simulator takes it."""
        spec: dict[str, Any] = {"topology": self.topology, "params": self.parameters}
        if self.rails:
            spec["rails"] = self.rails.spec()
        if self.routing is None:
            return {**spec, "routing": named("topology", self.topology, "topology").routing}
        return {**spec, "routing": self.routing.name, "routing_params": self.routing.parameters}
