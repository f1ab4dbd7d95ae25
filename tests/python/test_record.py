"""The record of a job: tables of messages, waits and departures in the run's folder."""

from pathlib import Path

import polars as pl
import pytest

import fairlane
from fairlane.core.errors import ScenarioError

SCENARIO = """
duration = "400 us"

[fabric]
topology = "fat_tree"
hosts = 16
levels = 2
radix = 8

[[jobs]]
name = "halo"
ranks = 8
workload = { name = "nearest_neighbor", compute = "5 us", message_size = "40 KiB", messages_per_iteration = 2 }

[[jobs]]
name = "flood"
ranks = 8
workload = { name = "flood_pairs", compute = 0, message_size = "64 KiB" }

[observe]
input_queueing = true
"""


def _run(folder: Path, name: str, more: str = "") -> fairlane.Run:
    file = folder / f"{name}.toml"
    file.write_text(SCENARIO + more)
    return fairlane.run(fairlane.Scenario.load(file), out=folder / name)


def test_the_tables_of_a_record_fit_those_of_the_run(tmp_path: Path) -> None:
    plain = _run(tmp_path, "plain")
    run = fairlane.load(_run(tmp_path, "whole", 'record = { job = "halo" }').folder or "")
    assert isinstance(run, fairlane.Run)
    assert run.meta.digest == plain.meta.digest, "a record changes nothing"
    assert run.jobs.equals(plain.jobs)
    assert run.messages is not None
    assert run.waits is not None
    assert run.departures is not None
    assert plain.messages is None
    assert plain.departures is None

    late = pl.col("partner_at_ps").clip("since_ps", "end_ps") - pl.col("since_ps")
    waited = run.waits.group_by("rank").agg(late=late.sum(), all=(pl.col("end_ps") - pl.col("since_ps")).sum())
    ranks = run.ranks.filter(pl.col("name") == "halo").join(waited, on="rank")
    # Ranks that are blocked as the simulation ends have waits that are not over.
    assert ranks.height == 8
    assert (ranks["late"] == ranks["late_partner_ps"]).all()
    assert (ranks["all"] == ranks["late_partner_ps"] + ranks["network_ps"]).all()

    known = run.waits.join(run.messages, on="message", how="left")
    assert known["sent_at_ps"].null_count() == 0
    assert known.filter("receiver").select((pl.col("received_at_ps") == pl.col("end_ps")).all()).item()
    assert run.departures["queueing_ps"].sum() == run.ports["queueing_ps"].sum()
    at_switches = run.ports.filter(pl.col("from_vertex").str.starts_with("switch"))["queueing_ps"].sum()
    assert run.ports["input_queueing_ps"].sum() == at_switches > 0


def test_a_stretch_is_cut_from_the_whole(tmp_path: Path) -> None:
    whole = _run(tmp_path, "whole", 'record = { job = "halo" }')
    part = _run(tmp_path, "part", 'record = { job = "halo", start = "100 us", stop = "150 us" }')
    assert whole.departures is not None
    assert part.departures is not None
    within = pl.col("time_ps").is_between(100_000_000, 150_000_000, closed="left")
    assert part.departures.equals(whole.departures.filter(within))
    assert 0 < part.departures.height < whole.departures.height


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ('record = { job = "hallo" }', "observe.record.job"),
        ('record = { job = "halo", start = "2 us", stop = "1 us" }', "observe.record.stop"),
        ("counters = false", "observe.input_queueing"),
    ],
)
def test_a_wrong_record_is_refused(tmp_path: Path, more: str, words: str) -> None:
    with pytest.raises(ScenarioError, match=words):
        _run(tmp_path, "wrong", more)
    assert not (tmp_path / "wrong").exists()
