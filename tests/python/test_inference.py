"""Inference: latencies against what they are made of, transferred bytes, arrivals, and bad input."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fairlane
from fairlane import Scenario, ScenarioError
from fairlane.model.workload import JobScript
from fairlane.model.workload.builder import Rank
from fairlane.model.workload.inference import Inference
from fairlane.results.accelerators import latencies
from fairlane.results.run import Run

MODEL: dict[str, Any] = {
    "layers": 4,
    "hidden": 2048,
    "key_value": 256,
    "feed_forward": 4096,
    "tensor": 2,
    "prefill_gpus": 2,
    "decode_gpus": 2,
    "prompt": 1024,
    "output": 16,
    "transfers": 2,
    "requests": 12,
    "rate": 100.0,
}


def scenario(ranks: int = 5, **parameters: Any) -> Scenario:
    workload = {"name": "inference", **MODEL, **parameters}
    nccl = {"protocol": "simple", "algorithm": "ring"}
    job = {"name": "job", "ranks": ranks, "workload": workload, "nccl": nccl}
    fabric = {"topology": "fat_tree", "hosts": ranks, "levels": 1, "bandwidth": "400 Gb/s"}
    return Scenario.read({"duration": "200 ms", "fabric": fabric, "jobs": [job]})


def served(ranks: int = 5, **parameters: Any) -> Run:
    return fairlane.run(scenario(ranks, **parameters), isolated=False, live=False)


def test_times_are_those_of_prefill_and_of_steps() -> None:
    run = served(first_token_objective="10 ms", token_objective="1 us")
    assert run.serving is not None
    first, between = run.serving.to_dicts()
    inference = Inference(**MODEL)
    prefill = 4 * (inference.attention_time(1024, 512) + inference.network_time(1024)) * 1e-12
    allreduces = 8 * 1024 * 2048 * 2 / 50e9
    assert first["count"] == 12
    assert prefill + allreduces < first["p50_s"] < 2 * (prefill + allreduces)  # at a low load without much of a queue
    assert first["p50_s"] <= first["p99_s"] <= 10e-3
    assert (first["within_share"], between["within_share"]) == (1.0, 0.0)
    assert between["count"] == 12 * 15
    assert run.iterations is None


def test_all_keys_and_values_go_to_the_gpus_that_decode() -> None:
    """Of each token a key and a value in each layer, divided among the tensor-parallel GPUs, and two allreduces."""
    run = served(rate=1000.0)
    sent = run.ranks.sort("rank")["bytes_sent"].to_list()
    values = 4 * 2 * 1024 * 256 * 2 // 2
    allreduces = 4 * 2 * 1024 * 2048 * 2
    assert sent[1] == 12 * (values + allreduces)
    assert sent[4] == 12 * 1024 * 4


def test_gpus_of_a_group_have_equal_shares_of_tokens_that_do_not_divide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three requests on two GPUs: one and a half tokens each, so that the experts get three, not four."""
    shares = set()

    def experts_of(_: Inference, rank: Rank, *given: Any, **_more: Any) -> None:
        shares.add((rank.index < 2, given[2]))

    monkeypatch.setattr(Inference, "experts_of", experts_of)
    scenario(batch=3, experts=2, expert=2, top_k=1).resolve()
    assert shares == {(True, 512), (False, 1.5)}
    assert Inference(**MODEL).activations(1.5) == 3 * Inference(**MODEL).activations(1) // 2


def test_arrivals_are_a_poisson_process_of_the_seed() -> None:
    inference = Inference(**{**MODEL, "requests": 4000})
    gaps = np.array(inference.arrivals(JobScript(5, seed=1))) * 1e-12
    assert gaps.mean() == pytest.approx(1 / 100, rel=0.06)
    assert gaps.std() == pytest.approx(1 / 100, rel=0.1)
    assert inference.arrivals(JobScript(5, seed=1)) == inference.arrivals(JobScript(5, seed=1))
    assert inference.arrivals(JobScript(5, seed=2)) != inference.arrivals(JobScript(5, seed=1))


@given(st.lists(st.integers(1, 50), min_size=1, max_size=8), st.integers(1, 7), st.integers(1, 30))
def test_a_token_comes_with_each_step_after_the_transfer(gaps: list[int], step: int, transfer: int) -> None:
    """An independent count: the steps are walked one by one."""
    inference = Inference(**{**MODEL, "requests": len(gaps), "output": 4})
    arrivals = np.cumsum(gaps)
    ready, events = 0, []
    for arrival in arrivals.tolist():
        ready = max(ready, arrival) + 5
        events += [ready, ready + transfer]
        ready += transfer
    steps = np.arange(1, 400) * step
    first, between = latencies(inference, 5, {4: arrivals, 0: np.array(events), 2: steps})
    assert first.tolist() == [events[2 * number] - arrival for number, arrival in enumerate(arrivals.tolist())]
    expected = []
    for number in range(len(gaps)):
        last, tokens = events[2 * number], 0
        for before, end in zip(steps.tolist(), steps.tolist()[1:], strict=False):
            if before >= events[2 * number + 1] and tokens < 3:
                expected.append(end - last)
                last, tokens = end, tokens + 1
    assert between.tolist() == expected


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "jobs[0].ranks": ({}, "5 ranks: prefill x prefill_gpus"),
    "jobs[0].workload.tensor": ({"prefill_gpus": 3}, "a divisor of prefill_gpus = 3"),
    "jobs[0].workload.transfers": ({"transfers": 3}, "a divisor of layers = 4"),
    "jobs[0].workload.prompt": ({"prompt": 1023}, "a multiple of prefill_gpus = 2"),
    "jobs[0].workload.expert": ({"experts": 8, "expert": 4}, "a divisor of prefill_gpus = 2"),
    "jobs[0].workload.top_k": ({"experts": 2, "top_k": 3}, "at most experts = 2"),
    "jobs[0].workload.rate": ({"rate": 0}, "above 0"),
}


@pytest.mark.parametrize("key", REFUSED)
def test_bad_input_is_named(key: str) -> None:
    parameters, allowed = REFUSED[key]
    job = {"ranks": 8, "workload": {"name": "inference", **MODEL, **parameters}}
    with pytest.raises(ScenarioError) as error:
        Scenario.read({"duration": "1 ms", "fabric": {"topology": "fat_tree", "hosts": 8, "levels": 1}, "jobs": [job]})
    assert key in str(error.value)
    assert allowed in str(error.value)
