"""Packet-level simulation of many MPI jobs that share one HPC interconnect.

A scenario says which jobs run where on which fabric with which service levels::

    import fairlane

    scenario = fairlane.Scenario.load("examples/quickstart.toml")
    simulation = fairlane.Simulation(scenario)
    simulation.run_for("5 ms")
    print(simulation.result().jobs)

``fairlane.run`` simulates a scenario wholly, together with every job alone; its ``Run`` has the tables as data frames,
and ``save``, ``plot`` and ``query``. ``fairlane.load`` reads one from its folder. Names are imported when they are
first used, so ``import fairlane`` itself costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairlane.core.errors import BuildError, FairlaneError, Problem, RunError, ScenarioError
    from fairlane.inputs.code import allow_code
    from fairlane.model.fabric.view import Fabric
    from fairlane.model.scenario import Job, Scenario, required_virtual_lanes
    from fairlane.model.workload import Workload
    from fairlane.results.run import Run
    from fairlane.sim.runner import run
    from fairlane.sim.simulation import Simulation
    from fairlane.study.comparison import compare
    from fairlane.study.folders import load, query

__all__ = [
    "BuildError",
    "Fabric",
    "FairlaneError",
    "Job",
    "Problem",
    "Run",
    "RunError",
    "Scenario",
    "ScenarioError",
    "Simulation",
    "Workload",
    "__version__",
    "allow_code",
    "compare",
    "load",
    "query",
    "required_virtual_lanes",
    "run",
]

_HOME = {
    "BuildError": "fairlane.core.errors",
    "Fabric": "fairlane.model.fabric.view",
    "FairlaneError": "fairlane.core.errors",
    "Job": "fairlane.model.scenario",
    "Problem": "fairlane.core.errors",
    "Run": "fairlane.results.run",
    "RunError": "fairlane.core.errors",
    "Scenario": "fairlane.model.scenario",
    "ScenarioError": "fairlane.core.errors",
    "Simulation": "fairlane.sim.simulation",
    "Workload": "fairlane.model.workload",
    "allow_code": "fairlane.inputs.code",
    "compare": "fairlane.study.comparison",
    "load": "fairlane.study.folders",
    "query": "fairlane.study.folders",
    "required_virtual_lanes": "fairlane.model.scenario",
    "run": "fairlane.sim.runner",
}


def __getattr__(name: str) -> Any:
    """Imports a public name on first use (PEP 562)."""
    if name == "__version__":
        from importlib.metadata import version

        return version("fairlane")
    if name == "_core":
        return import_module("fairlane.core.extension").load()
    if name not in _HOME:
        raise AttributeError(f"module 'fairlane' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return __all__
