"""The comparison of cures: a bound by link capacity, and intervals over placements, paired by cell."""

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy
import polars as pl

from fairlane.core.statistics import over_replicates
from fairlane.model.pattern.traffic import observe, program_of
from fairlane.model.scenario import Resolved, Scenario

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

    from fairlane.model.workload.base import Workload
    from fairlane.study.sql import Database

SYSTEMS = Path(__file__).parent.with_name("savoie2020")
"""The folder of the scenarios."""
FIRST_PLACEMENT = 200
"""Placement n of the studies has this seed plus n."""
AFFORDED = 0.05
"""Loss of a job that the bound allows."""

BASELINE = "algorithm1_tuned"
"""The controller that others are compared with."""
ROBUST_LOSS = 0.02
"""A job that loses more than this share of its throughput counts as one that loses."""


def bounds(tables: "Database") -> "pl.DataFrame":
    """For each system, placement and seed the largest mean improvement that any service levels could give.

    Routes are fixed, so each link carries the traffic of the same ranks whatever their service levels. The bound is the
    solution of a linear programme: the largest mean improvement such that no link carries more than its bandwidth, no
    job is faster than isolated, and none loses more than ``AFFORDED``. Queueing is ignored, so it is not attained.
    """
    jobs = tables.ask(f"""
        SELECT * FROM jobs WHERE treatment = '{BASELINE}' AND controller_seed = 1
        ORDER BY system, placement, seed, position
    """)
    shift = int(tables.ask("SELECT seed - 1 FROM replicate").item())  # replicates have other placements
    rows = []
    for (system, placement, seed), group in jobs.group_by("system", "placement", "seed", maintain_order=True):
        hosts = FIRST_PLACEMENT + int(str(placement)) + shift
        taken = loads(str(system), hosts, int(str(seed)))
        improvement = largest(taken * group["rate"].to_numpy(), group["headroom"].to_numpy())
        rows.append({"system": system, "placement": placement, "seed": seed, "bound": improvement})
    return pl.DataFrame(rows)


@cache
def loads(system: str, placement: int, seed: int) -> "NDArray[numpy.float64]":
    """The share of each link's bandwidth that an iteration per second of each job takes: links by jobs."""
    data = Scenario.load(SYSTEMS / f"{system}.toml").model_dump(mode="json", exclude_none=True)
    for job in data["jobs"]:  # the division of time does not matter here
        job["workload"] = {key: parameter for key, parameter in job["workload"].items() if key != "compute_share"} | {
            "compute": "1 us"
        }
    scenario = Scenario(**{**data, "seed": seed, "placement": {"name": "random", "seed": placement}})
    resolved = scenario.resolve()
    fabric = resolved.fabric
    network = resolved.tables["network"]
    overhead = 1 + network["header"] / network["mtu"]
    columns = [fabric.loads(job.hosts, traffic) for job, traffic in _traffic(resolved)]
    used: NDArray[numpy.float64] = numpy.stack(columns, axis=1) * overhead * 8 / fabric.links["bandwidth"][:, None]
    return used


def _traffic(resolved: Resolved) -> Iterable[tuple[Any, "NDArray[numpy.float64]"]]:
    for job in resolved.jobs:
        source: Workload = job.table.workload  # type: ignore[assignment]
        total = observe(program_of(source, job.ranks, resolved.seed, job.number)).total
        yield job, total.astype(float) / source.distinct_iterations


def largest(taken: "NDArray[numpy.float64]", headroom: "NDArray[numpy.float64]") -> float:
    """The largest mean improvement, by the shares of each link that each job takes by default."""
    from scipy.optimize import linprog

    isolated = 1 + numpy.maximum(0.0, headroom)
    near = taken @ isolated > 1 - AFFORDED  # other links cannot be full
    constraints: Mapping[str, Any] = {"A_ub": taken[near], "b_ub": numpy.ones(int(near.sum()))} if near.any() else {}
    spans = [(1 - AFFORDED, most) for most in isolated]
    optimum = linprog(-numpy.ones(len(isolated)) / len(isolated), bounds=spans, **constraints)
    return float(-optimum.fun - 1) if optimum.status == 0 else float("nan")


def ranking(tables: "Database") -> "pl.DataFrame":
    """A row for each system and treatment: improvement with interval, share of the headroom, jobs that lose.

    Means are over placements, each of which is the mean of its cells: some have more controller seeds than others.
    ``difference`` is that of the mean improvements less twice ``BASELINE`` in the same cells, ``gain`` less once.
    """
    cells = tables.ask("""
        SELECT * FROM cells LEFT JOIN bounds USING (system, placement, seed)
        ORDER BY system, treatment, placement, seed, controller_seed
    """)
    rows = [
        _row(group, _baseline(cells, group)) for _, group in cells.group_by("system", "treatment", maintain_order=True)
    ]
    rows_by_treatment = pl.DataFrame(rows, infer_schema_length=None)
    return rows_by_treatment.sort("system", "improvement", descending=[True, True])


