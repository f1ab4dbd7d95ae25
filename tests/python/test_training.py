"""Training: communication volumes against hand formulas, the time of a pipeline, and bad input."""

from typing import Any

import pytest

import fairlane
from fairlane import Scenario, ScenarioError
from fairlane.model.workload.parallelism import Groups
from fairlane.model.workload.training import Training
from fairlane.results.run import Run

MODEL: dict[str, Any] = {
    "layers": 4,
    "hidden": 1024,
    "key_value": 256,
    "feed_forward": 2048,
    "sequence": 512,
    "micro_batches": 4,
}
TOKENS = 512
BOUNDARY = TOKENS * 1024 * 2
"""Bytes of the activations of a micro-batch."""
ATTENTION = 2 * 1024 * (1024 + 256)
NETWORK = 3 * 1024 * 2048
"""Parameters of a layer."""


def trained(ranks: int, **degrees: Any) -> Run:
    """One step, one GPU on each host, all messages over the network and without flags."""
    job = {
        "name": "job",
        "ranks": ranks,
        "stop": 1,
        "workload": {"name": "training", **MODEL, **degrees},
        "nccl": {"protocol": "simple", "algorithm": "ring"},
    }
    fabric = {"topology": "fat_tree", "hosts": ranks, "levels": 1, "bandwidth": "400 Gb/s"}
    scenario = Scenario.read({"duration": "10 s", "fabric": fabric, "jobs": [job]})
    return fairlane.run(scenario, isolated=False, live=False)


def sent(run: Run) -> list[int]:
    values: list[int] = run.ranks.sort("rank")["bytes_sent"].to_list()
    return values


def test_volumes_of_tensor_parallelism() -> None:
    """Four allreduces of the activations for each layer and micro-batch, each 2 (n - 1) / n of the buffer."""
    assert sent(trained(2, tensor=2)) == [4 * 4 * 4 * BOUNDARY * 2 // 2] * 2


def test_volumes_of_data_parallelism() -> None:
    """Gradients are scattered and parameters gathered once in a step: each (n - 1) / n of 2 bytes for a parameter."""
    parameters = 4 * (ATTENTION + NETWORK)
    assert sent(trained(4, data=4)) == [2 * 3 * 2 * parameters // 4] * 4


def test_volumes_of_a_pipeline() -> None:
    """Every micro-batch goes forward over each boundary, and its gradient back."""
    assert sent(trained(4, pipeline=4)) == [4 * BOUNDARY, 8 * BOUNDARY, 8 * BOUNDARY, 4 * BOUNDARY]


def test_volumes_of_context_parallelism() -> None:
    """Keys and values of the other parts come once forward, with their gradients twice as many bytes backward."""
    parameters = 4 * (ATTENTION + NETWORK)
    of_part = 2 * (TOKENS // 2) * 256 * 2
    expected = 3 * 4 * 4 * of_part + 2 * 2 * parameters // 2
    assert sent(trained(2, context=2)) == [expected] * 2


def test_volumes_of_experts() -> None:
    """Dispatch and combine, forward and backward: half of all tokens' two copies goes to the other GPU, or more."""
    shared = 4 * 2 * 2 * ATTENTION // 2
    copies = BOUNDARY * 2
    balanced = sent(trained(2, experts=2, expert=2, data=2))
    assert balanced == [shared + 4 * 4 * 4 * copies // 2] * 2
    uneven = trained(2, experts=2, expert=2, data=2, expert_imbalance=1.5)
    # The other sends it 3/4 of its copies, and it returns them; it sends a quarter and gets them back.
    assert sum(sent(uneven)) == 2 * shared + 4 * 4 * 2 * copies * 2 * (3 + 1) // 4
    assert sent(uneven) == sent(trained(2, experts=2, expert=2, data=2, expert_imbalance=1.5))


def test_a_pipeline_of_p_stages_takes_m_plus_p_minus_one_micro_batches() -> None:
    """1F1B, where messages take next to no time: the bubble is p - 1 micro-batches (Narayanan et al., SC '21)."""
    training = Training(**MODEL, flops=1e12)
    layer = training.attention_time(TOKENS, 256) + training.network_time(TOKENS)
    run = trained(4, pipeline=4, flops=1e12)
    assert run.ranks["last_mark_ps"].max() == pytest.approx((4 + 4 - 1) * 3 * layer, rel=0.01)


def test_groups_of_ranks_divide_them() -> None:
    training = Training(tensor=2, context=2, pipeline=2, data=4, experts=2, expert=2)
    groups = Groups(training.degrees(32))
    assert [groups.rank(groups.coordinates(rank)) for rank in range(32)] == list(range(32))
    assert groups.members(5, ["tensor"]) == [4, 5]
    assert groups.members(5, ["context"]) == [5, 7]
    assert groups.members(5, ["data"]) == [1, 5, 9, 13]
    assert groups.members(5, ["pipeline"]) == [5, 21]


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "jobs[0].ranks": ({"tensor": 2, "pipeline": 2}, "a multiple of tensor x context x pipeline = 4"),
    "jobs[0].workload.pipeline": ({"pipeline": 3}, "a divisor of layers / fold = 4"),
    "jobs[0].workload.tensor": ({"tensor": 3}, "a divisor of hidden = 1024"),
    "jobs[0].workload.context": ({"context": 3}, "a divisor of sequence = 512"),
    "jobs[0].workload.fold": ({"fold": 3}, "a divisor of layers = 4"),
    "jobs[0].workload.expert": ({"experts": 4, "expert": 3}, "a divisor of experts = 4"),
    "jobs[0].workload.expert_imbalance": ({"expert_imbalance": 2}, "at most expert = 1"),
    "jobs[0].workload.order": ({"order": ["data", "tensor"]}, "each of tensor, context, data and pipeline once"),
    "jobs[0].workload.micro_batch": ({"micro_batch": 0}, "at least 1"),
}


@pytest.mark.parametrize("key", REFUSED)
def test_bad_input_is_named(key: str) -> None:
    degrees, allowed = REFUSED[key]
    job = {"ranks": 6, "workload": {"name": "training", **MODEL, **degrees}}
    with pytest.raises(ScenarioError) as error:
        Scenario.read({"duration": "1 ms", "fabric": {"topology": "fat_tree", "hosts": 8, "levels": 1}, "jobs": [job]})
    assert key in str(error.value)
    assert allowed in str(error.value)


def test_degrees_have_to_multiply_to_the_ranks() -> None:
    job = {"ranks": 8, "workload": {"name": "training", **MODEL, "tensor": 2, "data": 2}}
    with pytest.raises(ScenarioError, match="tensor x context x data x pipeline = 4"):
        Scenario.read({"duration": "1 ms", "fabric": {"topology": "fat_tree", "hosts": 8, "levels": 1}, "jobs": [job]})
