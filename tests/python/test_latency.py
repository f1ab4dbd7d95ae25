"""Latency: closed forms, what counts and what does not, quantiles, and the open-loop load that it is asked for."""

import json
from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from fairlane import Scenario, ScenarioError, Simulation, _core, load
from fairlane.model.scenario.resolved import injection_of
from fairlane.model.workload import JobScript, OpenLoop
from fairlane.results.latency import QUANTILES, Latency, Look, intervals, summarize
from fairlane.sim.runner import run
from report_runs import printed

BANDWIDTH, LATENCY, SWITCH, HEADER, MTU = 100 * 10**9, 100_000, 70_000, 26, 4096
OVERHEAD, CONTROL = 200_000, 64
SWITCH_OF_FOUR = {"topology": "fat_tree", "hosts": 4, "levels": 1, "bandwidth": "100 Gb/s", "latency": "100 ns"}


def ser(size: int) -> int:
    """Time on the wire, ps, headers included."""
    return ceil(8 * (size + HEADER) * 10**12 / BANDWIDTH)


def flight(size: int) -> int:
    """A packet's way through the switch, with nothing before it: two links, the switch, and its wire time once."""
    return 2 * LATENCY + SWITCH + ser(size)


def simulation(calls: list[tuple[Any, ...]], hosts: tuple[int, ...] = (0, 1), **mpi: int) -> _core.Simulation:
    """A job of these ranks on one switch, by calls of the builder and their arguments."""
    builder = _core.ProgramBuilder(len(hosts))
    for name, *arguments in calls:
        getattr(builder, name)(*arguments)
    spec = {
        "fabric": {
            "topology": "fat_tree",
            "params": {"hosts": 4, "levels": 1, "bandwidth": BANDWIDTH, "latency": LATENCY},
            "routing": "d_mod_k",
        },
        "network": {"mtu": MTU, "header": HEADER, "switch_latency": SWITCH},
        "qos": {"arbiter": {"name": "weighted_round_robin", "params": {"weights": [1]}}},
        "mpi": {"send_overhead": OVERHEAD, "control_bytes": CONTROL, **mpi},
        "jobs": [{"name": "job", "hosts": hosts}],
    }
    return _core.Simulation(json.dumps(spec), [builder.build()])


def exact(engine: _core.Simulation) -> dict[tuple[str, str], tuple[int, int]]:
    """Count and sum by message or packet and kind."""
    rows = Latency.measured(engine).exact
    return {
        (of, kind): (count, int(total))
        for of, kind, count, total in rows.select("of", "kind", "count", "sum").iter_rows()
    }


def test_an_eager_message_takes_its_overhead_its_packets_and_one_flight() -> None:
    size = 3 * MTU + 100  # packets follow each other: the last starts when the three before it have left the host
    engine = simulation([("send", 0, 1, size), ("recv", 1, 0)])
    assert engine.run_until(10**9)
    message = OVERHEAD + 3 * ser(MTU) + flight(100)
    assert exact(engine) == {
        ("message", "eager"): (1, message),
        ("packet", "eager"): (4, 3 * flight(MTU) + flight(100)),
    }


def test_a_rendezvous_counts_from_the_send_call_and_its_control_messages_as_packets() -> None:
    late = 5_000_000
    synchronous = ("send", 0, 1, MTU, 0, 0, True)
    engine = simulation([synchronous, ("compute", 1, late), ("recv", 1, 0)])
    assert engine.run_until(10**9)
    # The receive is posted long after the request has come; then the get goes back, and then the payload comes.
    message = late + flight(CONTROL) + flight(MTU)
    assert exact(engine) == {
        ("message", "bulk"): (1, message),
        ("packet", "bulk"): (1, flight(MTU)),
        ("packet", "control"): (3, 3 * flight(CONTROL)),
    }


