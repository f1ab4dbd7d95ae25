"""Cells of a campaign simulated: the scenario of their jobs, and the time of each iteration.

Each replicate has a start of the victim, seeds and, where nodes are not known, a placement of its own.
"""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from fairlane.core.drive import Engine
from fairlane.core.errors import Problem, RunError
from fairlane.core.seeds import Purpose, stream
from fairlane.core.tables import PS, frame
from fairlane.core.units import DURATION
from fairlane.inputs.document import Document, assign, undotted
from fairlane.inputs.problems import refusing
from fairlane.model.fabric.view import Fabric
from fairlane.model.scenario import Scenario
from fairlane.model.scenario.resolve import building
from fairlane.papers.campaign.cells import Cell, Cells, jobs_of
from fairlane.papers.campaign.file import CampaignFile
from fairlane.papers.space import Value
from fairlane.study.tasks.task import Answer, Stopwatch, Task, read

_FUNCTION = "fairlane.papers.campaign.simulating:measured"
_SET_UP = 2e9  # of a fabric of thousands of hosts, in bytes whose simulation takes as long


class Model:
    """The scenario of a campaign with values of its parameters, by default their own."""

    def __init__(self, campaign: CampaignFile, cells: Cells, values: Mapping[str, Value] | None = None) -> None:
        self.campaign, self.cells = campaign, cells
        self.values = {parameter.name: parameter.usual for parameter in campaign.parameter} | dict(values or {})
        self.data = deepcopy(Document.read(campaign.folder / campaign.scenario).data)
        if "jobs" in self.data:
            message = "belongs to the cells: the scenario of a campaign has no jobs"
            raise campaign.refuse(Problem("scenario", message, campaign.scenario))
        for key, value in campaign.changes(self.values):
            if not key.startswith("jobs"):
                assign(self.data, undotted(key), value)

    def scenario(self, cell: Cell, replicate: int) -> Mapping[str, Any]:
        """The data of a cell's scenario. Raises ``ScenarioError`` if its nodes are not known."""
        measure = self.campaign.measure
        data = {**deepcopy(self.data), "name": str(cell), "seed": replicate, "duration": DURATION.format(measure.limit)}
        data["jobs"] = [self._job(cell, job, replicate) for job in jobs_of(cell)]
        for key, value in self.campaign.changes(self.values):
            if key.startswith("jobs"):
                assign(data, undotted(key), value)
        return data

    def _job(self, cell: Cell, job: str, replicate: int) -> Mapping[str, Any]:
        campaign, victim = self.campaign, job == "victim"
        of = campaign.victims[cell.victim] if victim else campaign.aggressors[cell.aggressor]
        workload = {"compute": "0 ns", **of}
        if victim:
            workload["message_size"] = f"{cell.msg_bytes} B"
        for key in ("burst", "pause"):
            length = getattr(cell, f"{key}_s")
            if length is not None and not victim:
                workload[key] = DURATION.format(round(length / PS))
        nodes = self.cells.nodes_of(cell, job, replicate - 1)
        if nodes is None:
            ranks = cell.nodes // 2 if victim else cell.nodes - cell.nodes // 2
            placement: Mapping[str, Any] = {"name": campaign.placement, "seed": replicate}
        else:
            ranks, placement = len(nodes), {"hosts": list(nodes)}
        late = stream(replicate, Purpose.START, 0).integers(campaign.measure.stagger + 1) if victim else 0
        start = {"start": DURATION.format(int(late))} if late and not cell.isolated else {}
        return {"name": job, "ranks": ranks, "placement": placement, "workload": workload, **start, **campaign.job}

    def check(self) -> None:
        """Builds the fabric. Raises ``ScenarioError`` if it cannot be, or lacks nodes, or a cell has no placement."""
        _ = self.cells.digest
        scenario = read(self.task(self.cells.all[0], 1))
        with refusing():
            names = building(lambda: Fabric.build(scenario.fabric.spec)).host_names
        self.cells.check_nodes(names)

    def task(self, cell: Cell, replicate: int) -> Task:
        """Return the task that simulates a cell; the same digest for the same simulation."""
        measure = self.campaign.measure
        least, most = (measure.isolated,) * 2 if cell.isolated else (measure.least, measure.iterations)
        arguments = {"warm_up": measure.warm_up, "least": least, "most": most, "span": measure.span}
        scenario, folder = self.scenario(cell, replicate), str(self.campaign.folder)
        return Task(_FUNCTION, scenario, folder, f"{cell}, replicate {replicate}", arguments, _cost(cell))


def _cost(cell: Cell) -> float:
    return _SET_UP + cell.nodes**2 * (cell.msg_bytes + 65536) * (1 if cell.isolated else 3)


def measured(scenario: Scenario, arguments: Mapping[str, Any], watch: Stopwatch) -> Answer:
    """Simulates a cell: the time of each iteration of its victim, s, those of the warm-up left out.

    Raises ``RunError`` if the scenario's duration ends before the fewest iterations are done.
    """
    with watch.lap("set-up"):
        resolved = scenario.resolve()
    warm_up, least, most, span = (int(arguments[name]) for name in ("warm_up", "least", "most", "span"))
    begin = resolved.jobs[0].start

    def done(engine: Engine) -> bool:
        count = min(engine.progress()[0]) - warm_up
        return count >= most or (count >= least and engine.now - begin >= span)

    with watch.lap("simulating"):
        engine = watch.drive(resolved, done)
    marks = frame(engine.table("job_marks"))
    times = [marks.filter((marks["job"] == job) & (marks["iteration"] > (0 if job else warm_up))) for job in (0, 1)]
    of_victim = (times[0]["elapsed"] * PS).to_list()[:most]
    if len(of_victim) < least:
        limit = DURATION.format(resolved.duration)
        raise RunError(f"{len(of_victim)} of {least} iterations within {limit}: measure.limit is too short")
    rounds = (times[1]["elapsed"] * PS).to_list()
    return {
        "times_s": of_victim,
        "aggressor_s": sum(rounds) / len(rounds) if rounds else None,
        "simulated_s": engine.now * PS,
        "packet_hops": engine.packet_hops,
        "digest": engine.digest(),
    }
