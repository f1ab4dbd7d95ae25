"""Views of what is no folder of results, each of a small example; names try to break out of the page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl

import fairlane
from fairlane.cluster.counters.shared import HotLink
from fairlane.cluster.opensm.check import Checked, Difference
from fairlane.learn.predict.validation import Comparison
from fairlane.learn.scheduler.slowdown.model import load_model
from fairlane.model.fabric.congestion import Root
from fairlane.model.fabric.view import Fabric
from fairlane.model.pattern import analyse, program_of
from fairlane.model.placement import measure
from fairlane.model.scenario.models import Job
from fairlane.sim.analysis.analyze import analyze
from fairlane.sim.controller import control as controlled
from fairlane.views import (
    analysis,
    comparison,
    control,
    counters,
    pattern,
    placement,
    prediction,
    qos,
    slowdown,
)
from fairlane.views.model import View
from report_kinds import EXAMPLES
from report_runs import EVIL

__all__ = ["VIEWS"]


def _analysis() -> View:
    """Why iterations of a job are delayed by another one, on two groups of a Cascade."""
    scenario = fairlane.Scenario(
        name="cascade",
        duration="900 us",
        seed=3,
        fabric={"topology": "cascade", "groups": 2, "columns": 3, "rows": 2, "hosts_per_switch": 2},
        placement={"name": "linear", "ranks_per_host": 2},
        observe={"iterations": ["halo"]},
        jobs=[
            {"name": "halo", "ranks": 16, "workload": {"name": "uniform_random", "compute": "5 us"}},
            {"name": EVIL, "ranks": 24, "workload": {"name": "random_pairs", "message_size": "64 KiB"}},
        ],
    )
    with TemporaryDirectory() as folder:
        path = Path(folder) / "run"
        fairlane.run(scenario, out=path, isolated=False, progress=False)
        return analysis.view(analyze(path, job="halo", progress=False))


def _comparison() -> View:
    """A run against itself: nothing is beyond noise."""
    run = EXAMPLES["run"]()
    assert isinstance(run, fairlane.Run)
    return comparison.view(fairlane.compare(run, run))


def _control() -> View:
    """A controller that changes nothing, over three periods."""
    fabric = {"topology": "fat_tree", "hosts": 8, "levels": 1, "bandwidth": "100 Gb/s"}
    jobs = [{"name": name, "ranks": 4, "workload": {"name": "flood_pairs", "compute": "1 us"}} for name in ("a", EVIL)]
    qos = {"service_levels": 2, "arbiter": {"name": "weighted_round_robin", "weights": [1, 1]}}
    scenario = fairlane.Scenario(fabric=fabric, jobs=jobs, qos=qos)
    outcomes = list(controlled(scenario, "none", period="20 us", periods=3))
    return control.view(outcomes, f"{EVIL}: none")


def _counters() -> View:
    """A link of two jobs that is congested, and one with traffic of none."""
    links = [
        HotLink(f"{EVIL} port 1", "up", 4096, 7, 0.5, 0.9, ("a", EVIL)),
        HotLink("b", "host", 8, None, None, None, ()),
    ]
    roots = [Root(f"{EVIL} port 1", 0.9, 10**11, 2 * 10**11, 3, ("a", EVIL))]
    return counters.view(links, ["a", EVIL], roots, [f"{EVIL} has adapters of 2 speeds"])


def _pattern() -> View:
    """More ranks than the matrix has cells."""
    return pattern.view(analyse(program_of(Job.read({"ranks": 216, "workload": "halo3d"}, []).source, 216)), EVIL)


def _placement() -> View:
    """Eleven jobs on a tree of three levels, which have colours of a rainbow; two share a host."""
    params = {"levels": 3, "radix": 8, "hosts": 32, "bandwidth": 10**11}
    fabric = Fabric.build({"topology": "fat_tree", "params": params, "routing": "up_down"})
    jobs = {f"{name}": [2 * at, 2 * at + 1] for at, name in enumerate([EVIL, *range(1, 10)])} | {"late": [0, 20]}
    rows = {name: {**asdict(metrics), "node_list": EVIL} for name, metrics in measure(fabric, jobs).items()}
    return placement.view(EVIL, fabric, jobs, rows)


def _prediction() -> View:
    """Five runs of six timesteps, whose times a model has nearly right."""
    kind = {"model": "gbm", "hyperparameters": "own", "parts": "sparse", "setting": "inductive"}
    errors = {"mse": 0.1, "mse_sd": 0.02, "max_abs_error": 0.4, "max_abs_error_sd": 0.1, "mse_over_variance": 0.3}
    steps = [(at // 6, at % 6, 1 + at // 6 * (at % 3) / 2) for at in range(30)]
    times = [
        {**kind, "run": f"{EVIL}{run}", "timestep": step, "seconds": time, "predicted": time + 0.1}
        for run, step, time in steps
    ]
    return prediction.view("5 runs", Comparison(pl.DataFrame([{**kind, **errors}]), pl.DataFrame(times)), None)


def _slowdown() -> View:
    """A model of the package."""
    return slowdown.model_view(load_model("torus-128"))


def _qos() -> View:
    """A port with another table than exported."""
    different = Difference(EVIL, "3", "SL2VL", "0 1", "0 0", effect=EVIL)
    return qos.checked(Checked({"ports": 4}, (different,), engine="file", routes="", up_s=0.2, read_s=1.5))


VIEWS: dict[str, Callable[[], View]] = {
    "analysis": _analysis,
    "comparison": _comparison,
    "control": _control,
    "counters": _counters,
    "pattern": _pattern,
    "placement": _placement,
    "prediction": _prediction,
    "slowdown": _slowdown,
    "qos": _qos,
}
"""By the module of ``fairlane.views``."""