def test_transfers_through_memory_do_not_count() -> None:
    engine = simulation([("send", 0, 1, 100), ("recv", 1, 0), ("datagram", 0, 1, 100)], hosts=(2, 2))
    assert engine.run_until(10**9)
    assert exact(engine) == {}


@pytest.mark.parametrize("size", [100, 2 * MTU])
def test_what_has_been_delivered_counts_though_its_receiver_computes(size: int) -> None:
    engine = simulation([("send", 0, 1, size), ("compute", 1, 10**9), ("recv", 1, 0)])
    done = OVERHEAD + (ceil(size / MTU) - 1) * ser(MTU) + flight(min(size, MTU))
    engine.run_until(done - LATENCY)  # windows are shorter than a link's latency
    assert ("message", "eager") not in exact(engine)
    engine.run_until(done + LATENCY)
    assert not engine.finished
    during = exact(engine)
    assert during["message", "eager"] == (1, done)
    assert during["packet", "eager"][0] == ceil(size / MTU)
    assert exact(engine.fork()) == during
    assert engine.run_until(2 * 10**9)
    assert exact(engine) == during


def test_a_datagram_costs_no_cpu_and_needs_no_receive() -> None:
    engine = simulation([*[("datagram", 0, 1, 5 * MTU)] * 2, ("mark_progress", 0)])
    assert engine.run_until(10**9)
    # The second one's packets alternate with the first one's: it ends one packet later, at the end of all ten.
    last = 9 * ser(MTU) + flight(MTU)
    assert exact(engine)["message", "eager"] == (2, last - ser(MTU) + last)
    marks = np.frombuffer(engine.table("ranks")["first_mark"][1], "<u8")
    assert marks[0] == 0


def test_quantiles_are_at_most_the_stated_precision_above_the_true_ones() -> None:
    rng = np.random.default_rng(5)
    parts = [np.rint(rng.lognormal(12, 2, 997)).astype(np.uint64) for _ in range(3)]
    rows, buckets = [], []
    for job, values in enumerate(parts):
        shift = np.maximum(np.floor(np.log2(np.maximum(values, 1))).astype(int) - 8, 0)
        low = values >> shift.astype(np.uint64) << shift.astype(np.uint64)
        high = low + (np.uint64(1) << shift.astype(np.uint64)) - np.uint64(1)
        frame = pl.DataFrame({"low": low, "high": high}).group_by("low", "high").agg(pl.len().alias("count"))
        buckets.append(frame.with_columns(of=pl.lit("packet"), job=pl.lit(job)))
        rows.append({"of": "packet", "job": job, "count": 997, "sum": float(values.sum()), "min": int(values.min())})
        rows[-1]["max"] = int(values.max())
    found = summarize(pl.DataFrame(rows), pl.concat(buckets), ("of",)).row(0, named=True)
    every = np.sort(np.concatenate(parts))
    assert (found["count"], found["min"], found["max"]) == (every.size, every[0], every[-1])
    assert found["mean"] == pytest.approx(every.mean(), rel=1e-12)
    for name, quantile in QUANTILES.items():
        true = int(every[ceil(quantile * every.size) - 1])
        assert true <= found[name] <= true * (1 + 1 / 256)


def scenario(load: float = 0.5, **changes: Any) -> Scenario:
    """Open-loop load on all four hosts of one switch."""
    workload = {"name": "open_loop", "load": load, **changes.pop("workload", {})}
    job = {"name": "load", "ranks": 4, "workload": workload, **changes.pop("job", {})}
    tables: dict[str, Any] = {"fabric": SWITCH_OF_FOUR, "placement": "linear", "duration": "1 ms", **changes}
    return Scenario(jobs=[job], **tables)


def simulation_of(time: str, load: float = 0.5, **changes: Any) -> Simulation:
    """It after this time."""
    simulated = Simulation(scenario(load, duration=time, **changes))
    simulated.run_for(time)
    return simulated


