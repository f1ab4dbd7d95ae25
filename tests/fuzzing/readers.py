"""What is fuzzed: for every reader real inputs, how they are damaged, and the commands that read them."""

import gzip
import io
import re
import shutil
import tarfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from fuzzing import campaigns, fabrics
from fuzzing.fabrics import DATA, ROOT, Command, written
from fuzzing.mutate import damaged
from packing import zstd
from small_study import CONTROLLED, SCENARIO, STUDY

__all__ = ["READERS", "Reader", "prepare"]

RIDGE = ("--model", "ridge", "--folds", "2", "--coverage", "0.8")

SMALL = """
name = "small"
duration = "100 us"
[fabric]
topology = "fat_tree"
hosts = 8
levels = 1
[observe]
interval = "20 us"
iterations = ["a"]
record = { job = "a", start = "30 us", stop = "60 us" }
[power]
cap = "80 W"
[[jobs]]
name = "a"
ranks = 4
service_level = 0
workload = { name = "flood_pairs", compute = "5 us", message_size = "8 KiB", jitter = 0.1 }
placement = { name = "list", hosts = "host[0-2],host3" }
[[jobs]]
name = "b"
ranks = 3
start = "10 us"
stop = 20
workload = { name = "ring", compute = "5 us" }
[background]
fill = 0.5
hosts = 1
[[background.jobs]]
workload = { name = "ring", compute = "5 us" }
"""
SWITCHES = """
duration = "50 us"
seed = 3
[fabric]
topology = "dragonfly"
groups = 4
switches_per_group = 4
hosts_per_switch = 2
bandwidth = "10 GB/s"
global_links = 3
routing = "ugal_l"
[network]
mtu = "4 KiB"
buffer = "32 KiB"
[qos]
service_levels = 2
lanes = 8
arbiter = { name = "weighted_round_robin", weights = [1, 7] }
[placement]
name = "random"
ranks_per_host = 2
[[jobs]]
ranks = 8
count = 2
workload = { name = "uniform_random", compute = "2 us" }
"""


@dataclass(frozen=True)
class Reader:
    """One kind of input."""

    name: str
    """What it is called."""
    inputs: Callable[[Path], Sequence[Path]]
    """Makes the whole inputs in a folder: files, or folders of files."""
    commands: Callable[[Path, Path, Random], Command]
    """The command that reads a damaged input; what it writes goes into the other folder."""
    text: bool = True
    """Whether files are text."""
    damages: str = "*"
    """Which files of a folder are damaged."""
    reseal: bool = False
    """Whether manifests are made to fit in half of the cases."""
    weight: int = 4
    """How often it has its turn, compared with the others."""
    files: Sequence[str] = field(default_factory=tuple)
    """Files that are beside the input, whole."""


def prepare(reader: Reader, source: Path, folder: Path, rng: Random | None) -> Path:
    """A copy of an input, damaged as the random numbers say, or without these as it is."""
    copy = folder / source.name
    if source.is_file():
        copy.write_bytes(damaged(source.read_bytes(), rng, text=reader.text) if rng else source.read_bytes())
        for name in reader.files:
            shutil.copy(source.parent / name, folder)
        return copy
    shutil.copytree(source, copy)
    if rng is None:
        return copy
    files = sorted(path for path in copy.rglob(reader.damages) if path.is_file())
    for path in rng.sample(files, min(len(files), rng.choice((1, 1, 2)))):
        if rng.random() < 0.05:
            path.unlink()
        elif path.suffix == ".parquet" and rng.random() < 0.5:
            _damage_table(path, rng)
        else:
            path.write_bytes(damaged(path.read_bytes(), rng, text=path.suffix in (".json", ".toml")))
    if reader.reseal and rng.random() < 0.7:
        _reseal(copy)
    return copy


def _reseal(folder: Path) -> None:
    from sealed import reseal

    try:
        reseal(folder)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return  # the manifest itself is damaged, or a file is gone


