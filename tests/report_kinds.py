"""Small results of every kind for tests of report pages; names try to break out of the page."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import polars as pl
import pytest

import advised
import fairlane
from fairlane import Run, Scenario
from fairlane.learn.scheduler.compare import compare_allocators, results_of
from fairlane.learn.scheduler.log import LoggedJob
from fairlane.model.fabric.view import Fabric
from fairlane.model.placement import ALLOCATORS
from fairlane.results.base import Results
from fairlane.results.reproduction import (
    ChartData,
    FigureData,
    MapMeta,
    ReproductionMeta,
    ReproductionResults,
    RobustnessResults,
)
from fairlane.results.schedule import ScheduleResults
from fairlane.results.schemas import MAP, VERDICTS, types
from fairlane.results.study import StudyResults
from fairlane.study.running import run
from fairlane.study.shipped.advice import Advice, Alternatives, ask
from fairlane.study.shipped.cables import Cables, Survey
from fairlane.study.shipped.gpcnet import Benchmark, Gpcnet
from fairlane.study.shipped.saturation import LoadSweep, Saturation
from fairlane.study.study import Study
from report_runs import EVIL, SCENARIO, evil
from small_study import Here

__all__ = [
    "EXAMPLES",
    "a_run",
    "emptied",
    "failures",
    "impact",
    "map_results",
    "reproduction",
    "schedule",
    "study",
    "sweep_results",
]

STUDY = """
placements = 3
[scenario]
name = "two"
duration = "300 us"
fabric = { topology = "fat_tree", hosts = 16, levels = 2, radix = 8, bandwidth = "3.2 GB/s" }
qos = { service_levels = 2, arbiter = { name = "weighted_round_robin", weights = [7, 1] } }
placement = "random"
[[scenario.jobs]]
name = "pairs"
ranks = 8
workload = { name = "flood_pairs", message_size = "4 KiB", compute = "10 us" }
[[scenario.jobs]]
name = "total"
ranks = 8
workload = { name = "all_to_all", message_size = "4 KiB", compute = "10 us" }
[parameters]
"jobs[0].workload.compute" = ["5 us", "20 us"]
[treatments.pairs-first.set]
"jobs[0].service_level" = 0
"jobs[1].service_level" = 1
[treatments.total-first.set]
"jobs[0].service_level" = 1
"""

QUICK = {"name": "flood_pairs", "message_size": "4 KiB", "compute": "1 us"}

CONTROLLED = """
[treatments.feedback]
mode = "online"
period = "60 us"
periods = 5
controller = { name = "process_prioritization", threshold = 0.9, service_levels = 2 }
"""
"""A treatment to add: what a controller does in each of five periods."""


def a_run() -> Run:
    """A small run with samples, queueing delay by port, power, iterations of a job, and jobs left out, in memory."""
    tables = tomllib.loads(SCENARIO)
    tables["observe"] |= {"iterations": ["total"], "leave_one_out": True}
    return evil(fairlane.run(Scenario(**tables)))


def study(folder: Path, more: str = "") -> StudyResults:
    """A study of two treatments, and ``more``, with a parameter and three placements, in a new folder."""
    file = folder.with_suffix(".toml")
    file.write_text(STUDY + more)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fairlane.study.tasks.pools.Processes", Here)
        return run(Study.load(file), out=folder, workers=1, progress=False)


def renamed(found: StudyResults) -> StudyResults:
    """A study whose first job and a treatment have names that break out."""
    old = {"pairs": EVIL, "pairs-first": EVIL}
    tables: dict[str, Any] = {
        name: table.with_columns(pl.col("treatment").replace(old)) for name, table in found.tables().items()
    }
    tables["work"] = tables["work"].with_columns(pl.col("name").replace(old))
    return replace(found, meta=found.meta.model_copy(update={"study": EVIL}), **tables)


def sweep_results() -> Saturation:
    """Three loads with two seeds on one switch, in memory; the last load is too much."""
    tables: dict[str, Any] = {
        "name": "sweep",
        "fabric": {"topology": "fat_tree", "hosts": 8, "levels": 1, "bandwidth": "100 Gb/s", "latency": "100 ns"},
        "jobs": [{"name": "pairs", "ranks": 4, "workload": "flood_pairs"}],
    }
    return LoadSweep(Scenario(**tables), loads=[0.2, 0.5, 1.0], replicates=2, duration="60 us").run()


def failures(*, switches: bool = False) -> Cables:
    """Two leaves with four cables each to a spine, one of which fails at a time, on three seeds, in memory."""
    tables: dict[str, Any] = {
        "name": "failures",
        "duration": "300 us",
        "fabric": {"topology": "fat_tree", "hosts": 8, "levels": 2, "radix": 8, "bandwidth": "100 Gb/s"},
        "network": {"retransmission_timeout": "10 us", "sweep_time": "20 us"},
        "jobs": [
            {"name": "across", "ranks": 4, "placement": {"name": "list", "hosts": [0, 2, 4, 6]}, "workload": QUICK},
            {"name": "inside", "ranks": 2, "placement": {"name": "list", "hosts": [1, 3]}, "workload": QUICK},
        ],
    }
    found = Survey(Scenario(**tables), replicates=3, switches=switches).run()
    renamed = found.slowdowns.with_columns(pl.col("name").replace("inside", EVIL))
    return replace(found, slowdowns=renamed, meta={**found.meta, "scenario": {"name": EVIL}})


def impact() -> Gpcnet:
    """GPCNeT with two transports on three assignments of 16 hosts, in memory."""
    fabric = {"topology": "fat_tree", "hosts": 16, "levels": 2, "radix": 8, "bandwidth": "100 Gb/s"}
    scenario = Scenario(fabric=fabric, jobs=[{"ranks": 2, "workload": "flood_pairs"}])
    options = {"ranks_per_host": 2, "replicates": 3, "iterations": 25, "warm_up": "10 us"}
    found = Benchmark(scenario, transports=["credits_only", "swift"], **options).run()
    return replace(found, meta={**found.meta, "scenario": {"name": EVIL}, "left_out": {EVIL: "needs deeper buffers"}})


def advice() -> Advice:
    """Two alternatives of a job beside another, on one seed, in memory; names break out."""
    file = Path(mkdtemp()) / "advised.toml"
    file.write_text(advised.SCENARIO.replace('"1 ms"', '"0.2 ms"'))
    question = ask(file, None, None, [0], [])
    found = Alternatives(replace(question, choices=question.choices[:2]), seeds=1).run()
    tables: dict[str, Any] = {
        name: getattr(found, name).with_columns(rails=pl.lit(EVIL)) for name in ("runs", "alternatives")
    }
    return replace(found, **tables, meta={**found.meta, "job": EVIL, "scenario": {"name": EVIL}})


def schedule(*, late: int = 0) -> ScheduleResults:
    """Twelve jobs on 16 hosts under two allocators, one with a name that breaks out, in memory."""
    jobs = [LoggedJob(at + 1, late + 60 * at, 600 + 60 * at, (2, 4, 8, 16)[at % 4], 1500, at + 1) for at in range(12)]
    spec: dict[str, Any] = {"topology": "torus", "params": {"sides": [4, 4]}, "routing": "dimension_order"}
    fabric = Fabric.build(spec)
    allocators = {"linear": ALLOCATORS.find("linear").read({}), EVIL: ALLOCATORS.find("box").read({})}
    found = compare_allocators(jobs, fabric, allocators)
    log = Path(__file__).parent / "data" / "jobs" / "README.md"
    facts: dict[str, Any] = {"hosts": fabric.hosts, "fabric": spec, "load": 1.0, "seed": 1, "model": None}
    return results_of(found, log, lambda number: ("hybrid", "unclear")[number % 2], {}, **facts)


def reproduction(*, holds: bool = True) -> ReproductionResults:
    """Two claims over three replicates, with figures; names break out."""
    value, verdict = (0.8, "holds") if holds else (0.2, "does not hold")
    throughput = {"measured": "throughput …", "band": ">= 0.5", "reported": "0.9", "low": 0.5}
    evil_number = {"measured": EVIL, "band": "0 to 1", "low": 0.0, "high": 1.0}
    measured = {"claim": "a.throughput", "where": "IV", "paper": "much is accepted", "line": f"{verdict}, 3 replicates"}
    claim = {**measured, "verdict": verdict, "claim_words": verdict, "clause_verdict": verdict, "replicates": 3}
    numbers = (
        (throughput, (value, 0.7, None), (holds, True, False)),
        (evil_number, (0.5, 0.6, 9.0), (True, True, False)),
    )
    rows = [
        {**claim, **number, "number": place, "replicate": at, "value": values[at - 1], "in_band": held[at - 1]}
        for place, (number, values, held) in enumerate(numbers)
        for at in (1, 2, 3)
    ]
    left_out = {"claim": "a.left-out", "where": "V", "paper": "nothing", "line": "not run", "verdict": "not run"}
    rows.append({**left_out, "missing": ["large: not run"], "claim_words": "not run"})
    verdicts = pl.DataFrame([{"variant": "", "clause": 1, "missing": [], **row} for row in rows], types(VERDICTS))
    meta = ReproductionMeta(
        version="0",
        paper="a",
        title="A paper",
        citation="Nobody",
        quick=False,
        simulator="5",
        simulations=2,
        cpu_s=3.0,
    )
    cells = pl.DataFrame({"cell": ["first", "second"], "wall_s": [1.0, 2.0], "cpu_s": [1.0, 2.0], "error": [None, "x"]})
    return ReproductionResults(meta, verdicts, cells, [_figure(), _strip()], map_results())


def _figure() -> FigureData:
    """Lines and boxes, each with two panels."""
    columns = {
        "load": [0.1, 0.5, 0.9] * 4,
        "rate": [0.1, 0.4, 0.5, 0.1, 0.5, 0.8] * 2,
        "routing": (["minimal"] * 3 + ["ugal"] * 3) * 2,
        "traffic": ["uniform"] * 6 + [EVIL] * 6,
    }
    shared: dict[str, Any] = {"facet": {"field": "traffic"}, "y": {"field": "rate"}, "color": {"field": "routing"}}
    own = {"resolve": {"scale": {"x": "independent", "y": "independent"}}}
    lines = {"mark": {"type": "line", "point": True}, "encoding": {**shared, "x": {"field": "load"}}, **own}
    boxes = {"mark": "boxplot", "encoding": {**shared, "x": {"field": "routing"}}, **own}
    charts = [ChartData(spec=spec, columns=columns, rows=12) for spec in (lines, boxes)]
    return FigureData(file="rates", title="Rates", note=EVIL, columns=2, charts=charts)


def _strip() -> FigureData:
    """A layered chart with an evil name, of which some rows are left out."""
    dots = {"mark": "point", "encoding": {"x": {"field": "x"}, "y": {"field": "y", "scale": {"type": "log"}}}}
    spec = {"layer": [{"mark": "rule", "encoding": {"y": {"datum": 5}}}, dots]}
    columns = {"x": ["a", EVIL] * 5, "y": [float(at) for at in range(10)]}
    return FigureData(file="strip", title="Strip", charts=[ChartData(spec=spec, columns=columns, rows=20)])


def map_results() -> RobustnessResults:
    """A map of two clauses and a parameter at four points."""
    base = {"claim": ["a.throughput"] * 2, "clause": [1, 2]}
    clauses = pl.DataFrame(
        {
            "paper": "a",
            "title": "A paper",
            **base,
            "says": ["much is accepted", EVIL],
            "verdict": ["depends", "robust"],
            "near_certain": False,
            "points": 4,
            "held": [2, 4],
            "share": [0.5, 1.0],
            "share_low": [0.2, 0.6],
            "share_high": [0.8, 1.0],
            "default_points": 2,
            "default_held": [1, 2],
            "chance": 0.1,
            "decided_by": ["buffer", ""],
        }
    )
    indices = pl.DataFrame(
        {
            **base,
            "parameter": "buffer",
            "index": [0.6, 0.1],
            "index_low": 0.0,
            "index_high": 0.9,
            "p": [0.01, 0.8],
            "beyond_chance": [True, False],
        }
    )
    levels = pl.DataFrame(
        {
            "claim": "a.throughput",
            "clause": [1, 1],
            "parameter": "buffer",
            "level": ["small", "large"],
            "points": 2,
            "held": [0, 2],
            "share": [0.0, 1.0],
            "share_low": [0.0, 0.3],
            "share_high": [0.7, 1.0],
        }
    )
    points = pl.DataFrame(
        {
            "point": [1, 2, 3, 4],
            "buffer": [16.0, 32.0, 64.0, 128.0],
            "claim": "a.throughput",
            "clause": 1,
            "measured": "0.5",
            "value": 0.5,
            "low": 0.4,
            "high": None,
            "margin": [-0.2, -0.1, 0.1, 0.2],
            "holds": [False, False, True, True],
        }
    )
    points = pl.concat([points, points.with_columns(clause=2, margin=0.3, holds=True)], how="vertical_relaxed")
    levels = pl.concat([levels, levels.head(1).with_columns(clause=2, held=2, share=1.0)], how="vertical_relaxed")
    meta = MapMeta(
        version="0",
        paper="a",
        title="A paper",
        simulator="5",
        lines=["4 points."],
        parameters=[
            {"name": "buffer", "title": "buffer of a port", "range": "16 to 128", "default": "64", "source": "-"}
        ],
    )
    return RobustnessResults(meta, dict(zip(MAP, (points, clauses, indices, levels), strict=True)))


def _broken() -> Results:
    return failures(switches=True)


def emptied(results: Results, folder: Path) -> Results:
    """The results with no rows in their tables."""
    if isinstance(results, RobustnessResults):
        return replace(results, frames={name: table.clear() for name, table in results.frames.items()}, folder=folder)
    tables: dict[str, Any] = {name: table.clear() for name, table in results.tables().items()}
    if isinstance(results, ReproductionResults):
        tables = {name: tables[name] for name in ("verdicts", "cells")}  # the others are made from these
        tables |= {"meta": results.meta.model_copy(update={"claims": []}), "figures": (), "robustness": None}
    return replace(results, folder=folder, **tables)  # type: ignore[type-var]


EXAMPLES: dict[str, Callable[[], Results]] = {
    "run": a_run,
    "saturation": sweep_results,
    "advice": advice,
    "gpcnet": impact,
    "cables": lambda: failures(switches=True),
    "reproduction": reproduction,
    "schedule": schedule,
    "robustness": map_results,
    "study": lambda: renamed(study(Path(mkdtemp()) / "study", CONTROLLED)),
}
"""Results of each kind that has a view, by its module."""
