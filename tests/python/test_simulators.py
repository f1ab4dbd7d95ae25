"""Rules of other simulators as defaults of a scenario: what they set, what they leave, and what follows from them."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from fairlane import Scenario, ScenarioError, Simulation
from fairlane.cli.main import execute
from fairlane.model.fabric.graph import columns
from fairlane.model.scenario.network import Network
from fairlane.model.scenario.simulators import MODELS, Rules, rules_of

FABRIC = {"topology": "dragonfly", "groups": 3, "switches_per_group": 2, "hosts_per_switch": 2, "global_links": 1}
JOBS = [{"name": "job", "ranks": 4, "workload": {"name": "all_to_all", "compute": 0}}]
RATE, LATENCY = 8_000_000_000, 100_000  # a byte takes a nanosecond


def scenario(**tables: Any) -> Scenario:
    return Scenario(**{"fabric": {**FABRIC, "routing": "progressive"}, "jobs": JOBS, **tables})


def leaves(table: Mapping[str, Any], *above: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The keys of nested tables and their values."""
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from leaves(value, *above, key)
        else:
            yield (*above, key), value


@pytest.fixture(params=MODELS)
def rules(request: pytest.FixtureRequest) -> tuple[str, Rules]:
    """The name of each model, and its rules."""
    return request.param, rules_of(request.param)


def test_a_model_is_the_scenario_with_its_tables_written_out(rules: tuple[str, Rules]) -> None:
    name, found = rules
    by_name = scenario(model=name)
    routing = {"name": "progressive", **found.routings.get("progressive", {})}
    written = scenario(**found.tables, fabric={**FABRIC, "routing": routing})
    assert by_name.resolve().spec == written.resolve().spec != scenario().resolve().spec
    assert written.applied.keys == {}
    expected = {".".join(key) for key, _ in leaves(found.tables)}
    expected |= {f"fabric.routing.{key}" for key in found.routings.get("progressive", {})}
    assert set(by_name.applied.keys) == expected
    assert scenario(**by_name.model_dump(mode="json", exclude_none=True, exclude={"jobs"})).applied.keys == {}


def test_what_a_scenario_says_is_not_replaced(rules: tuple[str, Rules]) -> None:
    name, found = rules
    usual = scenario()
    for (table, key, *inner), _ in leaves(found.tables):
        if inner:
            continue
        default = usual.model_dump(mode="json")[table][key]
        if default is None:
            continue
        own = scenario(model=name, **{table: {key: default}})
        assert getattr(getattr(own, table), key) == getattr(getattr(usual, table), key)
        assert f"{table}.{key}" not in own.applied.keys
        assert own.applied.keys, "and the model sets the other keys"


def test_what_stands_in_the_place_of_a_key_replaces_it() -> None:
    by_lane = scenario(model="snappr", network={"buffer": "64 KiB"})
    assert (by_lane.network.buffer, by_lane.network.port_buffer) == (65536, None)
    assert not [key for key in by_lane.applied.keys if key.startswith("network.port_buffer")]
    by_port = scenario(model="tracer", network={"port_buffer": {"size": "1 MiB", "sharing": "dynamic"}})
    assert by_port.network.buffer is None
    larger = scenario(model="snappr", network=Network(port_buffer={"size": "3 MiB"}))
    assert larger.network.spec["port_buffer"] == {"size": 3 << 20, "sharing": "even"}
    listed = scenario(model="snappr", network={"port_buffer": {"lanes": ["64 KiB", "32 KiB"]}})
    assert listed.network.spec["port_buffer"] == {"lanes": [65536, 32768]}
    assert larger.applied.keys["network.injection"] == "adapter_fifo"
    assert scenario(model="tracer", mpi={"send_overhead": "1 us"}).mpi.send_overheads == []
    ring = scenario(model="snappr", mpi={"collectives": {"allreduce": "ring"}}).mpi.collectives
    assert ring == {"allreduce": "ring", "allgather": "bruck", "alltoall": "bruck"}


def test_lanes_of_a_routing_have_its_parameters_too() -> None:
    lanes = ["progressive", {"name": "progressive", "samples": 3}, "minimal"]
    found = scenario(model="snappr", fabric={**FABRIC, "routing": {"name": "per_lane", "lanes": lanes}})
    assert found.fabric.routing is not None
    assert found.fabric.routing.parameters["lanes"] == [
        {"name": "progressive", **rules_of("snappr").routings["progressive"]},
        {"name": "progressive", **rules_of("snappr").routings["progressive"], "samples": 3},
        {"name": "minimal"},
    ]


