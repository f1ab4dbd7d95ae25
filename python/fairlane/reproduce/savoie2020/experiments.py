"""Savoie et al. 2020, Mitigating Inter-Job Interference via Process-Level Quality-of-Service: sections 6.1 to 6.10.

Experiments are defined here, systems and workloads in ``systems``, claims are judged in ``checks``.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fairlane.controller.loop import Phases
from fairlane.reproduce.savoie2020.experiment import DEFAULT, Experiment, Scale
from fairlane.reproduce.savoie2020.systems import MICROBENCHMARKS, SHORT, STATIC, SYSTEMS, job, scenario, static_jobs
from fairlane.reproduce.traces import trace
from fairlane.scenario.resolve import decide

__all__ = ["EXPERIMENTS"]

FULL = Scale(placements=8, periods=500)
QUICK = Scale(placements=1, periods=20, period="10 ms", draws=3)
QUICK_MEDIUM = Scale(placements=1, periods=8, period="20 ms", draws=2)


def _whole(system: str, jobs: Callable[[], Sequence[Any]]) -> Callable[[int, Scale], Phases]:
    """The same jobs from beginning to end."""
    return lambda placement, _scale: {0: scenario(system, SYSTEMS[system], jobs(), placement)}


def _static(
    system: str, share: float = 0.65, workloads: Sequence[str] = STATIC, **more: Any
) -> Callable[[int, Scale], Phases]:
    return _whole(system, lambda: static_jobs(SYSTEMS[system], share, workloads, **more))


def _mini_amg() -> list[dict[str, Any]]:
    return [job("amg", "mini_amg", 32, 0.65), *(job(SHORT[name], name, 8, 0.65) for name in STATIC)]


def _arrivals(placement: int, scale: Scale) -> Phases:
    """Five phases of equal length, a period at least; as each but the first begins, a job is replaced on its hosts."""
    system, jobs = SYSTEMS["small"], static_jobs(SYSTEMS["small"])
    hosts = [found.hosts for found in decide(scenario("arrivals", system, jobs, placement)).jobs]
    jobs = [{**one, "placement": {"name": "list", "hosts": list(on)}} for one, on in zip(jobs, hosts, strict=True)]
    phases = {0: scenario("arrivals", system, jobs, placement)}
    for number, workload in enumerate(STATIC, 1):
        at = next(index for index, one in enumerate(jobs) if one["workload"]["name"] == workload)
        later = job(f"{SHORT[workload]}-{system.copies}", workload, system.ranks, 0.35)
        jobs = [{**later, "placement": one["placement"]} if index == at else one for index, one in enumerate(jobs)]
        begin = max(number, number * scale.periods // 5)
        if begin < scale.periods:
            phases[begin] = scenario("arrivals", system, jobs, placement)
    return phases


def _crystal_and_pf3d() -> list[dict[str, Any]]:
    """Crystal Router from its trace, four ranks a host; pF3D as a pattern, half of its time in communication.

    The trace was recorded on two slow cores that all ranks shared: a tenth of its compute time counts.
    """
    crystal = {"path": str(trace("crystal-100")), "compute_scale": 0.1}
    balanced = {"kind": "uniform", "low": 1.0}
    return [
        *({"name": f"crystal-{copy}", "trace": crystal, "ranks_per_host": 4} for copy in range(3)),
        *(
            {
                "name": f"pf3d-{copy}",
                "ranks": 32,
                "workload": {"name": "pf3d", "compute_share": 0.5, "imbalance": balanced},
            }
            for copy in range(3)
        ),
    ]


def _applications() -> list[dict[str, Any]]:
    """AMG from its trace; ParaDiS as a pattern: neighbours exchange little, and their work has drifted apart."""
    amg = {"path": str(trace("amg-27")), "iteration": {"collective": "allreduce"}}
    paradis = {
        **MICROBENCHMARKS["mini_paradis"],
        "name": "mini_paradis",
        "message_size": "8 KiB",
        "compute_share": 0.8,
        "imbalance": {"kind": "uniform"},
    }
    return [
        *({"name": f"amg-{copy}", "trace": amg} for copy in range(2)),
        *({"name": f"paradis-{copy}", "ranks": 32, "workload": paradis} for copy in range(2)),
        *_crystal_and_pf3d(),
    ]


def _mixed() -> list[dict[str, Any]]:
    small = [
        job(f"{SHORT[name]}-{copy}", name, 8, 0.65) for name in ("flood_pairs", "nearest_neighbor") for copy in range(8)
    ]
    return [*small, *_crystal_and_pf3d()]


def _small(name: str, figure: str, title: str, phases: Callable[[int, Scale], Phases], **more: Any) -> Experiment:
    return Experiment(name, figure, title, phases, FULL, QUICK, **more)


def _threshold(threshold: float, figure: str) -> Experiment:
    return _small(
        f"small.threshold-{threshold:.1f}",
        figure,
        f"T = {threshold:.1f}",
        _static("small"),
        parameters={"threshold": threshold},
        default_of="small.static",
    )


_ALL = (
    _small("small.static", "Fig. 4", "static jobs on 64 hosts", _static("small")),
    Experiment("medium.static", "Fig. 3", "static jobs on 324 hosts", _static("medium"), FULL, QUICK_MEDIUM),
    _small(
        "small.long-observation",
        "Fig. 5",
        "the default observed for ten periods",
        _static("small"),
        parameters={"default_periods": 10},
        default_of="small.static",
    ),
    _small(
        "small.imbalance-small",
        "Fig. 6",
        "small imbalance",
        _static("small", imbalance={"kind": "uniform", "low": 0.9}),
    ),
    _small("small.imbalance-large", "Fig. 7", "large imbalance", _static("small", imbalance="one_rank")),
    _small(
        "small.mini-paradis",
        "Fig. 8",
        "with Mini-ParaDiS",
        _static("small", workloads=("flood_pairs", "nearest_neighbor", "mini_paradis", "all_to_all")),
    ),
    _small("small.mini-amg", "Fig. 9", "with Mini-AMG", _whole("small", _mini_amg)),
    _small("small.compute-35", "Fig. 10", "35% computation", _static("small", 0.35)),
    _small("small.compute-90", "Fig. 11", "90% computation", _static("small", 0.90)),
    _threshold(0.4, "Fig. 12"),
    _threshold(1.0, "Fig. 13"),
    Experiment(
        "small.arrivals",
        "Fig. 14",
        "arrivals and departures",
        _arrivals,
        Scale(placements=8, periods=2500),
        Scale(placements=1, periods=20, period="10 ms", draws=3),
        by_job=True,
    ),
    Experiment(
        "large.static",
        "Fig. 15",
        "static jobs on 1296 hosts",
        _static("large"),
        Scale(placements=4, periods=2350),
        None,
        parameters={"default_periods": 10},
    ),
    Experiment("medium.applications", "Fig. 17", "applications", _whole("medium", _applications), FULL, QUICK_MEDIUM),
    Experiment(
        "medium.mixed", "Fig. 18", "applications and microbenchmarks", _whole("medium", _mixed), FULL, QUICK_MEDIUM
    ),
    _small(
        "small.adaptive-routing",
        "Fig. 19",
        "adaptive routing",
        _static("small"),
        treatments=(DEFAULT,),
        routing="adaptive",
    ),
)

EXPERIMENTS: Mapping[str, Experiment] = {experiment.name: experiment for experiment in _ALL}
"""By name, in the paper's order."""