def latencies(load: float = 0.5, **changes: Any) -> pl.DataFrame:
    """The latencies of its run."""
    latency = run(scenario(load, **changes), isolated=False).latency
    assert latency is not None
    return latency


def test_poisson_messages_wait_as_in_an_m_d_1_queue() -> None:
    load, waits = 0.7, []
    for seed in range(1, 21):
        # To one fixed receiver each, so that only a NIC's own messages wait: it is the single server.
        workload = {"pattern": "shift"}
        simulated = simulation_of("4 ms", load, seed=seed, workload=workload, network={"switch_latency": "70 ns"})
        row = simulated.latency().summary(("of",)).filter(pl.col("of") == "message")
        waits.append(row["mean"].item() - flight(MTU))
    expected = load * ser(MTU) / (2 * (1 - load))
    error = np.std(waits, ddof=1) / len(waits) ** 0.5
    assert error < 0.02 * expected
    assert np.mean(waits) == pytest.approx(expected, abs=5 * error)


@pytest.mark.long("results", "core/statistics", "sim/runner")
def test_the_interval_of_the_mean_covers_the_wait_in_an_m_d_1_queue_and_that_of_quantiles_holds_them() -> None:
    """Of 40 runs 95% are 38: fewer than 34 have a probability of 1%."""
    load, covered, runs = 0.5, 0, 40
    expected = flight(MTU) + load * ser(MTU) / (2 * (1 - load))
    for seed in range(runs):
        latency = latencies(load, seed=seed, workload={"pattern": "shift"}, network={"switch_latency": "70 ns"})
        [row] = latency.filter(pl.col("of") == "message").to_dicts()
        covered += row["mean_low_ps"] <= expected <= row["mean_high_ps"]
        for name, share in QUANTILES.items():
            assert (row[f"{name}_low_ps"] is None) == (row["count"] * (1 - share) < 10 - 1e-6), name
            if row[f"{name}_low_ps"] is not None:
                assert row[f"{name}_low_ps"] <= row[f"{name}_ps"] + row[f"{name}_ps"] // 256
                assert row[f"{name}_ps"] <= row[f"{name}_high_ps"]
    assert covered >= 34


def test_there_is_no_interval_of_what_ended_too_early_for_batches() -> None:
    latency = latencies(0.9, job={"stop": 20}, duration="10 ms")
    assert latency["count"].sum() > 0
    assert latency["p99_low_ps"].null_count() == latency.height


def test_merged_latencies_have_intervals_that_know_of_what_jobs_have_in_common() -> None:
    """Two jobs, one slow when the other is fast: each has an interval, the mean of both has none to speak of."""
    noise = np.random.default_rng(2).integers(0, 5, 24)
    batches = [{0: 100 + int(shift), 1: 200 - int(shift)} for shift in noise]
    buckets = sorted({(job, latency) for batch in batches for job, latency in batch.items()})
    looks = []
    for until in range(1, len(batches) + 1):
        counts = [sum(batch[job] == latency for batch in batches[:until]) for job, latency in buckets]
        rows = [(job, latency, count) for (job, latency), count in zip(buckets, counts, strict=True) if count]
        named = {"of": "message", "kind": "eager", "workload": "both"}
        frame = pl.DataFrame(rows, ["job", "high", "count"], orient="row")
        frame = frame.with_columns(pl.lit(text).alias(name) for name, text in named.items())
        sums = frame.group_by("of", "job", "kind", "workload").agg(
            (pl.col("high") * pl.col("count")).sum().cast(pl.Float64).alias("sum"), pl.col("count").sum()
        )
        looks.append(Look(frame, sums))
    jobs = list(intervals(looks, ("of", "job")))
    assert [job["job"] for job in jobs] == [0, 1]
    for job, mean in zip(jobs, (100 + noise.mean(), 200 - noise.mean()), strict=True):
        assert job["mean_low_ps"] < mean < job["mean_high_ps"]
        assert job["mean_high_ps"] - job["mean_low_ps"] > 0.5
    [both] = intervals(looks, ("of", "workload"))
    assert (both["mean_low_ps"], both["mean_high_ps"]) == pytest.approx((150, 150))
    assert both["p50_low_ps"] <= 100 + noise.max()
    assert both["p99_low_ps"] is both["p99_high_ps"] is None, "48 latencies are too few"