def _damage_table(path: Path, rng: Random) -> None:
    """Damage that Parquet itself does not notice."""
    import polars as pl

    table = pl.read_parquet(path)
    if not table.width:
        return
    name = rng.choice(table.columns)
    column, kind = pl.col(name), table.schema[name]
    number = kind.is_numeric()
    changes: list[Callable[[], pl.DataFrame]] = [
        lambda: table.drop(name),
        lambda: table.rename({name: f"{name}x"}),
        table.clear,
        lambda: table.with_columns(pl.lit(None, kind).alias(name)),
        lambda: table.with_columns(column.cast(pl.String)),
        lambda: pl.concat([table, table]),
        lambda: table.head(1),
        lambda: table.sample(fraction=1.0, shuffle=True, seed=1),
        lambda: table.with_columns((pl.lit(2**31) if number else pl.lit("x")).cast(kind, strict=False).alias(name)),
        lambda: table.with_columns((column * 0 if number else pl.lit("")).cast(kind, strict=False).alias(name)),
        lambda: table.with_columns((column * float("nan") if kind.is_float() else column).alias(name)),
    ]
    with suppress(pl.exceptions.PolarsError):  # of a kind that cannot be changed so
        rng.choice(changes)().write_parquet(path)


def _scenarios(folder: Path) -> list[Path]:
    quick = re.sub(r"compute_share = [0-9.]+", "variant = 1", (ROOT / "examples" / "quickstart.toml").read_text())
    return written(folder, small__toml=SMALL, dragonfly__toml=SWITCHES, study__toml=SCENARIO, quickstart__toml=quick)


def _look(path: Path, out: Path, rng: Random) -> Command:
    looks = (
        ["check", str(path)],
        ["check", str(path)],
        ["place", str(path)],
        ["fabric", "describe", str(path)],
        ["run", str(path), "--duration", "20 us", "--no-isolated", "--quiet", "--out", str(out / "run")],
    )
    return rng.choice(looks)


def _studies(folder: Path) -> list[Path]:
    (folder / "small.toml").write_text(SCENARIO)
    return written(
        folder,
        levels__toml=STUDY + CONTROLLED,
        designed__toml='scenario = "small.toml"\ndesign = { runs = 4, seed = 1 }\nseeds = [1, 2]\n'
        '[parameters]\n"network.buffer" = ["32 KiB", "64 KiB"]\n"jobs[0].ranks" = [2, 4]\n',
        cases__toml='scenario = "small.toml"\nplacements = ["packed", { name = "random", seed = 3 }]\n'
        '[[cases]]\nname = "a"\nset = { "jobs[0].ranks" = 2 }\n[[cases]]\nname = "b"\n',
    )


def _logs(folder: Path) -> list[Path]:
    raw = gzip.decompress((DATA / "jobs" / "nasa-ipsc-1993-first-400.swf.gz").read_bytes()).splitlines(keepends=True)
    (folder / "log.swf").write_bytes(b"".join(raw[:150]))
    return [folder / "log.swf"]


def _packed_logs(folder: Path) -> list[Path]:
    (path,) = _logs(folder)
    packed = folder / "log.swf.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    return [packed]


def _archives(folder: Path) -> list[Path]:

    made = []
    for name in ("testtrace-4.dumpi", "stencil4d-32.otf2"):
        path = folder / f"{name}.tar.zst"
        with (
            zstd.open(path, "wb") as plain,
            tarfile.open(fileobj=plain, mode="w|") as tar,
        ):
            tar.add(DATA / "traces" / name, name)
        made.append(path)
    return [*made, Path(shutil.copy(DATA / "traces" / "npb_ft-64.tar.zst", folder))]


def _tars(folder: Path) -> list[Path]:
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as tar:
        tar.add(DATA / "traces" / "testtrace-4.dumpi", "t")
    (folder / "trace.tar").write_bytes(plain.getvalue())
    return [folder / "trace.tar"]


