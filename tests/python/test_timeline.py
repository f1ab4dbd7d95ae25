"""Timelines of a run for trace viewers, checked with the viewers' own readers."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import polars as pl
import pytest

import fairlane
from fairlane import Scenario
from fairlane.cli.main import execute
from fairlane.lab.timeline.build import Timelines, timelines
from fairlane.lab.timeline.otf2_archive import bytes_of, folder_of, write_otf2
from fairlane.lab.timeline.perfetto import write_perfetto
from fairlane.lab.timeline.recorded import mpi_name
from fairlane.results.manifest import MANIFEST
from fairlane.results.run import Run
from possible import no_browser, no_otf2_print
from trace_processor import Session, loaded

SCENARIO = """
name = "ended"
duration = "20 ms"
seed = 3
[fabric]
topology = "fat_tree"
hosts = 16
radix = 8
bandwidth = "3.2 GB/s"
[placement]
name = "random"
[observe]
interval = "100 us"
[[jobs]]
name = "flood"
ranks = 8
stop = 3
workload = { name = "flood_pairs", compute = "20 us" }
[[jobs]]
name = "milc"
ranks = 8
stop = 1
workload = { name = "milc", compute = "20 us" }
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("timeline")
    (path / "scenario.toml").write_text(SCENARIO)
    fairlane.run(Scenario.load(path / "scenario.toml"), out=path / "run", isolated=False)
    return path / "run"


@pytest.fixture(scope="module")
def found(folder: Path) -> Timelines:
    return timelines(folder)


@pytest.fixture(scope="module")
def run(folder: Path) -> Run:
    loaded = fairlane.load(folder)
    assert isinstance(loaded, Run)
    return loaded


