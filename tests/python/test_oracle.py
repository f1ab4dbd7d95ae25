"""The engine agrees with the oracle event for event, and the oracle keeps the laws that it was not built from."""

from collections import Counter, defaultdict
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings

from oracle import Case, Departure, core, ser, simulate
from oracle.cases import cases

thorough = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)


def first_difference(found: list[Departure], expected: list[Departure]) -> str:
    """Where two lists of departures part, for whoever has to find out why."""
    common = next((i for i, (a, b) in enumerate(zip(found, expected, strict=False)) if a != b), len(expected))
    here = slice(max(0, common - 2), common + 3)
    return f"after {common} departures: engine {found[here]}, oracle {expected[here]}"


@pytest.mark.timeout(300)
@thorough
@given(cases())
def test_engine_and_oracle_agree(case: Case) -> None:
    found, expected = core.simulate(case), simulate(case)
    assert sorted(found.departures) == sorted(expected.departures), first_difference(
        sorted(found.departures), sorted(expected.departures)
    )
    assert found.facts() == expected.facts()


@pytest.mark.timeout(300)
@thorough
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
        assert sum(count.active for count in counts) == sum(ser(departure.size, rate) for departure in departures)
    # Every packet takes every link of its route once.
    taken = Counter((d.job, d.source, d.destination, d.packet, d.size, d.link) for d in outcome.departures)
    for (job, source, to, packet, size, _), count in taken.items():
        places = case.jobs[job].hosts
        route = case.fabric.routes[places[source], places[to]]
        assert [taken[job, source, to, packet, size, hop.link] for hop in route] == [count] * len(route)
    # All waiting is charged to somebody.
    assert sum(outcome.interference.values()) == sum(count.waiting for count in outcome.ports.values())
    # Every rank passes every mark.
    assert all(progress.marks > 0 for progress in outcome.progress.values())
    assert len(outcome.progress) == sum(len(job.hosts) for job in case.jobs)
