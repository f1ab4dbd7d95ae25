"""Fractional progress: what positions have to satisfy whatever marks are made, and the noise that it removes."""

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.sim.controller.base import Positions

gaps = st.lists(st.floats(0.01, 10), min_size=1, max_size=60)


def readings(times: list[float], period: float, count: int) -> list[tuple[float, int, float]]:
    """Time, marks so far and time of the last mark, at the end of each period."""
    found = []
    for number in range(1, count + 1):
        made = [time for time in times if time <= number * period]
        found.append((number * period, len(made), made[-1] if made else 0.0))
    return found


def array(*values: float) -> "numpy.typing.NDArray[numpy.float64]":
    return numpy.array(values, float)


@given(gaps, st.floats(0.05, 20), st.integers(1, 30))
def test_a_position_is_between_two_marks_and_never_goes_back(gaps: list[float], period: float, count: int) -> None:
    position = Positions.begin(array(0), array(0))
    for now, marks, marked in readings(list(numpy.cumsum(gaps)), period, count):
        later = position.then(array(marks), array(marked), array(now))
        assert marks <= later.at[0] <= marks + 1
        assert later.at[0] >= position.at[0]
        position = later


@given(st.floats(0.01, 3), st.floats(0.5, 20), st.integers(3, 20))
def test_of_even_iterations_every_period_has_the_same_advance(pace: float, period: float, count: int) -> None:
    times = [pace * number for number in range(1, int(period * (count + 1) / pace) + 2)]
    position = Positions.begin(array(0), array(0))
    advances = []
    for now, marks, marked in readings(times, period, count):
        later = position.then(array(marks), array(marked), array(now))
        advances.append(later.at[0] - position.at[0])
        position = later
    known = [at for at in range(1, count) if period * at >= pace]  # from when the first mark has been read
    for at in known:
        # A period without any mark is longer than the estimate only by what rounding takes.
        assert advances[at] == pytest.approx(period / pace, rel=1e-6, abs=1e-6)


@given(st.floats(0.01, 3), st.floats(0.0, 20), st.floats(1.01, 20))
def test_the_first_period_after_a_beginning_within_an_iteration_has_the_same_advance(
    pace: float, begin: float, paces: float
) -> None:
    # Marks at 0, pace, 2 pace, ...; a period that is at least as long as an iteration has one of them.
    def reading(now: float) -> tuple[float, float]:
        whole = numpy.floor(now / pace)
        return whole, whole * pace

    end = begin + paces * pace
    (made, last), (more, later), (most, latest) = reading(begin), reading(end), reading(end + pace)
    first = Positions.begin(array(made), array(last), array(begin))
    second = first.then(array(more), array(later), array(end))
    assert second.advance(first)[0] == pytest.approx(paces, rel=1e-6, abs=1e-6)
    third = second.then(array(most), array(latest), array(end + pace))
    assert third.advance(second)[0] == pytest.approx(third.at[0] - second.at[0])


@given(gaps, st.floats(0, 1), st.floats(0.05, 20))
def test_an_advance_is_at_most_an_iteration_from_the_marks_that_were_made(
    gaps: list[float], begun: float, period: float
) -> None:
    times = list(numpy.cumsum(gaps))
    begin = begun * times[-1]
    made = [time for time in times if time <= begin]
    later = [time for time in times if time <= begin + period]
    first = Positions.begin(array(len(made)), array(made[-1] if made else 0.0), array(begin))
    second = first.then(array(len(later)), array(later[-1] if later else 0.0), array(begin + period))
    assert abs(second.advance(first)[0] - (len(later) - len(made))) <= 1


def test_a_part_that_a_program_reports_counts() -> None:
    position = Positions.begin(array(3.25), array(0))
    assert position.at[0] == 3.25
    assert position.then(array(3.75), array(0), array(1)).at[0] == 3.75


def test_processes_are_independent() -> None:
    position = Positions.begin(array(0, 10), array(0, 0)).then(array(4, 10), array(2, 0), array(2.25))
    assert position.at.tolist() == [4.5, 10]
