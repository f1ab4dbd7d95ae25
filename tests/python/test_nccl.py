"""NCCL's collectives against closed forms, the published bandwidth of a known kind of system, and bad input."""

from pathlib import Path
from typing import Any

import pytest

import fairlane
from fairlane import Scenario, ScenarioError
from fairlane.model.scenario.nccl import Nccl

BANDWIDTH = 50e9
"""Of an adapter, bytes per second."""
SCALE_UP, SCALE_UP_LATENCY = 400e9, 1e-6
LINK, SWITCH = 0.1e-6, 0.1e-6
HEADER, MTU = 26, 4096
MIB = 1 << 20
TRACES = Path(__file__).parents[1] / "data" / "traces"


def scenario(servers: int, gpus: int, size: int, *, operation: str = "allreduce", **nccl: Any) -> Scenario:
    """One size of a collective on servers with an adapter for each GPU, each at a switch of its rail."""
    rails = {"rails": {"count": gpus}} if gpus > 1 else {}
    fabric = {
        "topology": "fat_tree",
        "hosts": servers,
        "levels": 1,
        "bandwidth": "400 Gb/s",
        "latency": "100 ns",
        **rails,
    }
    sizes = {"from_size": f"{size} B", "to_size": f"{size} B", "repetitions": 2}
    job = {
        "name": "job",
        "ranks": servers * gpus,
        "ranks_per_host": gpus,
        "placement": "linear",
        "workload": {"name": "nccl_tests", "operation": operation, **sizes},
        "nccl": {
            "protocol": "simple",
            "software_latency": 0,
            "scale_up_bandwidth": "400 GB/s",
            "scale_up_latency": "1 us",
            **nccl,
        },
    }
    mpi = {"send_overhead": 0, "receive_overhead": 0}
    network = {"switch_latency": "100 ns"}
    return Scenario.read({"duration": "10 s", "fabric": fabric, "network": network, "mpi": mpi, "jobs": [job]})


def measured(*given: Any, **options: Any) -> dict[str, Any]:
    run = fairlane.run(scenario(*given, **options), isolated=False, live=False)
    assert run.collectives is not None
    (row,) = run.collectives.to_dicts()
    return dict(row)


def wire(size: float) -> float:
    """Time of a message on an adapter's link, s."""
    return size * (MTU + HEADER) / MTU / BANDWIDTH


HOP = 2 * LINK + SWITCH
"""Latency from an adapter to another over a switch that sends a packet on while it comes in, s."""


@pytest.mark.parametrize("servers", [2, 4, 8])
@pytest.mark.parametrize("size", [64 << 10, 1 << 20])
def test_a_ring_takes_two_times_n_minus_one_steps(servers: int, size: int) -> None:
    chunk = size / servers
    row = measured(servers, 1, size, algorithm="ring", channels=1)
    # From 64 KiB on a chunk has two slices, of which one is on the link while the other comes and is passed on.
    step = max(HOP + wire(chunk / 2), wire(chunk)) if chunk >= 65536 else HOP + wire(chunk)
    assert row["time_s"] == pytest.approx(2 * (servers - 1) * step, rel=0.03)
    assert row["algbw_gb_s"] == pytest.approx(size / row["time_s"] / 1e9)
    assert row["busbw_gb_s"] == pytest.approx(row["algbw_gb_s"] * 2 * (servers - 1) / servers)


def test_within_a_server_a_ring_uses_the_scale_up_bandwidth_of_each_gpu() -> None:
    gpus, size = 8, 256 << 10
    row = measured(1, gpus, size, algorithm="ring")
    assert row["time_s"] == pytest.approx(14 * (SCALE_UP_LATENCY + size / gpus / SCALE_UP), rel=0.01)