def test_merged_latencies_are_those_of_all_rows_of_a_level() -> None:
    jobs = [{"name": name, "ranks": 2, "workload": "flood_pairs"} for name in ("first", "second")]
    found = run(Scenario(fabric=SWITCH_OF_FOUR, jobs=jobs, duration="20 ms"), isolated=False)
    assert found.latency is not None
    assert found.latency_merged is not None
    latency, merged = found.latency, found.latency_merged
    assert merged["level"].unique().sort().to_list() == ["job", "kind", "workload"]
    packets = latency.filter(of="packet")
    assert packets.filter(name="first")["kind"].sort().to_list() == ["bulk", "control"]
    for level, label, rows in (
        ("job", "first", packets.filter(name="first")),
        ("workload", "flood_pairs", packets),
        ("kind", "control", packets.filter(kind="control")),
    ):
        [row] = merged.filter(of="packet", level=level, label=label).to_dicts()
        assert row["count"] == rows["count"].sum()
        assert row["mean_ps"] == pytest.approx((rows["count"] * rows["mean_ps"]).sum() / row["count"])
        assert (row["min_ps"], row["max_ps"]) == (rows["min_ps"].min(), rows["max_ps"].max())
    alone = latency.filter(of="message", name="first").drop("of", "job", "name", "kind")
    assert merged.filter(of="message", level="job", label="first").select(alone.columns).equals(alone)
    assert merged["mean_low_ps"].null_count() == 0
    for row in merged.to_dicts():
        for name, share in {"mean": 0.5, **QUANTILES}.items():
            value = row[f"{name}_ps"]
            if row["count"] * (1 - share) < 10 - 1e-6:
                assert row[f"{name}_low_ps"] is None
                continue
            assert row[f"{name}_low_ps"] <= value + value // 256, (row["label"], name)
            assert value <= row[f"{name}_high_ps"], (row["label"], name)


def test_packet_latency_is_waiting_at_ports_and_flight() -> None:
    job = {"stop": 500}
    simulated = Simulation(scenario(0.9, job=job, network={"switch_latency": "70 ns"}))
    assert simulated.run_for("10 ms"), "every rank has sent its 500 messages, and all have come"
    total = simulated.latency().summary(("of",)).filter(pl.col("of") == "packet")
    assert total["count"].item() == 4 * 500
    waited = int(simulated.table("ports")["queueing_ps"].sum())
    assert total["mean"].item() * 2000 == pytest.approx(waited + 2000 * flight(MTU), rel=1e-12)


@pytest.mark.parametrize("arrivals", ["poisson", "fixed"])
def test_the_offered_load_is_generated_whatever_becomes_of_it(arrivals: str) -> None:
    progress = []
    for buffer in ("5 KiB", "64 KiB"):
        # Three senders into one link, at 0.8 each: most of what is generated stays in the NICs.
        workload = {"pattern": "incast", "arrivals": arrivals}
        simulated = simulation_of("2 ms", 0.8, network={"buffer": buffer}, workload=workload)
        progress.append(simulated.progress()["load"])
        delivered = simulated.latency().summary(("of",))["count"].max()
        assert isinstance(delivered, int)
        assert delivered < 0.5 * sum(progress[-1])
    assert progress[0] == progress[1]
    expected = 0.8 * 2e9 / ser(MTU)
    deviation = 0.0 if arrivals == "fixed" else expected**0.5
    assert progress[0][0] == 0
    assert all(abs(count - expected) <= 5 * deviation + 1 for count in progress[0][1:])


