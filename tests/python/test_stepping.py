"""Messages that Python sends while a simulation runs are those of a program that does the same."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typing_extensions import override

from fairlane import BuildError, Scenario, ScenarioError, Simulation
from fairlane.model.workload import JobScript, Rank, Workload
from fairlane.sim.stepping import Completion

NS, US = 1000, 1_000_000  # ps
FABRIC = {"topology": "fat_tree", "hosts": 16, "levels": 2, "radix": 8, "bandwidth": "100 Gb/s", "latency": "100 ns"}
RANKS = 8


def scenario(workload: Any = "stepped", other: bool = True, **tables: Any) -> Scenario:
    """A job of 8 ranks on every other host, and one that floods the fabric from the hosts between."""
    jobs: list[dict[str, Any]] = [
        {"name": "serving", "ranks": RANKS, "workload": workload, "placement": {"hosts": list(range(0, 16, 2))}}
    ]
    if other:
        flood = {"name": "all_to_all", "message_size": "16 KiB", "compute": "20 us"}
        hosts = {"hosts": list(range(1, 16, 2))}
        jobs.append({"name": "flood", "ranks": RANKS, "workload": flood, "placement": hosts})
    return Scenario(**{"fabric": FABRIC, "jobs": jobs, "duration": "10 ms", **tables})


class SameMessage(Workload):
    """Rank 1 sends a message to rank 6 at 30 us, as an MPI program."""

    @override
    def program(self, job: JobScript, compute: int, *, steady: bool = False) -> Any:
        """Both calls are made at the same time, and waited for."""
        for rank in job:
            if rank.index in (1, 6):
                rank.compute(30 * US)
                self.communicate(rank, 0)
            rank.mark_progress()
        return job.build()

    @override
    def communicate(self, rank: Rank, iteration: int) -> None:
        """The message."""
        if rank.index == 1:
            rank.isend(6, self.message_size)
        else:
            rank.irecv(1)
        rank.wait_all()


@pytest.mark.parametrize("size", [0, 4096, 1 << 20])  # eager, and with a rendezvous
def test_a_message_is_complete_when_that_of_a_program_is(size: int) -> None:
    simulation = Simulation(scenario())
    handle = simulation.send("serving", 1, 6, size, at="30 us")
    (completion,) = simulation.advance("2 ms")
    program = Simulation(
        scenario(SameMessage(message_size=f"{size} B", compute="0 ns"), observe={"iterations": ["serving"]})
    )
    program.run_until("2 ms")
    (end,) = program.table("iterations").filter(rank=6)["at_ps"]
    assert completion == Completion(handle, completion.time, "serving", 1, 6, size, 0, 30 * US)
    assert completion.time == end


def test_closed_forms() -> None:
    """Two links of 100 Gb/s and 100 ns, a switch of 200 ns, overheads of 300 ns; hosts of one leaf, no other job."""
    mpi = {"send_overhead": "300 ns", "receive_overhead": "300 ns", "eager_threshold": "8 KiB", "control_bytes": "64 B"}
    network = {"mtu": "2 KiB", "header": "0 B", "switch_latency": "200 ns", "switching": "cut_through"}
    simulation = Simulation(scenario(other=False, mpi=mpi, network=network))
    one_way = 100 * NS + 200 * NS + 100 * NS
    wire = 8 * 2048 * 10  # ps of a full packet at 100 Gb/s
    simulation.send("serving", 0, 1, 2048, at="10 us")
    simulation.send("serving", 0, 1, 3 * 2048, at="20 us")
    simulation.send("serving", 0, 1, 64 * 2048, at="30 us")
    simulation.send("serving", 0, 1, 64 * 2048, at="50 us", mode="eager")
    times = [message.time - message.sent for message in simulation.advance("1 ms")]
    eager = [300 * NS + one_way + packets * wire + 300 * NS for packets in (1, 3, 64)]
    # The request and the answer cross the fabric before the payload.
    rendezvous = eager[2] + 2 * (one_way + 8 * 64 * 10)
    assert times == [*eager[:2], rendezvous, eager[2]]


def test_what_does_not_fit_is_refused_and_sends_nothing() -> None:
    simulation = Simulation(scenario())
    simulation.send("serving", 0, 1, 100)
    assert len(simulation.advance("50 us")) == 1
    now = simulation.now
    assert 50 * US - simulation.window < now <= 50 * US
    digest = simulation.digest()
    with pytest.raises(BuildError, match=f"at = {now - 1} ps: {now} ps or later"):
        simulation.send("serving", 0, 1, 100, at=now - 1)
    for arguments, words in [
        (("servin", 0, 1, 1), "servin: unknown job.*serving"),
        (("flood", 0, 1, 1), "flood: a job whose workload is stepped"),
        (("serving", 8, 1, 1), "source = 8: 0 to 7"),
        (("serving", 0, -1, 1), "destination = -1.*0 or more"),
        (("serving", 1 << 32, 1, 1), r"source = 4294967296.*below 2\^32"),
        (("serving", 0, 1, -1), "size = -1.*0 or more"),
        (("serving", 0, 1, "1 kg"), "1 kg"),
        (("serving", 0, 1, 1 << 62), "at most"),
        (("serving", 0, 1, 1 << 64), "size = 18446744073709551616: out of range"),
        (("serving", 0, 1, 1.5), "size = 1.5: no whole number"),
    ]:
        with pytest.raises((ScenarioError, BuildError), match=words):
            simulation.send(*arguments)  # type: ignore[arg-type]
    with pytest.raises(ScenarioError, match='did you mean "eager"'):
        simulation.send("serving", 0, 1, 1, mode="eagre")  # type: ignore[arg-type]
    with pytest.raises(ScenarioError, match=r"tag = 2147483648.*below 2\^31"):
        simulation.send("serving", 0, 1, 1, tag=1 << 31)
    assert (simulation.digest(), simulation.advance("60 us")) == (digest, [])


def test_a_job_that_has_stopped_sends_nothing() -> None:
    job = {"name": "serving", "ranks": RANKS, "workload": "stepped", "stop": "40 us"}
    simulation = Simulation(Scenario(fabric=FABRIC, jobs=[job], duration="10 ms"))
    simulation.send("serving", 0, 1, 100, at="30 us")
    with pytest.raises(BuildError, match=f"at = {40 * US} ps: at most {40 * US - 1} ps: the job has stopped"):
        simulation.send("serving", 0, 1, 100, at="40 us")
    assert len(simulation.advance("50 us")) == 1


MESSAGES = st.lists(
    st.tuples(
        st.integers(0, RANKS - 1),
        st.integers(0, RANKS - 1),
        st.sampled_from([0, 100, 5000, 100_000]),
        st.integers(0, 1),
        st.integers(0, 80 * US),
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=20, deadline=None)
@given(MESSAGES, st.lists(st.integers(1, 40 * US), max_size=5), st.sampled_from([1, 2, 3]))
def test_steps_and_threads_change_nothing(messages: list[Any], steps: list[int], threads: int) -> None:
    """Messages that are given as late as possible, between steps, are complete when those given at the start are."""
    messages.sort(key=lambda message: message[-1])
    batch, stepped = Simulation(scenario(), threads=1), Simulation(scenario(), threads=threads)
    for source, destination, size, tag, at in messages:
        batch.send("serving", source, destination, size, tag=tag, at=at)
    expected = batch.advance("200 us")
    found: list[Completion] = []
    for source, destination, size, tag, at in messages:
        while steps and stepped.now + steps[-1] <= at:
            found += stepped.advance(stepped.now + steps.pop())
        found += stepped.advance(at, first=bool(steps))
        stepped.send("serving", source, destination, size, tag=tag, at=at)
    found += stepped.advance("200 us")
    assert found == expected
    assert sorted(message.handle for message in found) == list(range(len(messages)))
    assert stepped.digest() == batch.digest()
    stepped.engine.check_laws()


@pytest.mark.parametrize("threads", [1, 2])
def test_the_first_completion_stops_the_simulation_in_its_window(threads: int) -> None:
    simulation = Simulation(scenario(), threads=threads)
    for number in range(3):
        simulation.send("serving", number, 7, "1 MiB", at=f"{number * 200} us")
    times = []
    while found := simulation.advance("5 ms", first=True):
        times += [message.time for message in found]
        assert simulation.now - simulation.window <= times[-1] < simulation.now
    assert len(times) == 3
    assert 5000 * US - simulation.window < simulation.now <= 5000 * US


def test_a_fork_goes_on_with_the_messages_under_way() -> None:
    simulation = Simulation(scenario())
    simulation.send("serving", 0, 7, "1 MiB")
    simulation.advance("20 us")
    fork = simulation.fork()
    assert fork.send("serving", 3, 4, 1) == simulation.send("serving", 5, 6, 1) == 1
    ends = [[(message.handle, message.source) for message in one.advance("1 ms")] for one in (simulation, fork)]
    assert ends == [[(1, 5), (0, 0)], [(1, 3), (0, 0)]]


KINDS = {"name": "stepped", "communicators": ["kv_cache", "tokens"]}


def test_a_message_has_the_class_of_its_communicator() -> None:
    """Bytes on its lane are those of the message; other messages of the job keep theirs."""
    classes = {"cache": {"communicator": "kv_*", "service_level": 1}}
    simulation = Simulation(scenario(KINDS, other=False, classes=classes, qos={"service_levels": 2}))
    size = 40_960
    for communicator in ("kv_cache", "tokens", "world", None):
        simulation.send("serving", 0, 1, size, mode="eager", communicator=communicator)
    assert len(simulation.advance("1 ms")) == 4
    packets = size // 4096
    sent = simulation.table("ports").filter(from_vertex="host 0").select("lane", "packets").sort("lane")
    assert sent.rows() == [(0, 3 * packets), (1, packets)]
    counted = simulation.table("classes").select("class", "messages", "packets").rows()
    assert counted == [(None, 3, 3 * packets), ("cache", 1, packets)]


def test_communicators_change_nothing_by_themselves_and_their_messages_do_not_match() -> None:
    plain, named = Simulation(scenario()), Simulation(scenario(KINDS))
    for simulation, communicator in ((plain, None), (named, "tokens")):
        simulation.send("serving", 2, 3, 100_000, at="10 us", communicator=communicator)
        simulation.advance("200 us")
    assert named.digest() == plain.digest()
    both = Simulation(scenario(KINDS))
    sizes = [both.send("serving", 2, 3, size, communicator=of) for of, size in (("tokens", 1 << 20), ("kv_cache", 8))]
    assert [message.handle for message in both.advance("5 ms")] == sizes[::-1], "the short one is complete first"


@pytest.mark.parametrize(
    ("workload", "words"),
    [
        ({"name": "stepped", "communicators": ["a", "a"]}, "two are called 'a'"),
        ({"name": "stepped", "communicators": ["world"]}, "'world' is that of all messages"),
    ],
)
def test_names_of_communicators_are_checked(workload: dict[str, Any], words: str) -> None:
    with pytest.raises(ScenarioError, match=words):
        scenario(workload)


def test_a_communicator_that_the_workload_lacks_is_named() -> None:
    simulation = Simulation(scenario(KINDS))
    with pytest.raises(ScenarioError, match='did you mean "kv_cache"'):
        simulation.send("serving", 0, 1, 8, communicator="kv_cach")


def test_the_workload_takes_no_parameters() -> None:
    with pytest.raises(ScenarioError, match="takes no message_size"):
        scenario({"name": "stepped", "message_size": "1 KiB"})
