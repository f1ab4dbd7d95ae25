"""What the agent decides, by predictions alone; and the limit of changes."""

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from fairlane.cluster.agent.config import PolicyTable
from fairlane.cluster.agent.decision import WINDOW_S, Candidate, Prediction, decide, wait_s
from fairlane.core.statistics import Estimate, independent

POLICY = PolicyTable(levels=[1], min_gain=0.02, max_loss=0.1)


def prediction(job: str, changes: Mapping[str, list[float]], unknown: tuple[str, ...] = ()) -> Prediction:
    """A prediction by the change of each job in each replicate."""
    means = [sum(one) / len(one) for one in zip(*changes.values(), strict=True)]
    estimates = {name: _estimate(values) for name, values in changes.items()}
    return Prediction(Candidate(job, 1), _estimate(means), estimates, unknown)


def _estimate(values: list[float]) -> Estimate:
    found = independent(values)
    assert found is not None
    return found


GOOD = prediction("1", {"1": [0.30, 0.31, 0.29], "2": [-0.02, -0.02, -0.021]})
BETTER = prediction("2", {"1": [0.40, 0.41, 0.39], "2": [0.05, 0.05, 0.051]})


def test_the_greatest_gain_is_chosen() -> None:
    found = decide([GOOD, BETTER], POLICY)
    assert found.chosen is BETTER
    assert "job 2 on level 1: +22.5%" in found.reason
    assert decide([GOOD], POLICY).chosen is GOOD


def test_nothing_is_chosen_without_candidates() -> None:
    assert decide([], POLICY).chosen is None


def test_candidates_without_time_are_counted() -> None:
    assert decide([], POLICY, 3).reason == "no candidate was predicted; 3 not tried within twin.time_limit"
    assert decide([GOOD], POLICY, 3).reason.endswith("; 3 not tried within twin.time_limit")
    assert decide([prediction("1", {"1": [0.5]})], POLICY, 1).reason.endswith("; 1 not tried within twin.time_limit")


def test_every_limit_refuses_and_is_named() -> None:
    cases = {
        "its interval is not above zero": prediction("1", {"1": [0.5, -0.4, 0.3]}),
        "its interval is not known": prediction("1", {"1": [0.5]}),
        "less than policy.min_gain = 2.0%": prediction("1", {"1": [0.01, 0.0101, 0.0099]}),
        "job 2 changes −15.0%": prediction("1", {"1": [0.6, 0.61, 0.59], "2": [-0.15, -0.151, -0.149]}),
        "job 3 completed nothing within twin.horizon": prediction("1", {"1": [0.6, 0.61, 0.59]}, ("3",)),
    }
    for words, one in cases.items():
        found = decide([one], POLICY)
        assert found.chosen is None, words
        assert words in found.reason


def test_a_loss_that_the_interval_does_not_exclude_refuses() -> None:
    # The mean loss of 8% is below the limit of 10%, the interval reaches beyond it.
    found = decide([prediction("1", {"1": [0.9, 0.95, 0.9], "2": [-0.02, -0.08, -0.14]})], POLICY)
    assert found.chosen is None
    assert "job 2 changes −8.0% ± 14.9%" in found.reason


def test_a_gain_by_chance_among_many_is_refused() -> None:
    # Its own interval is above zero; among 64 candidates without an effect one such is to be expected.
    lucky = prediction("1", {"1": [0.10, 0.12, 0.05, 0.02, 0.15]})
    assert lucky.gain.low is not None
    assert lucky.gain.low > 0
    assert decide([lucky], POLICY).chosen is lucky
    noise = [prediction(str(at + 2), {"1": [0.1, -0.1, 0.2, -0.2, 0.01 * (at % 3)]}) for at in range(63)]
    found = decide([lucky, *noise], POLICY)
    assert found.chosen is None
    assert "not beyond noise among all candidates" in found.reason


@given(
    tries=st.lists(st.floats(0, 40), min_size=1, max_size=60),
    most=st.integers(1, 5),
    backwards=st.lists(st.floats(0, 300), max_size=3),
)
def test_no_minute_has_more_changes_than_allowed(tries: list[float], most: int, backwards: list[float]) -> None:
    now, written = 1000.0, [1000.0 + one for one in backwards]  # as after a clock that was set back
    written.sort()
    earlier = len(written)
    for gap in tries:
        now += gap
        wait = wait_s([at for at in written if at > now - WINDOW_S], now, most)
        assert 0 <= wait <= WINDOW_S + 1e-6
        if wait == 0:
            written.append(now)
    made = written[earlier:]
    for at in made:
        assert sum(at <= other < at + WINDOW_S for other in made) <= most


@given(written=st.lists(st.floats(0, 100), max_size=10).map(sorted), most=st.integers(1, 5))
def test_after_the_wait_a_change_is_allowed(written: list[float], most: int) -> None:
    wait = wait_s(written, 100.0, most)
    assert wait_s(written, 100.0 + wait + 1e-6, most) == 0