@pytest.mark.parametrize("servers", [2, 8, 32])
def test_a_short_tree_takes_two_times_log2_n_hops(servers: int) -> None:
    size, depth = 2048, servers.bit_length() - 1
    row = measured(servers, 1, size, algorithm="tree")
    hop = HOP + wire(size / 2)
    # Each tree has half of the buffer. A server with two children sends to one after the other, and is in both trees.
    assert 2 * depth * hop * 0.999 <= row["time_s"] <= 2 * depth * (hop + 3 * wire(size / 2))


def test_levels_add_up() -> None:
    servers, gpus, size = 4, 4, 512 << 10
    within = 2 * (gpus - 1) * (SCALE_UP_LATENCY + size / gpus / SCALE_UP)
    part = size / gpus / servers
    between = 2 * (servers - 1) * (HOP + wire(part))
    row = measured(servers, gpus, size, algorithm="hierarchical", channels=1)
    assert row["time_s"] == pytest.approx(within + between, rel=0.03)


@pytest.mark.parametrize("gpus", [2, 8])
@pytest.mark.parametrize("size", [1 << 20, 512 * MIB])
def test_nvls_takes_the_buffer_and_one_part_of_it_in_and_out_of_each_gpu(gpus: int, size: int) -> None:
    """S (1 + 1/n) at the scale-up bandwidth, and a latency: busbw exceeds the link by 2 (n - 1) / (n + 1)."""
    row = measured(1, gpus, size, algorithm="nvls", protocol="auto")
    time = size * (1 + 1 / gpus) / SCALE_UP
    assert row["time_s"] == pytest.approx(SCALE_UP_LATENCY + time, rel=0.01)
    if size > MIB:
        assert row["busbw_gb_s"] == pytest.approx(SCALE_UP / 1e9 * 2 * (gpus - 1) / (gpus + 1), rel=0.01)
    call = measured(1, gpus, size, algorithm="nvls", software_latency=1)["time_s"] - row["time_s"]
    assert call == pytest.approx(25e-6, abs=1e-6)


def test_algorithms_that_apply_to_some_collectives_only_are_remarked_on() -> None:
    """Between servers nvls is as auto; hierarchical needs as many ranks on each server, and is a ring without."""
    assert measured(2, 2, MIB, algorithm="nvls") == measured(2, 2, MIB, algorithm="auto")
    (note,) = (note for note in scenario(2, 2, MIB, algorithm="nvls").resolve().notes if "nvls" in note)
    assert note.startswith("job 'job' has 2 hosts: allreduces between hosts use a ring or tree")
    assert not [note for note in scenario(1, 2, MIB, algorithm="nvls").resolve().notes if "nvls" in note]
    assert Nccl(algorithm="hierarchical").remark("job", [0, 0, 1, 1]) is None
    remark = Nccl(algorithm="hierarchical").remark("job", [0, 0, 1])
    assert (
        remark == "job 'job' has from 1 to 2 ranks on its hosts: collectives of all ranks use rings, not nccl.algorithm"
    )