def _pack(path: Path, out: Path, _rng: Random) -> Command:

    packed = out / "trace.tar.zst"
    with zstd.open(packed, "wb") as stream:
        stream.write(path.read_bytes())
    return ["trace", "describe", str(packed)]


def _trace(path: Path, _out: Path, rng: Random) -> Command:
    return rng.choice(
        (["trace", "describe", str(path)], ["trace", "describe", str(path)], ["trace", "pattern", str(path)])
    )


def _runs(folder: Path) -> list[Path]:
    from fairlane.cli.main import execute

    (folder / "small.toml").write_text(SMALL)
    assert execute(["run", str(folder / "small.toml"), "--out", str(folder / "run"), "--quiet"]) == 0
    for path in (folder / "run").glob("*.png"):
        path.unlink()
    return [folder / "run"]


def _ask(path: Path, out: Path, rng: Random) -> Command:
    return rng.choice(
        (
            ["query", str(path), "select * from jobs"],
            ["query", str(path), "select count(*) from ports join ranks on true"],
            ["plot", str(path)],
            ["analyze", str(path), "--job", "a", "--quiet", "--out", str(out)],
        )
    )


def _stored_studies(folder: Path) -> list[Path]:
    from fairlane.cli.main import execute

    (folder / "small.toml").write_text(SCENARIO)
    (folder / "levels.toml").write_text(STUDY.replace("[1, 2]", "[1]").replace("placements = 2\n", ""))
    command = ["study", str(folder / "levels.toml"), "--out", str(folder / "out"), "--workers", "1", "--quiet"]
    assert execute(command) == 0
    for path in (folder / "out").glob("*.png"):
        path.unlink()
    return [folder / "out"]


def _ask_study(path: Path, _out: Path, rng: Random) -> Command:
    return rng.choice((["query", str(path), "select * from work"], ["plot", str(path)]))


def _models(folder: Path) -> list[Path]:
    from fairlane.learn.scheduler.slowdown.model import load_model

    load_model("torus-128").save(folder / "model.toml")
    return [folder / "model.toml"]


