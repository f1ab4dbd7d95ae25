"""The tables of a scenario file: the fields of ``Scenario``, which what decides and checks their values takes."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated

from pydantic import Field, PrivateAttr

from fairlane.core.seeds import LARGEST_SEED
from fairlane.core.units import Duration, Size, Written
from fairlane.inputs.document import Document, current_document, override
from fairlane.inputs.table import Table
from fairlane.model.fabric.table import FabricTable
from fairlane.model.power import PowerTable
from fairlane.model.scenario.background import Background
from fairlane.model.scenario.levels import MessageClass
from fairlane.model.scenario.models import Job, Mpi, Placement, PlacementField, Qos
from fairlane.model.scenario.network import Network
from fairlane.model.scenario.observe import Fault, Observe, Until
from fairlane.model.scenario.simulators import Applied


class ScenarioTables(Table):
    """Keys and tables of a scenario, and the document that they were read from."""

    name: str = Field(default="scenario", min_length=1, pattern=r"^[^/\\]+$")
    """Name of the scenario, and of its run folders."""
    seed: int = Field(default=1, ge=0, le=LARGEST_SEED)
    """Seed of all random choices."""
    duration: Duration = Field(default=60 * 10**9, gt=0)
    """Simulated time; with a table ``until`` its ``at_most``."""
    until: Written[Until | None] = None
    """Condition for an early end: results that are precise enough. Other commands simulate ``at_most``."""
    memory: Annotated[Size, Field(gt=0)] | None = None
    """Memory limit: a run whose estimate exceeds it is refused. Default: the machine's memory."""
    model: str | None = None
    """Another simulator whose rules are the defaults of ``network``, ``mpi`` and the routing's parameters (see
    ``fairlane list models``). Default: fairlane's own."""
    fabric: Written[FabricTable]
    """Hosts, switches and links."""
    network: Written[Network] = Field(default_factory=Network)
    """Packets, buffers and switches."""
    qos: Written[Qos] = Field(default_factory=Qos)
    """Service levels, virtual lanes, and how they share links."""
    classes: Written[dict[Annotated[str, Field(min_length=1)], MessageClass]] = Field(default_factory=dict)
    """Tables `[classes.NAME]`: classes of traffic, in the order in which messages are compared with them."""
    mpi: Written[Mpi] = Field(default_factory=Mpi)
    """Costs and protocols of MPI."""
    power: Written[PowerTable | None] = None
    """Power model of the hosts' sockets, and power caps; without it, power is not modelled."""
    observe: Written[Observe] = Field(default_factory=Observe)
    """What is measured."""
    placement: PlacementField = Field(default_factory=Placement)
    """Which hosts jobs get."""
    jobs: Written[list[Job]] = Field(min_length=1)
    """Tables `[[jobs]]`: one for each job."""
    fault: Written[list[Fault]] = Field(default_factory=list)
    """Faults of the fabric, with their times."""
    background: Written[Background | None] = None
    """Random background jobs on the hosts that ``jobs`` leave free."""

    _applied: Applied = PrivateAttr(default_factory=Applied)
    _document: Document = PrivateAttr(default_factory=lambda: current_document.get())  # noqa: PLW0108 - it has overloads
    _copied: bool = PrivateAttr(default=False)
    """A copy with other values than the document's."""

    @property
    def applied(self) -> Applied:
        """Keys that its ``model`` has set, and differences that remain."""
        return self._applied

    @property
    def file(self) -> Path | None:
        """The file that it was read from."""
        return self._document.file

    def reading(self) -> AbstractContextManager[None]:
        """Within, paths are relative to the scenario's file, and code runs if it may run in the scenario."""
        return override(current_document, self._document)
