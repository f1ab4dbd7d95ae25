"""Workload files of SimAI: groups, the order of a pass, what is refused; graphs in archives."""

import io
import json
import struct
import tarfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from fairlane import Scenario, ScenarioError, Simulation
from fairlane.cli.main import execute
from fairlane.model.pattern.traffic import observe, program_of
from fairlane.model.workload.trace import read_trace
from packing import zstd

NS = 1000
POLICY = "HYBRID_TRANSFORMER_FWD_IN_BCKWD"
NONE = ("NONE", 0)


def workload(
    folder: Path,
    *layers: tuple[tuple[int, str, int], ...],
    gpus: int = 8,
    tp: int = 2,
    ep: int = 1,
    update: int = 0,
    **more: int,
) -> Path:
    """A file with a time, a collective and its bytes for each of the three parts of each layer."""
    keys = {"model_parallel_NPU_group": tp, "ep": ep, "pp": 1, "vpp": 1, "ga": 1, "all_gpus": gpus, **more}
    lines = [f"{POLICY} " + " ".join(f"{key}: {value}" for key, value in keys.items()), str(len(layers))]
    for number, parts in enumerate(layers):
        words = [f"layer{number}", "-1", *(str(word) for part in parts for word in part), str(update)]
        lines.append("\t".join(words))
    path = folder / "workload.txt"
    path.write_text("\n".join(lines) + "\n")
    return path


def simulated(path: Path, **options: object) -> Simulation:
    """One pass, a host for each GPU."""
    fabric = {"topology": "fat_tree", "hosts": 8, "levels": 1, "radix": 8}
    jobs = [{"trace": {"path": path, "repeat": False, **options}}]
    simulation = Simulation(Scenario(name="replay", fabric=fabric, jobs=jobs))
    assert simulation.run_for("1 s")
    return simulation


def ends(simulation: Simulation) -> list[int]:
    """When each rank has finished, ps."""
    return simulation.table("ranks")["finished_at_ps"].to_list()


def none(time: int) -> tuple[int, str, int]:
    return time, "NONE", 0


def finish(simulation: Simulation) -> int:
    return max(ends(simulation))


def test_a_pass_goes_forward_and_back_and_waits_for_all_but_weight_gradients(tmp_path: Path) -> None:
    """Times add up: 1 + 2 us forward, 30 + 20 + 300 + 200 us backward; collectives of weights overlap what follows."""
    layers = [((1000, *NONE), (20_000, *NONE), (200_000, *NONE)), ((2000, *NONE), (30_000, *NONE), (300_000, *NONE))]
    total = 553_000 * NS
    assert ends(simulated(workload(tmp_path, *layers))) == [total] * 8
    size = 1 << 19
    alone = finish(simulated(workload(tmp_path, (none(0), none(0), (0, "ALLREDUCE", size)))))
    assert 0 < alone < 200_000 * NS
    # That of the last layer, which comes first on the way back, is hidden by the 220 us of the first layer.
    hidden = [layers[0], (*layers[1][:2], (300_000, "ALLREDUCE", size))]
    overheads = 20_000 * NS
    assert total <= finish(simulated(workload(tmp_path, *hidden))) < total + overheads
    open_end = [(*layers[0][:2], (200_000, "ALLREDUCE", size)), layers[1]]
    assert finish(simulated(workload(tmp_path, *open_end))) == pytest.approx(total + alone, abs=overheads)
    # Others are waited for, and after each its update time passes: 5 us.
    forward = [((1000, "ALLREDUCE_DP_EP", size), *layers[0][1:]), layers[1]]
    waited = finish(simulated(workload(tmp_path, *forward, update=5000)))
    assert waited == pytest.approx(total + alone + 5000 * NS, abs=overheads)


@pytest.mark.parametrize(
    ("word", "partners"),
    [
        # 8 GPUs: 2 in a tensor group, 2 in an expert group. Rank 5 is the second GPU of the third tensor group.
        ("ALLTOALL", {4}),
        ("ALLTOALL_EP", {7}),
        ("ALLTOALL_DP_EP", {1}),
    ],
)
def test_groups_are_those_of_simai(word: str, partners: set[int], tmp_path: Path) -> None:
    path = workload(tmp_path, ((0, word, 8000), none(0), none(0)), ep=2)
    assert partners_of(path, 5) == partners


def test_weight_gradients_go_to_the_data_group(tmp_path: Path) -> None:
    path = workload(tmp_path, (none(0), none(0), (0, "ALLTOALL", 8000)), ep=2)
    assert partners_of(path, 5) == {1, 3, 7}