def test_a_fat_tree_that_names_no_routing_has_the_models() -> None:
    tree = {"topology": "fat_tree", "hosts": 8, "levels": 2, "radix": 4}
    found = scenario(model="snappr", fabric=tree)
    assert found.fabric.routing is not None
    assert (found.fabric.routing.name, found.applied.keys["fabric.routing.name"]) == ("rotation", "rotation")
    own = scenario(model="snappr", fabric={**tree, "routing": "d_mod_k"})
    assert own.fabric.routing is not None
    assert own.fabric.routing.name == "d_mod_k"
    assert scenario(model="tracer", fabric=tree).fabric.routing is None
    assert scenario(model="snappr", fabric=FABRIC).fabric.routing is None


def test_four_levels_under_par_have_64_kib_a_lane() -> None:
    """The memory of a port that the model chooses: six channels for each of four levels."""
    found = scenario(model="snappr", qos={"strategy": "split_priority"}).decide()
    assert found.tables["network"]["port_buffer"] == {"size": 24 * 65536, "sharing": "even"}


def trips(size: int, model: str) -> int:
    """Time from one mark to the next of a ping-pong between leaves of a fat-tree of two levels, ps."""
    fabric = {"topology": "fat_tree", "hosts": 4, "levels": 2, "leaf_down": 2, "leaf_up": 2}
    fabric |= {"bandwidth": "8 Gb/s", "latency": "100 ns"}
    job = {"name": "job", "placement": {"hosts": [0, 3]}, "stop": 3}
    job["workload"] = {"name": "ping_pong", "message_size": f"{size} B"}
    observe = {"iterations": ["job"]}
    simulation = Simulation(Scenario(model=model, fabric=fabric, jobs=[job], observe=observe))
    assert simulation.run_for("1 s")
    marks = columns(simulation.engine.table("marks"))
    (elapsed,) = set(marks["elapsed"][marks["iteration"] > 0])
    return int(elapsed)


def test_times_of_a_message_follow_from_the_rules() -> None:
    """Four links of a nanosecond a byte and 100 ns between the hosts, and three switches."""
    byte, links, switches = 8 * 10**12 // RATE, 4, 3
    # SNAPPR: neither headers nor overheads, and no time in switches, which forward the head. Beyond 512 bytes a message
    # is fetched, after a header of 64 bytes and a request of as many.
    assert trips(512, "snappr") == 2 * (512 * byte + links * LATENCY)
    packets = 2 * 4096
    assert trips(packets, "snappr") == 2 * ((64 + 64 + packets) * byte + 3 * links * LATENCY)
    # TraceR: 400 ns and 0.01 ns a byte in the sender, 300 ns before its adapter, 600 ns in the receiver; packets of
    # 8 KiB are stored in each of the switches, which take 60 ns.
    packets = 2 * 8192
    ends = 400_000 + packets * 10 + 300_000 + 600_000
    wire = packets * byte + switches * (8192 * byte + 60_000) + links * LATENCY
    assert trips(packets, "tracer") == 2 * (ends + wire)


def test_wrong_models_are_wrong_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ScenarioError, match=r'model = "snapr": unknown model; .* did you mean "snappr"\?'):
        scenario(model="snapr")
    with pytest.raises(
        ScenarioError, match=r"network\.buffer .*one packet of 131072 B \(the model tracer sets this key\)"
    ):
        scenario(model="tracer", network={"mtu": "128 KiB"})
    (tmp_path / "own.py").write_text(
        "from fairlane.model.scenario.simulators import Rules\n\n\ndef slow():\n"
        '    """Slow switches."""\n    return Rules({"network": {"switch_latency": "9 us"}}, differs=["all"])\n\n\n'
        "def none():\n    pass\n\n\ndef broken():\n    return 1 / 0\n"
    )
    file = tmp_path / "scenario.toml"
    text = 'duration = "1 ms"\nfabric = { topology = "fat_tree", hosts = 4 }\n[[jobs]]\nworkload = "ring"\nranks = 4\n'
    for name, code, words in (
        ("own.py:slow", 0, "model own.py:slow sets: network.switch_latency = 9 us"),
        ("own.py:slow", 0, "unlike own.py:slow: all"),
        ("own.py:none", 2, "returned NoneType; allowed: fairlane.model.scenario.simulators.Rules"),
        ("own.py:broken", 2, "own.py:14: model: ZeroDivisionError: division by zero"),
        ("own.py:slo", 2, 'did you mean "slow"?'),
    ):
        file.write_text(f'model = "{name}"\n{text}')
        assert execute(["check", str(file), "--allow-code"]) == code
        said = capsys.readouterr()
        assert words in said.out + said.err