def test_a_broadcast_passes_on_chunks() -> None:
    ranks, size = 4, 8 * MIB
    row = measured(ranks, 1, size, operation="bcast", channels=1)
    # The last rank is behind by a chunk of 512 KiB for each rank between, and the whole buffer goes over each link.
    assert wire(size) * 0.99 <= row["time_s"] <= wire(size) + (ranks - 1) * (HOP + 2 * wire(MIB // 2))
    assert row["busbw_gb_s"] == row["algbw_gb_s"]


@pytest.mark.parametrize("operation", ["allgather", "reduce_scatter"])
def test_bandwidth_of_blocks(operation: str) -> None:
    """Eight rings leave each server once, over different adapters: each carries 15/16 of an eighth of the buffer."""
    size = 64 * MIB
    row = measured(2, 8, size, operation=operation)
    assert row["time_s"] == pytest.approx(wire(size / 8 * 15 / 16), rel=0.03)
    assert row["busbw_gb_s"] == pytest.approx(row["algbw_gb_s"] * 15 / 16)


def test_the_published_bandwidth_of_eight_adapters_of_400_gb_s() -> None:
    """Rings on servers of 8 GPUs, with NCCL's latencies: 45 to 47 GB/s for each adapter at large sizes."""
    row = measured(2, 8, 512 * MIB, algorithm="auto", protocol="auto", software_latency=1)
    assert 45 < row["busbw_gb_s"] / 8 < 49.7


def test_flags_take_bandwidth() -> None:
    """Of LL half, in chunks of 32 KiB of data, each with a latency; of LL128 a sixteenth, here in one chunk."""
    block = 128 << 10
    of_ll, of_ll128 = (
        measured(2, 1, 2 * block, operation="allgather", channels=1, protocol=protocol)["time_s"]
        for protocol in ("ll", "ll128")
    )
    assert of_ll == pytest.approx(4 * (HOP + wire(65536)), rel=0.02)
    assert of_ll128 == pytest.approx(HOP + wire(block * 128 / 120), rel=0.02)


def test_pxn_sends_between_servers_in_the_rail_of_the_receiver() -> None:
    """Then every adapter carries the blocks of its own GPU for all others of the other server, and those alone."""
    size = 64 * MIB
    row = measured(2, 4, size, operation="alltoall", pxn=True)
    between = wire(size / 2)
    within = size / 8 * 3 / SCALE_UP
    assert between < row["time_s"] < between + 3 * within
    assert row["busbw_gb_s"] == pytest.approx(row["algbw_gb_s"] * 7 / 8)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "jobs[0].nccl.protocol": ({"nccl": {"protocol": "ll182"}}, r'did you mean "ll128"'),
    "jobs[0].nccl.protocol = ll": ({"nccl": {"protocol": "ll", "algorithm": "nvls"}}, "auto or simple"),
    "jobs[0].nccl.channels": ({"nccl": {"channels": 65}}, "at most 64"),
    "jobs[0].nccl.chanels": ({"nccl": {"chanels": 2}}, r'did you mean "channels"'),
    "jobs[0].workload.to_size": ({"workload": {"name": "nccl_tests", "to_size": "1 KiB"}}, "at least from_size"),
    "jobs[0].workload.operation": ({"workload": {"name": "nccl_tests", "operation": "all_reduce"}}, "allreduce"),
    "jobs[0].stop = 1": ({"stop": 1}, "nccl_tests has no number of iterations to stop after; allowed: a time"),
    "jobs[0].ranks": (
        {"ranks": 6, "workload": {"name": "nccl_tests", "operation": "allgather"}},
        "a divisor of from_size = 1 MiB",
    ),
}


@pytest.mark.parametrize("key", REFUSED)
def test_bad_input_is_named(key: str) -> None:
    job, words = REFUSED[key]
    tables = {"topology": "fat_tree", "hosts": 8, "levels": 1}
    with pytest.raises(ScenarioError) as error:
        Scenario.read(
            {
                "duration": "1 ms",
                "fabric": tables,
                "jobs": [{"ranks": 8, "workload": {"name": "nccl_tests"}, **job}],
            }
        )
    assert key in str(error.value).replace('"', "")
    assert words.replace("\\", "") in str(error.value)


def test_collectives_of_traces_are_carried_out_alike() -> None:
    """A Chakra trace of allreduces sends what rings send, and with LL twice as much."""
    trace = {"path": str(TRACES / "chakra_allreduce-8.tar.zst"), "repeat": False}
    sent = {}
    for protocol in ("simple", "ll"):
        job = {"trace": trace, "nccl": {"protocol": protocol, "algorithm": "ring", "channels": 1}}
        fabric = {"topology": "fat_tree", "hosts": 8, "levels": 1}
        run = fairlane.run(
            Scenario.read({"duration": "10 s", "fabric": fabric, "jobs": [job]}), isolated=False, live=False
        )
        sent[protocol] = run.ranks["bytes_sent"].to_numpy()
    assert (sent["simple"] > 0).all()
    assert sent["ll"] == pytest.approx(2 * sent["simple"], rel=0.001)