def partners_of(path: Path, rank: int) -> set[int]:
    """The ranks that it sends to."""
    traffic = observe(program_of(read_trace(path), 0))
    return set(np.flatnonzero(traffic.total[rank]).tolist())


def test_sizes_are_of_whole_buffers(tmp_path: Path) -> None:
    """Of 4 GPUs each hands in a quarter of an allgather, and keeps a quarter of a reduce-scatter and an all-to-all."""
    for word, share in [("ALLREDUCE", 1), ("ALLGATHER", 4), ("REDUCESCATTER", 1), ("ALLTOALL", 1)]:
        path = workload(tmp_path, ((0, word, 4000), none(0), none(0)), gpus=8, tp=4)
        described = read_trace(path).describe()
        (totals,) = described["collectives"].values()
        assert (totals["calls"], totals["bytes"]) == (8, 8 * 4000 // share)
        assert described["communicators"] == {"tp(4)": 2}
        assert described["calls"] == {word: 8, "compute": 24}


def test_a_mixture_of_experts_runs_by_every_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Layers as AICB writes them: attention with tensor parallelism, experts, and gradients of experts among copies."""
    layers = [
        (none(1), none(1), (1, "ALLGATHER", 60_000)),
        (none(1), none(1), (1, "REDUCESCATTER_DP_EP", 90_000)),
        ((17_000, "ALLGATHER", 120_000), (9000, "REDUCESCATTER", 0), none(9000)),
        ((1, "ALLTOALL_EP", 250_000), (1, "ALLTOALL_EP", 250_000), none(1)),
        ((1, "REDUCESCATTER", 120_000), (1, "ALLGATHER", 120_000), none(1)),
    ]
    path = workload(tmp_path, *layers, gpus=16, tp=2, ep=4, update=100)
    assert execute(["trace", "describe", "--json", str(path)]) == 0
    described = json.loads(capsys.readouterr().out)
    assert described["communicators"] == {"tp(2)": 8, "dp(8)": 2, "ep(4)": 4, "dp_ep(2)": 8}
    expected = Counter(word for parts in layers for _, word, size in parts if size)
    assert {word: count for word, count in described["calls"].items() if word in expected} == {
        word: 16 * count for word, count in expected.items()
    }
    assert execute(["trace", "pattern", "--json", str(path)]) == 0
    assert json.loads(capsys.readouterr().out)["ranks"] == 16
    scenario = tmp_path / "job.toml"
    scenario.write_text(
        'duration = "2 ms"\nfabric = { topology = "fat_tree", hosts = 16 }\njobs = [{ trace.path = "workload.txt" }]\n'
    )
    assert execute(["check", str(scenario)]) == 0
    assert execute(["run", str(scenario), "--no-isolated", "--out", str(tmp_path / "run")]) == 0


def test_what_cannot_be_simulated_is_listed_and_can_be_excluded(tmp_path: Path) -> None:
    layers = [((1, "ALLREDUCEALLTOALL", 64), none(1), none(1)), (none(5), none(5), none(5))]
    path = workload(tmp_path, *layers, pp=2, checkpoint_initiates=0)
    found = read_trace(path).describe()["unsupported"]
    assert [(entry["call"], entry["count"], entry["ranks"]) for entry in found] == [
        ("ALLREDUCEALLTOALL", 8, 8),
        ("pp", 1, 1),
    ]
    with pytest.raises(ScenarioError, match="ALLREDUCEALLTOALL"):
        simulated(path)
    assert finish(simulated(path, exclude=["ALLREDUCEALLTOALL", "pp"])) == 18 * NS


@pytest.mark.parametrize(("pp", "vpp", "ga"), [(2, 1, 3), (4, 2, 2)])
def test_a_pipeline_adds_its_bubble_and_exchanges(pp: int, vpp: int, ga: int, tmp_path: Path) -> None:
    """As SimAI adds them: computation (pp - 1) / (ga vpp), and 2 ga vpp transfers of pp_comm one after another."""
    size, work = 1 << 20, (1_000_000 + 2_000_000 + 3_000_000) * NS
    layer = (none(1_000_000), none(2_000_000), none(3_000_000))
    path = workload(tmp_path, layer, pp=pp, vpp=vpp, ga=ga, pp_comm=size)
    simulation = simulated(path)
    transfer = size * 8 * 10  # ps at 100 Gb/s, without headers and latencies
    expected = work + work * (pp - 1) // (ga * vpp) + 2 * ga * vpp * transfer
    if vpp > 1:
        assert max(ends(simulation)) == pytest.approx(expected, rel=0.01)
    else:
        # The first stage only sends forward and receives backward, each of which goes on while the other waits.
        assert max(ends(simulation)) == pytest.approx(expected, rel=0.02)
    sent = [
        size * ga * vpp * (2 if vpp > 1 or 0 < stage < pp - 1 else 1) for stage in range(pp) for _ in range(8 // pp)
    ]
    assert simulation.table("ranks")["bytes_sent"].to_list() == sent
    # A block of GPUs is a stage.
    assert partners_of(path, 0) == ({8 // pp, 8 - 8 // pp} if vpp > 1 else {8 // pp})
    scaled = max(ends(simulated(path, compute_scale=0.5)))
    assert max(ends(simulation)) - scaled == (work + work * (pp - 1) // (ga * vpp)) // 2
    embedding = path.read_text().replace("layer0", "embedding_layer")
    path.write_text(embedding)
    assert max(ends(simulation)) - max(ends(simulated(path))) == work * (pp - 1) // (ga * vpp)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (POLICY, "MICRO", f"line 1: the policy MICRO is not simulated; allowed: {POLICY}"),
        ("ep: 1", "epp: 1", 'line 1: no key "epp"; allowed: model_parallel_NPU_group, ep'),
        ("ep: 1", "ep: x", 'line 1: ep = "x": a whole number is needed'),
        ("all_gpus: 8", "all_gpus: 7", "line 1: all_gpus = 7: no whole number of groups"),
        (
            " pp: 1",
            " pp: 3 pp_comm: 8",
            "line 1: all_gpus = 8: no whole number of groups of model_parallel_NPU_group = 2",
        ),
        ("ga: 1", "ga: 9999999 pp_comm: 8 pp: 2", "1 layers and 19999998 exchanges between stages of 8 GPUs: at most"),
        ("\n1\n", "\n2\n", "line 2: 2 layers, and 1 follow"),
        ("ALLREDUCE\t64", "ALLREDUCE\t6.4", 'line 3: "6.4" is no number of bytes'),
        ("layer0\t-1\t1", "layer0\t-1\tx", 'line 3: "x" is no time in nanoseconds'),
        ("layer0\t", "", "line 3: 11 words, and 12 are needed"),
        ("all_gpus: 8", "all_gpus: 8000000", "1 layers of 8000000 GPUs: at most 50000000 operations"),
    ],
)
def test_a_wrong_line_is_named(old: str, new: str, words: str, tmp_path: Path) -> None:
    path = workload(tmp_path, ((1, "ALLREDUCE", 64), none(1), none(1)))
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))
    with pytest.raises(ScenarioError) as caught:
        read_trace(path).describe()
    assert words in str(caught.value)


def test_the_first_line_may_be_long(tmp_path: Path) -> None:
    path = workload(tmp_path, ((1, "ALLREDUCE", 64), none(1), none(1)))
    checkpoints = "all_gpus: 8 checkpoints: 3000" + " 12" * 3000
    path.write_text(path.read_text().replace("all_gpus: 8", checkpoints))
    described = read_trace(path).describe()
    assert (described["format"], described["ranks"]) == ("SimAI", 8)


def test_a_file_without_layers_cannot_ask_for_all_memory(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="0 layers of 4000000000 GPUs: at most 50000000 operations"):
        read_trace(workload(tmp_path, gpus=4_000_000_000)).describe()


FLOWS = "2\n0 1 3 100 5000 0.000001\n1 0 3 100 7000 0.000002\n"
BINARY = struct.pack("<QIBBQQQQ", 4223, 2, 0, 0, 38, 46, 46, 54) + struct.pack("<IIII", 0, 0, 0, 0)
"""A GOAL schedule of two ranks without operations, as txt2bin packs it."""


@pytest.mark.parametrize(("name", "data", "form"), [("flow.txt", FLOWS.encode(), "ns-3"), ("a.bin", BINARY, "GOAL")])
def test_archives_may_hold_graphs_of_any_name(name: str, data: bytes, form: str, tmp_path: Path) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for member, content in ((name, data), ("notes.md", b"# not a trace\n")):
            header = tarfile.TarInfo(f"folder/{member}")
            header.size = len(content)
            tar.addfile(header, io.BytesIO(content))
    path = tmp_path / "packed.tar.zst"
    with zstd.open(path, "wb") as file:
        file.write(packed.getvalue())
    described = read_trace(path).describe()
    assert (described["format"], described["ranks"]) == (form, 2)