def test_ranks_of_a_host_share_its_link_and_sizes_have_a_distribution() -> None:
    sizes = {"dist": "uniform", "loc": "1 KiB", "scale": "3 KiB"}
    workload = {"pattern": {"name": "shift", "steps": [4]}, "sizes": sizes}
    job = {"ranks": 8, "ranks_per_host": 2, "workload": {"name": "open_loop", "load": 0.6, **workload}}
    simulated = simulation_of("4 ms", job=job)
    wire = int(simulated.table("ports")["bytes"].sum()) / 2  # two links each
    # Of about 1500 messages a rank; their number and sizes deviate by 1 / sqrt(8 * 1500) in part.
    assert wire / (4 * 4e9 * BANDWIDTH / 8e12) == pytest.approx(0.6, rel=0.05)
    messages = int(simulated.latency().exact.filter(pl.col("of") == "message")["count"].sum())
    assert wire / messages == pytest.approx(2560 + HEADER, rel=0.03)


@pytest.mark.parametrize(("rails", "rate"), [(None, 4 * BANDWIDTH), ({"policy": "only", "only": 1}, 3 * BANDWIDTH)])
def test_several_adapters_add_up_unless_one_is_named(rails: dict[str, Any] | None, rate: int) -> None:
    adapters = [{}, {"bandwidth": "300 Gb/s"}]
    fabric = {**SWITCH_OF_FOUR, "rails": {"count": 2, "wiring": "planes", "adapters": adapters}}
    resolved = scenario(fabric=fabric, job={"rails": rails}).resolve()
    assert injection_of(resolved, resolved.jobs[0]).bandwidths == [rate] * 4


def test_the_same_seed_generates_the_same_load_and_another_another() -> None:
    digests = [simulation_of("200 us", seed=seed).digest() for seed in (1, 1, 2)]
    assert digests[0] == digests[1] != digests[2]


PATTERNS: dict[str, tuple[int, Any, list[list[int]]]] = {
    "shift": (4, {"name": "shift"}, [[1], [2], [3], [0]]),
    "tornado": (4, {"name": "shift", "sides": [2, 2], "steps": [1, 0]}, [[1], [0], [3], [2]]),
    "next_group": (6, {"name": "next_group", "group": 2}, [[2, 3]] * 2 + [[4, 5]] * 2 + [[0, 1]] * 2),
    "complement": (4, "complement", [[3], [2], [1], [0]]),
    "transpose": (9, "transpose", [[], [3], [6], [1], [], [7], [2], [5], []]),
    "bit_reverse": (8, "bit_reverse", [[], [4], [], [6], [1], [], [3], []]),
    "shuffle": (8, "shuffle", [[], [2], [4], [6], [1], [3], [5], []]),
    "hotspot": (4, {"name": "hotspot", "hot": [0, 3]}, [[3], [0, 3], [0, 3], [0]]),
    "incast": (3, {"name": "incast", "to": 1}, [[1], [], [1]]),
    "uniform": (3, "uniform", [[], [], []]),
}


@pytest.mark.parametrize("name", PATTERNS)
def test_patterns_name_the_targets(name: str) -> None:
    ranks, pattern, expected = PATTERNS[name]
    workload = OpenLoop.model_validate({"pattern": pattern})
    assert workload.problem_with(ranks) is None
    assert workload.targets(JobScript(ranks)) == expected
    everybody = workload.pattern.share < 1
    assert workload.senders(ranks) == [rank for rank, targets in enumerate(expected) if targets or everybody]


def test_a_permutation_has_every_rank_once_and_none_to_itself() -> None:
    targets = OpenLoop.model_validate({"pattern": "permutation"}).targets(JobScript(10, seed=3))
    assert sorted(target for (target,) in targets) == list(range(10))
    assert all(target != rank for rank, (target,) in enumerate(targets))


