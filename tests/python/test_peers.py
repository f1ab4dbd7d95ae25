"""Times of the same messages and jobs in other simulators: what is stored is what is simulated, and why they differ."""

import csv
from pathlib import Path

import numpy
import polars
import pytest
from scipy.stats import t

from fairlane import Simulation
from fairlane.model.fabric.graph import columns
from fairlane.model.workload.point_to_point import PingPong
from fairlane.study.setting import Point
from fairlane.study.study import Study

ROOT = Path(__file__).parent.parent.parent
TABLES = ROOT / "docs" / "reproduction" / "peers"
STORED = polars.read_csv(TABLES / "sst.csv")
COLUMNS = {"snappr": "fairlane_rules", "default": "fairlane_default"}
BYTE = 0.08e-3
"""Time of a byte at 12.5 GB/s, us."""


def times_of(study: Study, point: Point) -> dict[tuple[int, int], float]:
    """Time of each iteration but the first of the last job, us, by its number and rank."""
    simulation = Simulation(study.scenario(point))
    simulation.run_for("1 ms")
    marks = columns(simulation.engine.table("marks"))
    measured = (marks["job"] == marks["job"].max()) & (marks["iteration"] > 0)
    keys = zip(marks["iteration"][measured].tolist(), marks["rank"][measured].tolist(), strict=True)
    return dict(zip(keys, (marks["elapsed"][measured] / 1e6).tolist(), strict=True))


def stored(cell: str, quantity: str) -> dict[str, float]:
    """The row of a cell by column."""
    (row,) = STORED.filter(cell=cell, quantity=quantity).iter_rows(named=True)
    return row


@pytest.mark.parametrize("fabric", ["tree", "dragonfly"])
def test_messages_take_what_is_stored_and_differ_by_the_tail_of_their_last_packets(fabric: str) -> None:
    """SST/macro counts each message as delivered with the head of its last packet (``differs`` of the model)."""
    study = Study.load(ROOT / "examples" / "peers" / "sst" / "messages.toml")
    points = {point.parameters["rules"]: point for point in study.points() if point.parameters["fabric"] == fabric}
    times = {rules: times_of(study, point) for rules, point in points.items()}
    scenario = study.scenario(points["snappr"])
    (job,) = scenario.jobs
    assert isinstance(job.workload, PingPong)
    assert job.workload.sizes
    assert scenario.mpi.mailbox_threshold
    for iteration, size in enumerate(job.workload.sizes[1:], start=1):
        unit = f"{size >> 20} MiB" if size >> 20 else f"{size >> 10} KiB" if size >> 10 else f"{size} B"
        row = stored(f"messages/{fabric}/{unit}", "round trip")
        for rules, time in times.items():
            assert time[iteration, 0] == pytest.approx(row[COLUMNS[rules]], rel=1e-9)
        control = 2 * scenario.mpi.control_bytes if size > scenario.mpi.mailbox_threshold else 0
        tails = 2 * BYTE * (min(size, scenario.network.mtu) + control)
        assert row["peer"] + tails == pytest.approx(row["fairlane_rules"], rel=1e-4 if fabric == "tree" else 0.03)


@pytest.mark.parametrize("fabric", ["tree", "dragonfly"])
def test_an_isolated_job_takes_what_is_stored(fabric: str) -> None:
    study = Study.load(ROOT / "examples" / "peers" / "sst" / "jobs.toml")
    isolated = {"fabric": fabric, "foreground": "allreduce", "background": "nobody", "strategy": "none"}
    for point in study.points():
        rules = point.parameters["rules"]
        if point.parameters != {**isolated, "rules": rules} or point.seed != 1:
            continue
        times = numpy.array([*times_of(study, point).values()])
        cell = "/".join(["jobs", *isolated.values(), "1"])
        mean, slow = stored(cell, "mean iteration"), stored(cell, "99% of iterations within")
        assert times.mean() == pytest.approx(mean[COLUMNS[rules]], rel=1e-9)
        assert numpy.quantile(times, 0.99) == pytest.approx(slow[COLUMNS[rules]], rel=1e-9)
        assert mean["peer"] == pytest.approx(mean["fairlane_rules"], rel=0.01)


def mean_time(times: polars.Series) -> str:
    """A mean over placements as the page has it: two decimals, one from 100 us on."""
    mean = numpy.mean(times.to_numpy())
    return f"{mean:.{1 if mean >= 100 else 2}f}"


def difference(times: polars.Series, others: polars.Series) -> str:
    """The mean of the ratios by placement, less one, with its 95% interval."""
    ratios = 100 * (times.to_numpy() / others.to_numpy() - 1)
    interval = t.ppf(0.975, len(ratios) - 1) * numpy.std(ratios, ddof=1) / len(ratios) ** 0.5
    return f"{ratios.mean():+.1f} ± {interval:.1f}%".replace("-", "−")


def test_the_table_of_jobs_follows_from_the_stored_cells() -> None:
    means = STORED.filter(quantity="mean iteration").filter(polars.col("cell").str.starts_with("jobs/"))
    cells = {cell.rpartition("/")[0] for cell in means["cell"]}
    with (TABLES / "sst-jobs.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))[1:]
    assert len(rows) == len(cells) == len(means) / 3
    for fabric, job, background, strategy, *shown in rows:
        cell = "/".join(["jobs", fabric, job, background.replace("none", "nobody"), strategy.strip("`")])
        times = means.filter(polars.col("cell").str.starts_with(f"{cell}/"))
        peer, snappr, default, changed = (times[column] for column in times.columns[3:])
        expected = [mean_time(peer), mean_time(snappr), difference(snappr, peer)]
        expected += [mean_time(default), difference(default, peer)]
        assert shown == [*expected, mean_time(changed), difference(snappr, changed)], cell
