"""The engine agrees with the oracle event for event, and the oracle keeps the laws that it was not built from."""

from collections import defaultdict
from itertools import pairwise, zip_longest

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairlane.inputs.parameters import entries
from oracle import Case, Compute, Job, Mark, Mpi, Op, Outcome, core, fabrics, ser, simulate
from oracle.case import Collective, EndBurst, Pause
from oracle.cases import MoreScripts, cases, wide_cases
from vopr.reference import ALGORITHMS

pytestmark = pytest.mark.campaign
relaxed = settings(
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)


def first_difference(found: Outcome, expected: Outcome) -> str:
    """Where the departures part, for whoever has to find out why; empty if they are the same."""
    theirs, ours = sorted(found.departures), sorted(expected.departures)
    for place, (their, our) in enumerate(zip_longest(theirs, ours)):
        if their is None or our is None or their[:-1] != our[:-1]:
            return f"departure {place}: engine {theirs[place : place + 3]}, oracle {ours[place : place + 3]}"
    return ""


@relaxed
@given(cases())
def test_engine_and_oracle_agree(case: Case) -> None:
    agree(case)


@relaxed
@given(cases(MoreScripts))
def test_engine_and_oracle_agree_on_collectives_and_windows(case: Case) -> None:
    agree(case)


@settings(relaxed, max_examples=relaxed.max_examples // 10)
@given(data=st.data())
@pytest.mark.parametrize("routing", sorted(entries("routing")))
def test_engine_and_oracle_agree_on_every_topology_and_routing(routing: str, data: st.DataObject) -> None:
    case = data.draw(wide_cases(routing))
    agree(fabrics.recorded(case, core.run(case)))


def agree(case: Case) -> None:
    """They do the same, event for event."""
    found, expected = core.simulate(case), simulate(case)
    assert not first_difference(found, expected)
    assert found.facts() == expected.facts()
    # Latencies agree exactly in count, sum and extremes, and each lies in a bucket within the stated precision.
    facts, buckets = core.latencies(core.run(case))
    assert facts == expected.latency_facts()
    for key, latencies in expected.latencies.items():
        assert all(256 * (high - low) <= low for low, high, _ in buckets[key])
        inside = [sum(low <= latency <= high for latency in latencies) for low, high, _ in buckets[key]]
        assert inside == [count for _, _, count in buckets[key]]
    # It is the same packet that goes: a message of the oracle has one name in the engine.
    same = zip(sorted(expected.departures), sorted(found.departures), strict=True)
    names = {(ours.message, theirs.message) for ours, theirs in same}
    assert len(names) == len({departure.message for departure in expected.departures})


@pytest.mark.parametrize("ranks", [9, 12, 40])
def test_engine_and_oracle_agree_on_collectives_of_many_ranks(ranks: int) -> None:
    each: list[Op] = [Collective(kind, 4, 2 if kind == "bcast" else 0) for kind in ALGORITHMS]
    job = Job(list(range(ranks)), [[*each, Mark()]] * ranks)
    agree(Case(fabrics.star(ranks), [job], mpi=Mpi(send_overhead=333, collectives=ALGORITHMS)))


@pytest.mark.parametrize("ranks", [8, 12, 17])
def test_every_rank_hears_whether_the_burst_goes_on(ranks: int) -> None:
    """Rank 0 computes for 100 in each iteration, so a burst of 150 is over after its second one.

    Without overheads its eager sends take it no time: only the pause of 1,000 is added to its four iterations.
    """
    rounds: list[Op] = [Mark(), EndBurst(150), Pause(1_000)]
    scripts: list[list[Op]] = [[*([Compute(100)] if rank == 0 else []), *rounds] * 4 for rank in range(ranks)]
    case = Case(fabrics.star(ranks), [Job(list(range(ranks)), scripts)], mpi=Mpi(collectives=ALGORITHMS))
    agree(case)
    outcome = simulate(case)
    first = outcome.progress[0, 0]
    assert (first.marks, first.first, first.last) == (4, 100, 4 * 100 + 1_000)
    assert all(outcome.progress[0, rank].marks == 4 for rank in range(ranks))


@relaxed
@given(cases())
def test_oracle_keeps_the_laws(case: Case) -> None:
    outcome = simulate(case)
    # A link carries one packet at a time, and counts what it carries.
    by_link = defaultdict(list)
    for departure in outcome.departures:
        by_link[departure.link].append(departure)
    for link, departures in by_link.items():
        rate = case.fabric.links[link].bandwidth
        assert all(b.time - a.time >= ser(a.size, rate) for a, b in pairwise(departures))
        counts = [count for (number, _), count in outcome.ports.items() if number == link]
        assert sum(count.size for count in counts) == sum(departure.size for departure in departures)
        assert outcome.links[link].active == sum(ser(departure.size, rate) for departure in departures)
    # Every packet takes every link of its route once.
    of_rails = (case.fabric.routes, *case.fabric.more_routes)
    routes = {tuple(hop.link for hop in route) for of_rail in of_rails for route in of_rail.values()}
    if case.fabric.by_flow is not None:
        jobs, lanes = range(len(case.jobs)), range(case.qos.lanes)
        flows = [(*pair, job, lane) for pair in case.fabric.routes for job in jobs for lane in lanes]
        routes = {tuple(hop.link for hop in case.fabric.by_flow(*flow)) for flow in flows}
    ways = defaultdict(list)
    for departure in sorted(outcome.departures):
        ways[departure.message, departure.packet, departure.size].append(departure.link)
    assert {tuple(way) for way in ways.values()} <= routes
    # Packets of a message do not overtake each other.
    for link_departures in by_link.values():
        for message in {departure.message for departure in link_departures}:
            packets = [departure.packet for departure in link_departures if departure.message == message]
            assert packets == list(range(len(packets)))
    # All waiting is charged to somebody.
    assert sum(outcome.interference.values()) == sum(count.waiting for count in outcome.ports.values())
    # Every rank passes every mark.
    assert all(progress.marks > 0 for progress in outcome.progress.values())
    assert len(outcome.progress) == sum(len(job.hosts) for job in case.jobs)