def _predictors(folder: Path) -> list[Path]:
    import numpy
    import polars as pl

    from fairlane.cli.main import execute

    rng = numpy.random.default_rng(1)
    rows = 48
    frame = pl.DataFrame({"run": numpy.arange(rows) // 6, "timestep": numpy.arange(rows) % 6})
    counters = {f"flits_sum_vc{lane}": rng.uniform(1, 9, rows) for lane in range(3)}
    table = frame.with_columns(**counters, seconds=pl.Series(rng.uniform(1, 2, rows)))
    table.write_csv(folder / "runs.csv")
    table.write_parquet(folder / "runs.parquet")
    command = ["predict", "fit", str(folder / "runs.csv"), "--out", str(folder / "model.json"), *RIDGE]
    assert execute(command) == 0
    return [folder / "model.json"]


def _counters(folder: Path) -> list[Path]:
    _predictors(folder)
    return [folder / "runs.csv", folder / "runs.parquet"]


def _mixes(folder: Path) -> list[Path]:
    _logs(folder)
    return [Path(shutil.copy(ROOT / "examples" / "schedules" / "pattern-mix.toml", folder))]


def _with_mix(path: Path, out: Path, rng: Random) -> Command:
    return [*_schedule(path.with_name("log.swf"), out, rng), "--mix", str(path)]


def _resume(path: Path, _out: Path, _rng: Random) -> Command:
    return ["RESUME", str(path)]


def _plan(path: Path, _out: Path, _rng: Random) -> Command:
    return ["PLAN", str(path)]


def _show(path: Path, _out: Path, _rng: Random) -> Command:
    return ["slowdown", "show", str(path)]


def _apply(path: Path, out: Path, _rng: Random) -> Command:
    return ["predict", "apply", str(path), str(path.with_name("runs.csv")), "--out", str(out / "predicted.csv")]


def _fit(path: Path, out: Path, _rng: Random) -> Command:
    return ["predict", "fit", str(path), "--out", str(out / "model.json"), *RIDGE]


def _schedule(path: Path, _out: Path, _rng: Random) -> Command:
    return ["schedule", str(path), "--set", "sides=[4,4,8]", "--allocator", "linear", "--jobs", "60"]


def _recorded(name: str) -> Callable[[Path], Sequence[Path]]:
    return lambda _folder: [DATA / "traces" / name]


def _flows(folder: Path) -> list[Path]:
    (folder / "flows.cm").write_text(
        "Nodes 4\nConnections 3\nTriggers 1\n0->1 id 1 start 0 size 2000000 send_done_trigger 7\n"
        "2->1 id 2 start 5000000 size 2000000\n0->3 id 3 trigger 7 size 9\ntrigger id 7 oneshot\n"
    )
    (folder / "flows.txt").write_text("2\n0 1 3 100 2000000 0\n2 1 3 100 2000000 0.000005\n")
    return [folder / "flows.cm", folder / "flows.txt"]


def _chakra(_folder: Path) -> list[Path]:
    from fairlane.model.workload.trace import unpack

    return [unpack(DATA / "traces" / f"chakra_{name}.tar.zst") for name in ("allreduce-8", "ring-8")]


READERS: Sequence[Reader] = (
    Reader("scenario", _scenarios, _look, weight=8),
    Reader("study", _studies, _plan, files=["small.toml"]),
    Reader("fabric", fabrics.fabrics, fabrics.import_fabric),
    Reader("opensm options", fabrics.options, fabrics.import_qos, weight=2),
    Reader("qos policy", fabrics.policies, fabrics.import_policy, files=["opensm.conf"], weight=2),
    Reader("port counters", fabrics.port_counters, fabrics.import_counters, weight=2),
    Reader("forwarding tables", fabrics.tables, fabrics.import_tables, files=["x5.ibnetdiscover"], weight=2),
    Reader("imported", fabrics.imported, fabrics.check_imported, files=["imported.toml"]),
    Reader("log", _logs, _schedule),
    Reader("packed log", _packed_logs, _schedule, text=False),
    Reader("mix", _mixes, _with_mix, files=["log.swf"], weight=2),
    Reader("dumpi", _recorded("testtrace-4.dumpi"), _trace, text=False),
    Reader("otf2", _recorded("stencil4d-32.otf2"), _trace, text=False),
    Reader("goal", _recorded("binary_tree-32.goal"), _trace),
    Reader("flows", _flows, _trace, weight=2),
    Reader("chakra", _chakra, _trace, text=False, damages="*.et"),
    Reader("archive", _archives, _trace, text=False),
    Reader("tar", _tars, _pack, text=False),
    Reader("run", _runs, _ask, reseal=True, text=False, weight=6),
    Reader("stored study", _stored_studies, _ask_study, reseal=True, text=False, damages="*.*"),
    Reader("answers", _stored_studies, _resume, text=False, damages="*.json", weight=2),
    Reader("slowdown model", _models, _show, weight=2),
    Reader("predictor", _predictors, _apply, files=["runs.csv"], weight=2),
    Reader("counters", _counters, _fit, weight=2),
    Reader("job lists", fabrics.job_lists, fabrics.first_scenario, files=["x5.ibnetdiscover"], weight=2),
    Reader("campaign", campaigns.campaigns, campaigns.script, weight=2),
    Reader("campaign results", campaigns.results, campaigns.read, weight=2),
    Reader("allocations", fabrics.allocations, fabrics.advise_on, files=["nodes.csv"], weight=2),
    Reader("node map", fabrics.node_maps, fabrics.advise_on, files=["allocations.csv"], weight=2),
    Reader("host lists", fabrics.host_lists, fabrics.place_on, weight=2),
)