@pytest.mark.parametrize(
    ("workload", "words"),
    [
        ({"pattern": "transpos"}, ["pattern", "transpos", 'did you mean "transpose"?']),
        ({"pattern": "transpose"}, ["ranks", "8", "a square number of ranks"]),
        ({"pattern": {"name": "next_group", "group": 3}}, ["a multiple of 3 ranks"]),
        ({"pattern": {"name": "incast", "to": 8}}, ["more than 8 ranks"]),
        ({"load": 0}, ["load", "above 0"]),
        ({"jitter": 0.1}, ["open-loop load has no iterations", "no jitter"]),
        ({"message_size": "1 KiB", "sizes": "2 KiB"}, ["exclude each other"]),
    ],
)
def test_wrong_parameters_are_named(workload: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(ScenarioError) as raised:
        scenario(job={"ranks": 8, "workload": {"name": "open_loop", **workload}})
    assert all(word in str(raised.value) for word in words), str(raised.value)


def test_the_summary_shows_latency_by_job_and_kind_in_any_width(tmp_path: Path) -> None:
    jobs = [{"name": name, "ranks": 2, "workload": name} for name in ("flood_pairs", "all_to_all")]
    found = run(
        Scenario(fabric=SWITCH_OF_FOUR, jobs=jobs, duration="2 ms"), out=tmp_path / "run", progress=False, figures=False
    )
    for width, packets in ((200, True), (72, False)):
        text = printed(found, width)
        table = text[text.index("\nLatency\n") : text.index("victim \\")].splitlines()
        rows = {line.split()[0]: line.split() for line in table if line.strip()}
        assert ("control" in rows) is packets
        assert rows["bulk"][1] == rows["flood_pairs"][1]
        assert ("packets" in rows["job"]) is packets
        assert all(len(line) <= width for line in table)


def test_the_summary_shows_half_the_width_of_each_interval_below_its_latency() -> None:
    found = run(scenario(0.5, duration="200 us"), isolated=False)
    assert found.latency_merged is not None
    p99, unknown = pl.col("p99_ps"), pl.lit(None)
    ends = {"p99_low_ps": p99 - 1000, "p99_high_ps": p99 + 5000, "p50_low_ps": p99, "p50_high_ps": p99}
    ends |= {"mean_low_ps": unknown, "p999_high_ps": unknown}
    lines = printed(replace(found, latency_merged=found.latency_merged.with_columns(**ends)), 120).splitlines()
    [at] = [at for at, line in enumerate(lines) if line.startswith("load ") and "open_loop" not in line]
    assert [half.strip() for half in lines[at + 1].split("±")] == ["", "<0.4%", "3.00 ns", "3.00 ns"]


def test_a_run_keeps_latencies_unless_counters_are_off(tmp_path: Path) -> None:
    found = run(scenario(duration="100 us"), out=tmp_path / "kept")
    assert found.latency is not None
    assert found.latency_histogram is not None
    assert found.latency["name"].unique().to_list() == ["load"]
    counts = found.latency_histogram.group_by("of", "job", "kind").agg(pl.col("count").sum())
    joined = found.latency.join(counts, on=["of", "job", "kind"], suffix="_buckets")
    assert joined["count"].to_list() == joined["count_buckets"].to_list()
    times = found.latency.select("min_ps", "p50_ps", "p90_ps", "p99_ps", "p999_ps", "max_ps").to_numpy()
    assert (np.diff(times, axis=1) >= 0).all()
    assert load(tmp_path / "kept").tables()["latency"].equals(found.latency)
    silent = scenario(duration="1 us", workload={"load": 1e-6})
    nothing = run(silent, out=tmp_path / "nothing")
    assert nothing.latency is not None
    assert nothing.latency.schema == found.latency.schema
    assert load(tmp_path / "nothing").tables()["latency_histogram"].height == 0
    off = run(
        scenario(duration="100 us", observe={"counters": False}), out=tmp_path / "off", progress=False, figures=False
    )
    assert off.latency is None
    assert off.latency_histogram is None