@pytest.fixture(scope="module")
def trace(found: Timelines, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("perfetto") / "run.pftrace"
    write_perfetto(found, path)
    return path


@pytest.fixture(scope="module")
def session(trace: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with loaded(trace, tmp_path_factory.mktemp("downloads")) as found:
        yield found


@pytest.fixture(scope="module")
def archives(found: Timelines, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("otf2") / "archives"
    written = write_otf2(found, path)
    assert written.notes == ()
    return path


def spent(table: pl.DataFrame) -> pl.DataFrame:
    return table.group_by("job", "call").agg(
        pl.len().cast(pl.Int64).alias("count"), (pl.col("end_ps") - pl.col("since_ps")).sum().alias("time_ps")
    )


def test_operations_add_up_to_the_tables_of_the_run(found: Timelines, run: Run) -> None:
    operations = found.operations.filter(pl.col("call") != "mark")
    calls = spent(operations.filter(pl.col("call") != "compute")).sort("job", "call")
    expected = run.calls.select("job", "call", pl.col("count", "time_ps").cast(pl.Int64)).sort("job", "call")
    assert calls.equals(expected)
    compute = spent(operations.filter(pl.col("call") == "compute"))["time_ps"].sum()
    assert compute == run.ranks["compute_ps"].sum()
    one_at_a_time = pl.col("since_ps") >= pl.col("end_ps").shift(1).over("job", "rank")
    assert operations.sort("job", "rank", "number").select(one_at_a_time.all()).item()


def test_waits_add_up_to_the_tables_of_the_run(found: Timelines, run: Run) -> None:
    middle = pl.col("partner_at_ps").clip(pl.col("since_ps"), pl.col("end_ps"))
    parts = found.waits.select(late=(middle - pl.col("since_ps")).sum(), network=(pl.col("end_ps") - middle).sum())
    assert parts.row(0) == (run.ranks["late_partner_ps"].sum(), run.ranks["network_ps"].sum())
    inside = found.waits.join(found.operations, on=["job", "rank", "number"], suffix="_call")
    assert inside.height == found.waits.height
    assert (inside["call"] == inside["call_call"]).all()
    assert ((inside["since_ps"] >= inside["since_ps_call"]) & (inside["end_ps"] <= inside["end_ps_call"])).all()


def test_queueing_delay_of_messages_is_the_interference_matrix(found: Timelines, run: Run) -> None:
    victims = dict(found.messages.select("message", "job").iter_rows())
    cells: dict[tuple[str, str], int] = {}
    for message, sums in found.causes.items():
        for aggressor, delay in sums:
            assert aggressor is not None, "the range is the whole run"
            key = found.names[victims[message]], found.names[aggressor]
            cells[key] = cells.get(key, 0) + delay
    matrix = run.interference.filter(pl.col("queueing_ps") > 0).select("victim", "aggressor", "queueing_ps")
    assert cells == {(victim, aggressor): delay for victim, aggressor, delay in matrix.iter_rows()}


def test_every_message_has_its_sender_and_receiver(found: Timelines) -> None:
    own = found.messages.filter(~pl.col("collective"))
    assert own["send_operation"].null_count() == 0
    assert found.messages["receive_operation"].null_count() == 0
    sends = own.join(
        found.operations, left_on=["job", "from_rank", "send_operation"], right_on=["job", "rank", "number"]
    )
    assert (sends["bytes"] == sends["bytes_right"]).all()
    assert (sends["to_rank"] == sends["peer"]).all()
    assert (sends["sent_at_ps"] == sends["since_ps"]).all()
    received = own.join(
        found.operations, left_on=["job", "to_rank", "receive_operation"], right_on=["job", "rank", "number"]
    )
    assert received["call"].is_in(["wait", "wait_all", "recv"]).all()
    assert (received["received_at_ps"] <= received["end_ps"]).all()


@pytest.mark.live("lab/timeline", absent=no_browser)
def test_perfetto_counts_what_the_run_has(session: Session, found: Timelines, run: Run) -> None:
    assert session.query("select name from stats where severity in ('error', 'data_loss') and value > 0") == []
    counts = dict(session.query("select name, count(*) as n from slice group by name"))
    calls = run.calls.with_columns(mpi=pl.col("call").replace_strict({c: mpi_name(c) for c in run.calls["call"]}))
    for name, count in calls.group_by("mpi").agg(pl.col("count").sum()).iter_rows():
        assert counts[name] == count
    assert counts["receive"] == found.messages.height == run.ranks["messages_sent"].sum()
    assert counts["send"] == found.messages["collective"].sum()
    threads = session.query(
        "select p.name as job, t.name as rank from thread t join process p using (upid) "
        "where t.tid != p.pid order by utid"
    )
    assert len(threads) == 16
    hosts = run.ranks.filter(name="milc")["host_name"].to_list()
    assert ("milc", f"rank 3 on {hosts[3]}") in threads
    rounding = counts["compute"]
    ((compute,),) = session.query("select sum(dur) as d from slice where name = 'compute'")
    assert abs(compute - run.ranks["compute_ps"].sum() / 1000) < rounding
    assert session.query("select count(*) as n from slice where dur < 0") == [(0,)]


@pytest.mark.live("lab/timeline", absent=no_browser)
def test_perfetto_has_the_waits_and_the_jobs_that_caused_them(session: Session, run: Run) -> None:
    parts = "select sum(extract_arg(arg_set_id, 'debug.{0}_ps')) as ps from slice"
    late, network = (session.query(parts.format(part))[0][0] for part in ("late", "network"))
    assert (late, network) == (run.ranks["late_partner_ps"].sum(), run.ranks["network_ps"].sum())
    matrix = session.query(
        "select p.name as victim, substr(a.key, 19) as aggressor, sum(a.int_value) as ps from slice s "
        "join args a using (arg_set_id) join thread_track k on k.id = s.track_id join thread using (utid) "
        "join process p using (upid) where a.key glob 'debug.queueing_ps.*' group by 1, 2 order by 1, 2"
    )
    own = run.interference.filter(pl.col("queueing_ps") > 0).sort("victim", "aggressor")
    assert matrix == list(own.select("victim", "aggressor", "queueing_ps").iter_rows())
    causes = session.query(
        "select distinct s.name as name, extract_arg(s.arg_set_id, 'debug.cause') as cause, p.name as job from slice s "
        "join thread_track k on k.id = s.track_id join thread using (utid) join process p using (upid) "
        "where s.name glob 'network*'"
    )
    assert {cause for _, cause, _ in causes} >= {"flood", "milc"}
    for name, cause, job in causes:
        expected = "network" if cause is None else f"network: {'itself' if cause == job else cause}"
        assert name == expected


@pytest.mark.live("lab/timeline", absent=no_browser)
def test_perfetto_joins_sends_and_receives(session: Session, found: Timelines) -> None:
    flows = session.query(
        "select extract_arg(a.arg_set_id, 'debug.message') as sent, extract_arg(b.arg_set_id, 'debug.message') as got, "
        "a.name as sender, b.name as receiver, x.tid as from_tid, y.tid as to_tid "
        "from flow f join slice a on a.id = f.slice_out join slice b on b.id = f.slice_in "
        "join thread_track k on k.id = a.track_id join thread x using (utid) "
        "join thread_track l on l.id = b.track_id join thread y on y.utid = l.utid"
    )
    assert len(flows) == found.messages.height
    assert {(sender, receiver) for _, _, sender, receiver, _, _ in flows} == {
        ("MPI_Isend", "receive"),
        ("send", "receive"),
    }
    first = (2, 11)  # the threads of the first rank of each job
    ends = {row[0]: row[1:] for row in found.messages.select("message", "job", "from_rank", "to_rank").iter_rows()}
    for sent, got, _, _, from_tid, to_tid in flows:
        job, sender, receiver = ends[sent]
        assert (got, from_tid, to_tid) == (sent, first[job] + sender, first[job] + receiver)


@pytest.mark.live("lab/timeline", absent=no_browser)
def test_perfetto_has_the_samples_of_ports(session: Session, run: Run) -> None:
    assert run.samples is not None
    rows = session.query(
        "select replace(t.name, ': utilisation', '') as port, c.ts as ts, c.value as value from counter c "
        "join counter_track t on c.track_id = t.id where t.name glob '*: utilisation' and c.value > 0"
    )
    values = {(port, ts): value for port, ts, value in rows}
    samples = run.samples.group_by("link_name", "from_ps").agg(pl.col("port_active_share").first())
    active = samples.filter(pl.col("port_active_share") > 0)
    expected = {(name, at // 1000): 100 * share for name, at, share in active.iter_rows()}
    assert values.keys() == expected.keys()
    assert all(value == pytest.approx(expected[key]) for key, value in values.items())


@pytest.mark.parametrize("name", ["a/b", "..", ".", "../a", "a b"])
def test_a_job_has_one_folder_within_that_of_all(name: str, tmp_path: Path) -> None:
    assert (tmp_path / folder_of(name)).resolve().parent == tmp_path.resolve()
    assert unquote(folder_of(name)) == name


def test_the_same_run_gives_the_same_bytes(found: Timelines, trace: Path, archives: Path, tmp_path: Path) -> None:
    write_perfetto(found, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == trace.read_bytes()
    write_otf2(found, tmp_path / "otf2")
    files = [path.relative_to(archives) for path in sorted(archives.rglob("*")) if path.is_file()]
    assert len(files) == 2 * (2 + 8 * 2)
    assert all((tmp_path / "otf2" / file).read_bytes() == (archives / file).read_bytes() for file in files)


def test_otf2_has_the_events(archives: Path, found: Timelines, run: Run) -> None:
    otf2 = pytest.importorskip("otf2")
    with otf2.reader.open(str(archives / "flood" / "traces.otf2")) as archive:
        assert archive.definitions.clock_properties.timer_resolution == 10**12
        events = [(location.group.name, event) for location, event in archive.events]
        names = {region.name for region in archive.definitions.regions}
    assert {"MPI_Isend", "MPI_Irecv", "MPI_Waitall", "iteration"} <= names
    sends = [event for _, event in events if isinstance(event, otf2.events.MpiIsend)]
    own = found.messages.filter(job=0)
    assert sum(event.msg_length for event in sends) == own["bytes"].sum() == run.ranks.filter(job=0)["bytes_sent"].sum()
    assert sorted(event.time for event in sends) == own["sent_at_ps"].sort().to_list()
    entered: dict[str, int] = {}
    waited = 0
    for rank, event in events:
        if isinstance(event, otf2.events.Enter):
            entered[rank] = event.time
        elif isinstance(event, otf2.events.Leave) and event.region.name == "MPI_Waitall":
            waited += event.time - entered[rank]
    assert waited == run.calls.filter(job=0, call="wait_all")["time_ps"].item()


@pytest.mark.live("lab/timeline", absent=no_otf2_print)
def test_otf2_print_reads_archives(archives: Path) -> None:
    for job in ("flood", "milc"):
        done = subprocess.run(
            ["otf2-print", archives / job / "traces.otf2"], capture_output=True, text=True, check=True
        )
        assert done.stdout.count("MPI_ISEND ") == done.stdout.count("MPI_IRECV ") > 0
        assert "ERROR" not in done.stderr


@pytest.mark.parametrize("job", ["flood", "milc"])
def test_an_archive_replays_with_the_same_messages(job: str, archives: Path, found: Timelines, tmp_path: Path) -> None:
    text = SCENARIO.partition("[[jobs]]")[0]
    path = archives / job / "traces.otf2"
    text += f'[[jobs]]\nname = "replay"\ntrace = {{ path = "{path}", repeat = false }}\n'
    text = text.replace('interval = "100 us"', 'record = { job = "replay" }')
    (tmp_path / "replay.toml").write_text(text)
    replayed = fairlane.run(Scenario.load(tmp_path / "replay.toml"), isolated=False)
    assert replayed.ranks["finished"].all()
    assert replayed.messages is not None
    keys = ["from_rank", "to_rank", "bytes", "tag", "collective", "eager"]
    number = found.names.index(job)
    before = found.messages.filter(job=number).select(keys).cast({"bytes": pl.UInt64}).sort(keys)
    assert replayed.messages.select(keys).sort(keys).equals(before)
    own = found.operations.filter(pl.col("job") == number, pl.col("call") == "compute")
    compute = (own["end_ps"] - own["since_ps"]).sum()
    assert replayed.ranks["compute_ps"].sum() == compute


ALONE = """
from fairlane.model.workload import Workload


class Alone(Workload):
    def communicate(self, rank, iteration):
        half = 2
        rank.comm_split(half, rank.index // 4)
        rank.collective("allreduce", 64, comm=1)
        rank.collective("allreduce", 512, comm=half)
        rank.comm_free(half)
"""


def test_an_archive_has_the_communicator_that_a_rank_has_for_itself(tmp_path: Path) -> None:
    otf2 = pytest.importorskip("otf2")
    (tmp_path / "own.py").write_text(ALONE)
    text = SCENARIO.partition("[[jobs]]")[0]
    text += '[[jobs]]\nname = "alone"\nranks = 8\nstop = 2\nworkload = { name = "own.py:Alone", compute = "20 us" }\n'
    (tmp_path / "scenario.toml").write_text(text)
    with fairlane.allow_code():
        fairlane.run(Scenario.load(tmp_path / "scenario.toml"), out=tmp_path / "run", isolated=False)
        written = write_otf2(timelines(tmp_path / "run", files=tmp_path, allow_code=True), tmp_path / "otf2")
    with otf2.reader.open(str(written.archives["alone"])) as archive:
        calls = [event for _, event in archive.events if isinstance(event, otf2.events.MpiCollectiveEnd)]
    alone = [call for call in calls if call.communicator.group.group_type == otf2.GroupType.COMM_SELF]
    assert len(alone) == 2 * 8
    assert {(call.collective_op, call.size_sent) for call in alone} == {(otf2.CollectiveOp.ALLREDUCE, 64)}
    halves = [call for call in calls if len(call.communicator.group.members) == 4]
    assert sum(call.collective_op == otf2.CollectiveOp.ALLREDUCE for call in halves) == 2 * 8
    (tmp_path / "replay.toml").write_text(
        text.partition("[[jobs]]")[0]
        + f'[[jobs]]\nname = "replay"\ntrace = {{ path = "{written.archives["alone"]}", repeat = false }}\n'
    )
    assert fairlane.run(Scenario.load(tmp_path / "replay.toml"), isolated=False).ranks["finished"].all()


def test_a_time_range_is_part_of_the_whole(folder: Path, found: Timelines, tmp_path: Path) -> None:
    part = timelines(folder, jobs=["milc"], ranks=range(2, 4), from_ps=200_000_000, to_ps=400_000_000)
    assert part.jobs == (1,)
    assert part.ranks_of(1) == range(2, 4)
    whole = found.operations.filter(
        pl.col("job") == 1, pl.col("since_ps") < 400_000_000, pl.col("end_ps") >= 200_000_000
    )
    assert part.operations.select("rank", "number", "call").equals(whole.select("rank", "number", "call"))
    assert part.operations["since_ps"].min() == 200_000_000
    assert part.operations["end_ps"].max() == 400_000_000
    assert write_perfetto(part, tmp_path / "part") < part.size + 100_000
    assert part.size < found.size


def test_what_was_recorded_is_kept(folder: Path, found: Timelines) -> None:
    kept = folder / "analysis" / f"timeline-all-0-{found.to_ps}"
    assert (kept / MANIFEST).is_file()
    stamp = (kept / MANIFEST).stat().st_mtime_ns
    assert timelines(folder).operations.equals(found.operations)
    assert (kept / MANIFEST).stat().st_mtime_ns == stamp


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "export: needs --perfetto or --otf2"),
        (["--perfetto", "a", "--job", "flod"], 'did you mean "flood"'),
        (["--perfetto", "a", "--ranks", "8"], "--ranks = 8: no such rank; allowed: 0 to 7"),
        (["--perfetto", "a", "--ranks", "x"], '--ranks = "x": no range of ranks'),
        (["--perfetto", "a", "--ranks", "3..2"], "the last is less than the first"),
        (["--otf2", "a", "--ranks", "1"], "not with --otf2: an archive has every rank of a job"),
        (["--perfetto", "a", "--from", "1 s"], '--from = "1 s": not within the run'),
        (["--perfetto", "a", "--from", "1 ms", "--to", "1 us"], '--to = "1 us": not after --from'),
        (["--perfetto", "a", "--from", "soon"], "--from"),
        (
            ["--perfetto", "a", "--max-events", "10"],
            "choose jobs (--job), ranks (--ranks) or a time range (--from, --to)",
        ),
    ],
)
def test_wrong_options_are_refused(
    options: list[str],
    words: str,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert execute(["export", str(folder), "--quiet", *options]) == 2
    assert words in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_the_command_writes_both(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, archive = tmp_path / "new" / "run.pftrace", tmp_path / "otf2"
    options = ["--perfetto", str(file), "--otf2", str(archive), "--job", "flood", "--json"]
    assert execute(["export", str(folder), *options]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["otf2"]["archives"] == {"flood": str(archive / "flood" / "traces.otf2")}
    assert said["perfetto"]["events"] > 1000
    assert execute(["export", str(folder), *options]) == 2
    assert "--otf2" in capsys.readouterr().err


def test_a_run_that_has_changed_is_refused(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "run"
    shutil.copytree(folder, other, ignore=shutil.ignore_patterns("analysis"))
    (other / "scenario.toml").unlink()
    with pytest.raises(fairlane.FairlaneError, match=r"scenario\.toml"):
        timelines(other)


def test_calls_have_the_names_of_mpi() -> None:
    names = {"isend": "MPI_Isend", "wait_all": "MPI_Waitall", "allreduce": "MPI_Allreduce", "ibarrier": "MPI_Ibarrier"}
    assert {call: mpi_name(call) for call in names} == names
    assert (mpi_name("alltoall", 8), mpi_name("iallgather", 2)) == ("MPI_Alltoallv", "MPI_Iallgatherv")
    assert (mpi_name("reduce_scatter"), mpi_name("reduce_scatter", 4)) == (
        "MPI_Reduce_scatter_block",
        "MPI_Reduce_scatter",
    )


def test_bytes_of_collectives_are_those_that_the_reader_takes_apart() -> None:
    assert bytes_of("bcast", 16, 0, 4, 1, False) == (0, 16)
    assert bytes_of("alltoall", 16, 0, 4, 1, False) == (64, 64)
    assert bytes_of("gather", 16, 0, 4, 0, True) == (16, 64)
    assert bytes_of("allgather", 11, 4, 4, 3, False) == (2, 11)
    assert bytes_of("scatter", 10, 4, 4, 0, True) == (10, 3)