def _baseline(cells: "pl.DataFrame", group: "pl.DataFrame") -> "pl.DataFrame":
    """The baseline's improvement in the cells of a group, where it was run in them."""
    keys = ["system", "placement", "seed", "controller_seed"]
    other = cells.filter(pl.col("treatment") == BASELINE).select(*keys, pl.col("improvement").alias("baseline"))
    return group.join(other, on=keys, how="left")


def _row(group: "pl.DataFrame", joined: "pl.DataFrame") -> dict[str, Any]:

    known = joined.filter(pl.col("baseline").is_not_null())
    row: dict[str, Any] = {"system": group["system"][0], "treatment": group["treatment"][0]}
    row |= {"placements": group["placement"].n_unique(), "cells": group.height, "jobs": int(group["jobs"].sum())}
    row |= _estimate("improvement", group, pl.col("improvement"))
    row |= _estimate("gain", known, pl.col("improvement") - pl.col("baseline"))
    row |= _estimate("difference", known, pl.col("improvement") - 2 * pl.col("baseline"))
    names = ("headroom", "bound", "w")
    of_placements = group.group_by("placement", maintain_order=True).agg(pl.col(*names).mean())
    means = of_placements.select(pl.col(*names).cast(pl.Float64).mean().fill_null(float("nan"))).row(0, named=True)
    row |= {"headroom": means["headroom"], "share": row["improvement"] / means["headroom"]}
    row |= {"bound": means["bound"], "share_of_bound": row["improvement"] / means["bound"]}
    row |= {"worst": group["worst"].min(), "best": group["best"].max(), "w": means["w"]}
    return row | {"losing": float(group["losing"].to_numpy().sum() / row["jobs"])}


def _estimate(name: str, cells: "pl.DataFrame", value: "pl.Expr") -> dict[str, float | None]:
    """The mean over placements with its interval."""
    units: Iterable[pl.DataFrame] = (group for _, group in cells.group_by("placement", maintain_order=True))
    estimate = over_replicates([group.select(value).to_series().to_list() for group in units])
    if estimate is None:
        return dict.fromkeys((name, f"{name}_low", f"{name}_high"))
    return {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}


def variances(tables: "Database") -> "pl.DataFrame":
    """Return the shares of the variance of a treatment's improvement: placements, scenarios and controllers.

    By the analysis of variance of a nested design: controller seeds within scenario seeds within placements, each with
    the same number of seeds; placements with fewer cells than others are left out. With one controller seed
    ``sd_controllers`` is null and ``sd_scenarios`` includes it.
    """
    cells = tables.ask("SELECT * FROM cells ORDER BY system, treatment, placement, seed, controller_seed")
    rows = []
    for (system, treatment), group in cells.group_by("system", "treatment", maintain_order=True):
        counts = pl.len().over("placement")
        whole = group.filter(counts == counts.max())
        scenarios = _level(whole.rename({"improvement": "mean"}), "placement", "seed")
        placements = _level(scenarios, "placement")
        if placements.height < 2 or placements["within"].null_count():
            continue
        row = {"system": system, "treatment": treatment}
        row |= {"scenario_seeds": int(placements["len"].to_numpy().min())}
        row |= {"controller_seeds": int(scenarios["len"].to_numpy().min())}
        controllers = float(scenarios["within"].fill_null(0.0).to_numpy().mean())
        of_scenarios = float(placements["within"].to_numpy().mean())
        of_placements = float(placements["mean"].to_numpy().var(ddof=1))
        row["sd_placements"] = max(0.0, of_placements - of_scenarios / row["scenario_seeds"]) ** 0.5
        row["sd_scenarios"] = max(0.0, of_scenarios - controllers / row["controller_seeds"]) ** 0.5
        rows.append(row | {"sd_controllers": controllers**0.5 if row["controller_seeds"] > 1 else None})
    seeds = dict.fromkeys(("scenario_seeds", "controller_seeds"), pl.Int64)
    deviations = dict.fromkeys(("sd_placements", "sd_scenarios", "sd_controllers"), pl.Float64)
    return pl.DataFrame(rows, schema={"system": pl.String, "treatment": pl.String, **seeds, **deviations})


def _level(rows: "pl.DataFrame", *keys: str) -> "pl.DataFrame":
    """Of each group its mean, the variance within it, and how many rows it has."""
    groups = rows.group_by(keys, maintain_order=True)
    return groups.agg(pl.col("mean").mean(), pl.len(), within=pl.col("mean").var())
