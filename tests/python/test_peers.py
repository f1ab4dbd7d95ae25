"""Times of the same messages and jobs in other simulators: what is stored is what is simulated, and why they differ."""

import csv
from pathlib import Path

import numpy
import polars
import pytest
from scipy.stats import t

from fairlane import Scenario, Simulation
from fairlane.model.fabric.graph import columns
from fairlane.model.workload.point_to_point import PingPong
from fairlane.study.setting import Point
from fairlane.study.study import Study

ROOT = Path(__file__).parent.parent.parent
TABLES = ROOT / "docs" / "reproduction" / "peers"
STORED = polars.read_csv(TABLES / "sst.csv", infer_schema_length=None)
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
        if point.parameters != {**isolated, "rules": rules} or point.seed != 1 or rules not in COLUMNS:
            continue
        times = numpy.array([*times_of(study, point).values()])
        cell = "/".join(["jobs", *isolated.values(), "1"])
        mean, slow = stored(cell, "mean iteration"), stored(cell, "99% of iterations within")
        assert times.mean() == pytest.approx(mean[COLUMNS[rules]], rel=1e-9)
        assert numpy.quantile(times, 0.99) == pytest.approx(slow[COLUMNS[rules]], rel=1e-9)
        assert mean["peer"] == pytest.approx(mean["fairlane_rules"], rel=0.01)


def mean_time(times: polars.Series) -> str:
    """Format a mean over placements: two decimals, one from 100 us on."""
    mean = numpy.mean(times.to_numpy())
    return f"{mean:.{1 if mean >= 100 else 2}f}"


def difference(times: polars.Series, others: polars.Series) -> str:
    """The mean of the ratios by placement, less one, with its 95% interval."""
    ratios = 100 * (times.to_numpy() / others.to_numpy() - 1)
    interval = t.ppf(0.975, len(ratios) - 1) * numpy.std(ratios, ddof=1) / len(ratios) ** 0.5
    return f"{ratios.mean():+.1f} ± {interval:.1f}%".replace("-", "−")


def shown(file: str) -> list[list[str]]:
    """The rows of a table of the page."""
    with (TABLES / file).open(encoding="utf-8", newline="") as lines:
        return list(csv.reader(lines))[1:]


def placements(*cell: str) -> polars.DataFrame:
    """The mean times of a cell of jobs, a row for each placement."""
    prefix = "/".join(["jobs", *cell, ""])
    return STORED.filter(polars.col("cell").str.starts_with(prefix), quantity="mean iteration")


def test_the_table_of_jobs_follows_from_the_stored_cells() -> None:
    rows = shown("sst-jobs.csv")
    assert len(rows) == len(placements()) / 3
    for fabric, job, background, strategy, *cells in rows:
        times = placements(fabric, job, background.replace("none", "nobody"), strategy.strip("`"))
        peer, snappr, default, changed = (times[column] for column in times.columns[3:7])
        expected = [mean_time(peer), mean_time(snappr), difference(snappr, peer)]
        expected += [mean_time(default), difference(default, peer)]
        assert cells == [*expected, mean_time(changed), difference(snappr, changed)], times["cell"]


def test_one_group_of_rules_takes_what_is_stored() -> None:
    """Cells of an isolated allreduce on the dragonfly, and of all rules and none as in the table of jobs."""
    study = Study.load(ROOT / "examples" / "peers" / "sst" / "jobs.toml")
    groups = ["default", "latencies", "protocols", "collectives", "memory", "injection", "routing"]
    for job, background, peer, *cells, every in shown("sst-rules.csv"):
        times = placements("dragonfly", job, background.replace("none", "nobody"), "none")
        columns = (times.columns[index] for index in (3, 5, 4))
        assert [peer, cells[0], every] == [mean_time(times[name]) for name in columns]
        if (job, background) != ("allreduce", "none"):
            continue
        for rules, cell in zip(groups, cells, strict=True):
            where = {
                "fabric": "dragonfly",
                "foreground": job,
                "background": "nobody",
                "strategy": "none",
                "rules": rules,
            }
            points = [point for point in study.points() if point.parameters == where]
            means = [numpy.mean([*times_of(study, point).values()]) for point in points]
            assert len(means) == 3
            assert mean_time(polars.Series(means)) == cell


def test_with_the_same_messages_an_allreduce_on_1024_hosts_takes_as_long_in_both() -> None:
    rows = shown("sst-same-messages.csv")
    assert len(rows) == STORED["peer_same_messages"].count() / 6
    for fabric, strategy, *cells in rows:
        times = placements(fabric, "allreduce", "halo3d", strategy.strip("`"))
        snappr, changed, same = (times[column] for column in ("fairlane_rules", "peer_changed", "peer_same_messages"))
        expected = [mean_time(changed), mean_time(same), mean_time(snappr)]
        assert cells == [*expected, difference(snappr, changed), difference(snappr, same)], times["cell"]
        assert numpy.abs(snappr.to_numpy() / same.to_numpy() - 1).max() < 0.07


def test_an_allreduce_of_8_bytes_leaves_out_most_of_its_messages() -> None:
    """128 ranks meet 7 partners on the way to the result and 7 on the way back: 14 messages each, if all are sent.

    8 bytes fill the first 8 of 128 blocks. In four rounds the half with the bytes goes to one of two ranks, so 64, 32,
    16 and 8 messages are not empty; in the last three rounds each of 8 ranks sends one.
    """
    sent = {}
    for size in ("8 B", "512 B"):
        scenario = {
            "model": "snappr",
            "fabric": {"topology": "fat_tree", "hosts": 128, "levels": 3, "radix": 16},
            "jobs": [{"name": "job", "ranks": 128, "workload": {"name": "allreduce", "message_size": size}, "stop": 3}],
            "duration": "1 ms",
        }
        simulation = Simulation(Scenario.model_validate(scenario))
        simulation.run_for("1 ms")
        sent[size] = columns(simulation.engine.table("ranks"))["messages_sent"].sum() / 3
    assert sent == {"8 B": 2 * (64 + 32 + 16 + 8 + 3 * 8), "512 B": 128 * 14}
