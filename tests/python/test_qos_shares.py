"""Shares of a link: what tables of VL arbitration give, what was simulated, and what exported settings give again."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fairlane import Fabric, Scenario, Simulation
from fairlane.cli.main import execute
from fairlane.cluster.opensm.export import Exported, export, qos_table
from fairlane.cluster.opensm.options import read_options
from fairlane.cluster.opensm.settings import shares_of_priority, shares_of_tables
from fairlane.core.errors import ScenarioError

PACKET = 4096 + 26
PAIRS = 2  # pairs of hosts that send on a lane: together they send twice what the link carries
WARM_UP_MS, MEASURED_MS = 0.5, 1
PACKETS = MEASURED_MS * 12_500_000 / PACKET  # that a link of 100 Gb/s carries while it is measured
INTERVAL_PACKETS = 125_000 / PACKET  # and in an interval of bandwidth shares, 10 us
# Both partners send one message, which is more than the cable carries in the whole run: no lane is ever empty, and
# all packets are full ones.
FLOOD = {"name": "flood_pairs", "message_size": "64 MiB", "messages_per_iteration": 1, "compute": "0 us"}


def scenario(qos: dict[str, Any], levels: list[int]) -> Scenario:
    """A job for each level, whose messages all go over one cable."""
    hosts = 2 * PAIRS * len(levels)
    jobs = []
    for at, level in enumerate(levels):
        low = range(PAIRS * at, PAIRS * (at + 1))
        placement = {"hosts": [*low, *(host + hosts // 2 for host in low)]}
        jobs.append(
            {
                "name": f"level-{level}",
                "ranks": 2 * PAIRS,
                "service_level": level,
                "placement": placement,
                "workload": FLOOD,
            }
        )
    tree = {"topology": "fat_tree", "hosts": hosts, "levels": 2, "leaf_down": hosts // 2, "leaf_up": 1}
    return Scenario.read({"duration": "2 ms", "fabric": tree | {"bandwidth": "100 Gb/s"}, "qos": qos, "jobs": jobs})


def simulated(made: Scenario) -> dict[int, float]:
    """Share of each lane of the cable."""
    simulation = Simulation(made)
    simulation.run_for(f"{WARM_UP_MS} ms")
    before = simulation.table("ports")["bytes"]
    simulation.run_for(f"{MEASURED_MS} ms")
    ports = simulation.table("ports")
    links = Fabric.build(made.fabric.spec).links
    (up,) = (
        link
        for link, name in zip(links["link"], links["from_name"], strict=True)
        if name == "leaf0" and links["to_name"][link].startswith("spine")
    )
    sent = {
        int(lane): int(count)
        for link, lane, count in zip(ports["link"], ports["lane"], (ports["bytes"] - before).to_numpy(), strict=True)
        if link == up
    }
    assert sum(sent.values()) == pytest.approx(MEASURED_MS * 12_500_000, rel=0.01)  # the cable is never idle
    return {lane: count / sum(sent.values()) for lane, count in sent.items()}


def again(found: Exported, folder: Path) -> dict[str, Any]:
    """What ``qos import`` reads of what was exported."""
    (folder / "opensm.conf").write_text(found.files["opensm.conf"])
    return qos_table(read_options(folder / "opensm.conf")[0])[0]


@st.composite
def arbitrations(draw: st.DrawFn) -> tuple[dict[str, Any], list[int]]:
    """The table ``qos`` with two to four lanes, and a service level for each lane."""
    lanes = draw(st.integers(2, 4))
    levels = draw(st.lists(st.integers(0, 15), min_size=lanes, max_size=lanes, unique=True))
    sl2vl = draw(st.lists(st.integers(0, lanes - 1), min_size=16, max_size=16))
    for lane, level in enumerate(draw(st.permutations(levels))):
        sl2vl[level] = lane
    kind = draw(st.sampled_from(["weighted_round_robin", "vlarb", "strict_priority"]))
    arbiter: dict[str, Any] = {"name": kind}
    if kind == "weighted_round_robin":
        arbiter["weights"] = draw(st.lists(st.integers(1, 12), min_size=lanes, max_size=lanes))
    elif kind == "strict_priority":
        arbiter["order"] = draw(st.permutations(range(lanes)))
        arbiter["shares"] = [[lane, draw(st.integers(10, 60))] for lane in draw(st.sets(st.integers(0, lanes - 1)))]
    else:
        entry = st.tuples(st.integers(0, lanes - 1), st.integers(0, 255)).map(list)
        high = draw(st.lists(entry, max_size=4))
        low = draw(st.lists(entry, max_size=4))
        served = {lane for lane, weight in high + low if weight}
        low += [[lane, draw(st.integers(1, 255))] for lane in range(lanes) if lane not in served]
        arbiter |= {"vlarb_high": high, "vlarb_low": low}
        arbiter["high_limit"] = draw(st.sampled_from([0, 1, 2, 3, 7, 255]))
    return {"sl2vl": sl2vl, "arbiter": arbiter}, levels


@settings(max_examples=15, deadline=None)
@given(drawn=arbitrations())
@example(drawn=({"sl2vl": [0, 1], "arbiter": {"name": "weighted_round_robin", "weights": [1, 3]}}, [0, 1]))
@example(drawn=({"sl2vl": [0, 1], "arbiter": {"name": "strict_priority", "shares": [[1, 25]]}}, [0, 1]))
def test_exported_settings_give_the_simulated_shares(
    drawn: tuple[dict[str, Any], list[int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    qos, levels = drawn
    made = scenario(qos, levels)
    found = export(made.decide(), approximate=True)
    table = again(found, tmp_path_factory.mktemp("opensm"))
    assert table["sl2vl"] == qos["sl2vl"] + [0] * (16 - len(qos["sl2vl"]))
    before, after = simulated(made), simulated(scenario(table, levels))
    used = {one.lane for one in found.shares}
    low = sum(-(-64 * weight // PACKET) for _, weight in found.settings.vlarb_low)
    high = sum(-(-64 * weight // PACKET) for _, weight in found.settings.vlarb_high)
    run = -(-max(1, 4096 * found.settings.high_limit) // PACKET) if found.settings.high_limit < 255 else 0
    # A window begins and ends anywhere in a round: of both tables, with a run of the high one before every low packet.
    whole = high + low * (1 + run)
    table_error = min(1, (whole + 1) / PACKETS)
    # A lane may exceed its bandwidth share by a packet in an interval, at the expense of the others.
    share_error = len(used) / INTERVAL_PACKETS if qos["arbiter"].get("shares") else table_error
    for one in found.shares:
        assert after[one.lane] == pytest.approx(one.exported, abs=table_error), one
        assert before[one.lane] == pytest.approx(one.simulated, abs=share_error), one
        assert before[one.lane] == pytest.approx(after[one.lane], abs=table_error + share_error), one
    assert {one.lane: one.exported for one in found.shares} == pytest.approx(
        {one.lane: one.simulated for one in found.shares}, abs=0.005
    )


def part(*counts: int) -> dict[int, Fraction]:
    return {lane: Fraction(count, sum(counts)) for lane, count in enumerate(counts)}


@pytest.mark.parametrize(
    ("high", "low", "limit", "sizes", "shares"),
    [
        # 65 units are 4,160 bytes: 38 are left after a packet, so that another one is sent. 195 units: four packets.
        ((), ((0, 65), (1, 195)), 0, (4122, 4122), part(2, 4)),
        ((), ((0, 64), (1, 192)), 0, (4122, 4122), part(1, 3)),
        ((), ((0, 255), (0, 255), (1, 1)), 0, (4122, 4122), part(8, 1)),
        # 64 units are 46 packets of 90 bytes, and one of 4,122.
        ((), ((0, 64), (1, 64)), 0, (90, 4122), part(46 * 90, 4122)),
        # One high packet, then one low one; with a limit of 12,288 bytes three; without a limit no low one at all.
        (((1, 64),), ((0, 64),), 0, (4122, 4122), part(1, 1)),
        (((1, 64),), ((0, 64),), 3, (4122, 4122), part(1, 3)),
        (((1, 64),), ((0, 64),), 255, (4122, 4122), part(0, 1)),
        # Two lanes of high priority share the three packets 2 : 1, two of low priority the one 1 : 1.
        (((1, 128), (2, 64)), ((0, 64), (3, 64)), 3, (4122,) * 4, part(1, 4, 2, 1)),
        # Runs of at least 4,096 bytes of packets of 2,000 (lane 1) and 500 (lane 2) that take turns: first 2000 + 500 +
        # 2000, and from then on 500 + 2000 + 500 + 2000, each followed by 1,000 bytes of lane 0.
        (((1, 1), (2, 1)), ((0, 1),), 1, (1000, 2000, 500), part(1000, 4000, 1000)),
        # A lane without a weight has nothing; one that is in both tables has both parts.
        (((1, 0),), ((0, 64), (2, 64)), 3, (4122,) * 3, part(1, 0, 1)),
        (((1, 64),), ((0, 64), (1, 64)), 0, (4122,) * 2, part(1, 3)),
    ],
)
def test_shares_of_tables(high: Any, low: Any, limit: Any, sizes: tuple[int, ...], shares: dict[int, Fraction]) -> None:
    assert shares_of_tables(high, low, limit, dict(enumerate(sizes))) == shares


@settings(max_examples=30)
@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 255)), max_size=6),
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 255)), max_size=6),
    st.integers(0, 254),
    st.lists(st.integers(40, 5000), min_size=3, max_size=3),
)
def test_shares_are_those_of_packet_by_packet_arbitration(high: Any, low: Any, limit: int, sizes: list[int]) -> None:
    """Counts packets as section 7.6.9 of the specification says, one after the other."""
    tables = [[entry for entry in table if entry[1]] for table in (high, low)]
    if not any(tables):
        return
    at, left = [0, 0], [0, 0]
    row, count = 0, 10_000
    sent = [0, 0, 0]

    def serve(which: int) -> int:
        table = tables[which]
        if left[which] <= 0:
            at[which] = (at[which] + 1) % len(table)
            left[which] = 64 * table[at[which]][1]
        lane = table[at[which]][0]
        size: int = sizes[lane]
        left[which] -= size
        sent[lane] += size
        return size

    at = [len(table) - 1 for table in tables]
    for _ in range(count):
        if tables[0] and (not tables[1] or row < max(1, 4096 * limit)):
            row += serve(0)
        else:
            serve(1)
            row = 0
    found = shares_of_tables(tuple(high), tuple(low), limit, dict(enumerate(sizes)))
    rounds = [sum(-(-64 * weight // sizes[lane]) for lane, weight in table) for table in tables]
    run = -(-max(1, 4096 * limit) // min(sizes)) + 1
    # As above: of the packets counted, those of an unfinished round may be other than the others.
    error = min(1, (rounds[0] + rounds[1] * (1 + (run if tables[0] else 0))) * max(sizes) / sum(sent))
    for lane in range(3):
        assert sent[lane] / sum(sent) == pytest.approx(float(found[lane]), abs=error + 1e-9)


def test_shares_of_strict_priority() -> None:
    assert shares_of_priority([1, 0], {}) == {0: 0, 1: 1}
    assert shares_of_priority([1, 0], {1: 25}) == {1: Fraction(1, 4), 0: Fraction(3, 4)}
    # The second lane has only what the first has left; a part that nobody has priority for is the first lane's.
    assert shares_of_priority([2, 1, 0], {2: 60, 1: 60}) == {2: Fraction(3, 5), 1: Fraction(2, 5), 0: 0}
    assert shares_of_priority([1, 0], {1: 25, 0: 25}) == {1: Fraction(3, 4), 0: Fraction(1, 4)}


def arbiter(name: str, lanes: int = 2, **params: Any) -> dict[str, Any]:
    return {"sl2vl": list(range(lanes)), "arbiter": {"name": name, **params}}


def exported(qos: dict[str, Any], *, approximate: bool = False) -> Exported:
    return export(scenario(qos, [0, 1]).decide(), approximate=approximate)


def test_a_table_that_cannot_have_the_shares_has_the_nearest_and_says_so() -> None:
    """Sixty-three entries of four packets and one of one are 252 : 1; 997 : 3 is 332.3 : 1."""
    qos = arbiter("weighted_round_robin", weights=[997, 3])
    words = r"qos.arbiter.weights = \[997,3\].*VL0 99.6%, VL1 0.4% instead of VL0 99.7%, VL1 0.3%, an error of 0.095"
    with pytest.raises(ScenarioError, match=words.replace(",3", ", ?3")):
        exported(qos)
    found = exported(qos, approximate=True)
    assert [one.exported for one in found.shares] == pytest.approx([252 / 253, 1 / 253])
    assert [one.simulated for one in found.shares] == [0.997, 0.003]
    assert any("an error of 0.095 percentage points" in note for note in found.notes)


def test_tables_fit_the_entries_that_ports_have() -> None:
    """Eight entries of up to four packets: 40 and 4 packets are ten and one entries, 10 and 1 three and one."""
    qos = arbiter("weighted_round_robin", weights=[40, 4])
    long = export(scenario(qos, [0, 1]).decide())
    assert len(long.settings.vlarb_low) == 11
    assert any("has 11 entries: ports need room for them" in note for note in long.notes)
    short = export(scenario(qos, [0, 1]).decide(), entries=8)
    assert short.settings.vlarb_low == ((0, 255), (0, 255), (0, 128), (1, 64))
    assert not any("need room" in note for note in short.notes)
    # 31 and 2 packets are eight entries and one: one too many. The nearest of all that fit is found by trying them.
    odd = arbiter("weighted_round_robin", weights=[31, 2])
    with pytest.raises(ScenarioError, match=r"tables of 8 entries of weights up to 255.*an error of"):
        export(scenario(odd, [0, 1]).decide(), entries=8)
    near = export(scenario(odd, [0, 1]).decide(), entries=8, approximate=True).shares
    errors = {
        abs(first / (first + second) - 31 / 33)
        for first in range(1, 29)
        for second in range(1, 29)
        if -(-first // 4) + -(-second // 4) <= 8
    }
    assert abs(near[0].exported - 31 / 33) == pytest.approx(min(errors))
    for two in (arbiter("vlarb", 4, vlarb_low=[[lane, 64] for lane in range(4)]), arbiter("strict_priority", 6)):
        with pytest.raises(ScenarioError, match=r"needs a table of VL arbitration with . entries.*--vlarb-entries"):
            export(scenario(two, [0, 1]).decide(), entries=3, approximate=True)


def test_weights_with_a_common_divisor_are_the_same_shares() -> None:
    found = exported(arbiter("weighted_round_robin", weights=[300, 100]))
    assert found.settings.vlarb_low == ((0, 192), (1, 64))
    assert any("divided by 100" in note for note in found.notes)


def test_lower_levels_of_priority_have_the_largest_ratios_that_fit() -> None:
    """Of lanes 2, 1 and 0 the first has r * r packets and the next r: r = 15.4 fills 64 entries of four packets."""
    found = exported(arbiter("strict_priority", 4), approximate=True)
    assert (found.settings.vlarb_high, found.settings.high_limit) == (((3, 255),), 255)
    packets = shares_of_tables((), found.settings.vlarb_low, 0, dict.fromkeys(range(3), PACKET))
    assert 14 < packets[2] / packets[1] < 17
    assert 14 < packets[1] / packets[0] < 17


def test_bandwidth_shares_without_a_lane_that_starves_are_one_table() -> None:
    found = exported(arbiter("strict_priority", shares=[[1, 25]]), approximate=True)
    assert (found.settings.vlarb_high, set(found.settings.vlarb_low)) == ((), {(1, 64), (0, 192)})
    # Lane 2 has 25% and lane 1 the rest; lane 0 is sent only when both have nothing.
    three = exported(arbiter("strict_priority", 3, shares=[[2, 25]]), approximate=True).settings
    assert (set(three.vlarb_high), three.vlarb_low, three.high_limit) == ({(2, 64), (1, 192)}, ((0, 255),), 255)


def test_a_high_entry_without_weight_leaves_its_lane_in_the_default_low_table() -> None:
    found = exported(arbiter("vlarb", vlarb_high=[[1, 0]])).settings
    assert found.vlarb_low == ((0, 64), (1, 64))


def test_the_command_prints_and_writes_shares(small: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    weights = 'qos={sl2vl=[0,1,1],arbiter={name="weighted_round_robin",weights=[1,3]}}'
    assert execute(["qos", "export", small, "--set", weights, "--opensm", str(tmp_path / "out")]) == 0
    assert "VL1: 75.0% of a link on which all lanes always send, 75.0% simulated" in capsys.readouterr().out
    rows = [line.split("\t") for line in (tmp_path / "out" / "shares.tsv").read_text().splitlines()]
    assert rows[1:] == [
        ["lane", "service levels", "simulated", "exported"],
        ["0", ",".join(map(str, (0, *range(3, 16)))), "25", "25"],
        ["1", "1,2", "75", "75"],
    ]
