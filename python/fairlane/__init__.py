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
    from fairlane.comparison import compare
    from fairlane.errors import BuildError, FairlaneError, Problem, RunError, ScenarioError
    from fairlane.fabric.view import Fabric
    from fairlane.folders import load, query
    from fairlane.inputs.code import allow_code
    from fairlane.results.run import Run
    from fairlane.runner import run
    from fairlane.scenario import Job, Scenario, required_virtual_lanes
    from fairlane.simulation import Simulation
    from fairlane.workload import Workload

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
    "BuildError": "fairlane.errors",
    "Fabric": "fairlane.fabric.view",
    "FairlaneError": "fairlane.errors",
    "Job": "fairlane.scenario",
    "Problem": "fairlane.errors",
    "Run": "fairlane.results.run",
    "RunError": "fairlane.errors",
    "Scenario": "fairlane.scenario",
    "ScenarioError": "fairlane.errors",
    "Simulation": "fairlane.simulation",
    "Workload": "fairlane.workload",
    "allow_code": "fairlane.inputs.code",
    "compare": "fairlane.comparison",
    "load": "fairlane.folders",
    "query": "fairlane.folders",
    "required_virtual_lanes": "fairlane.scenario",
    "run": "fairlane.runner",
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
