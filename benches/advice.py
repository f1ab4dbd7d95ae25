"""How good is advice? A model is fitted to some applications, and asked about others, beside other neighbours.

    python benches/advice.py learn runs/advice     simulates what the model learns from, and fits it
    python benches/advice.py check runs/advice     asks the model and short simulations, and simulates all alternatives

`check` takes names of cases, too, to do only these.

All cases are `examples/advice.toml` with other jobs, caps and weights. No application, neighbour, cap or weight of the
cases that are checked is among those that the model learns from, except LU, with another problem and beside another
neighbour; CoMD and FT are recordings, and their workloads have been learned from.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import process_time

import polars as pl

from fairlane.learn.advice import Advice, advise
from fairlane.learn.advice.model import learn, read_runs
from fairlane.study.shipped.advice import Check

HOME = Path(__file__).parent.parent
SCENARIO = HOME / "examples" / "advice.toml"
TRACES = HOME / "tests" / "data" / "traces"

LEARNED: Mapping[str, str] = {
    "lu": 'side = 3, planes = 24, compute = "40 us"',
    "ft": 'points = 2048, compute = "30 us"',
    "mg": 'points = 8, compute = "20 us"',
    "kripke": 'group_sets = 1, compute = "20 us"',
    "comd": 'compute = "60 us"',
    "allreduce": 'compute = "10 us"',
    "ring": 'messages_per_iteration = 1, compute = "20 us"',
    "all_to_all": 'message_size = "4 KiB", messages_per_iteration = 1, compute = "50 us"',
    "random_pairs": 'messages_per_iteration = 1, compute = "30 us"',
    "shift": 'messages_per_iteration = 1, compute = "30 us"',
    "uniform_random": 'compute = "20 us"',
    "flood_pairs": 'messages_per_iteration = 1, compute = "30 us"',
}
"""Applications that the model learns from."""
EVERYWHERE = 'workload = { name = "all_to_all", messages_per_iteration = 1, compute = 0 }, ranks = 80'
SOMETIMES = 'workload = { name = "all_to_all", message_size = "8 KiB", compute = "50 us" }, ranks = 80'
PAIRS = 'workload = { name = "random_pairs", messages_per_iteration = 2, compute = "20 us" }, ranks = 80'
SURROUNDINGS: Sequence[tuple[int, str, str]] = (
    (65, "[4, 1]", f'{EVERYWHERE}, rails = "round_robin", service_level = 0'),
    (115, "[8, 1]", f"{SOMETIMES}, rails = {{ only = 0 }}, service_level = 1"),
    (80, "[2, 1]", f'{PAIRS}, rails = "by_source", service_level = 0'),
)
"""Cap, weights of the lanes and neighbour that it learns them beside."""


@dataclass(frozen=True)
class Case:
    """A case that advice is checked on."""

    name: str
    job: str
    cap: int
    weights: str
    neighbour: str
    length: str = "1 ms"
    long: str = "4 ms"


HALO = 'workload = { name = "nearest_neighbor", message_size = "16 KiB", compute = "20 us" }, ranks = 80'
SHORT = 'workload = { name = "all_to_all", message_size = "2 KiB", compute = 0 }, ranks = 80'
STEADY = 'workload = { name = "incast", compute = "10 us" }, ranks = 80'


def trace(name: str, rest: str) -> str:
    """A recorded application."""
    return f'trace = {{ path = "{TRACES / name}", compute_scale = 0.1{rest} }}'


EACH = ', iteration = { collective = "allreduce" }'
CASES: Sequence[Case] = (
    Case(
        "halo3d",
        'ranks = 32, workload = { name = "halo3d", message_size = "8 KiB", compute = "50 us" }',
        70,
        "[6, 1]",
        f'{HALO}, rails = "round_robin", service_level = 1',
    ),
    Case(
        "sweep3d",
        'ranks = 32, workload = { name = "sweep3d", sweeps = 4, blocks = 2, message_size = "8 KiB", '
        'message_size_across = "4 KiB", compute = "30 us" }',
        90,
        "[3, 1]",
        f'{SHORT}, rails = "round_robin", service_level = 0',
        "2 ms",
    ),
    Case(
        "nearest_neighbor",
        'ranks = 32, workload = { name = "nearest_neighbor", messages_per_iteration = 1, compute = "30 us" }',
        105,
        "[5, 1]",
        f"{SHORT}, rails = {{ only = 1 }}, service_level = 0",
        "2 ms",
    ),
    Case(
        "pf3d",
        'ranks = 32, workload = { name = "pf3d", message_size = "8 KiB", messages_per_iteration = 1, '
        'compute = "60 us" }',
        75,
        "[6, 1]",
        f'{HALO}, rails = "by_source", service_level = 0',
        "2 ms",
    ),
    Case(
        "CoMD, trace",
        trace("comd-64.tar.zst", EACH),
        100,
        "[5, 1]",
        f'{HALO}, rails = "round_robin", service_level = 0',
        "4 ms",
        "6 ms",
    ),
    Case(
        "FT, trace",
        trace("npb_ft-64.tar.zst", ', iteration = { collective = "alltoall" }'),
        85,
        "[6, 1]",
        f'{STEADY}, rails = "round_robin", service_level = 1',
        "2 ms",
        "4 ms",
    ),
    Case(
        "lu",
        'ranks = 32, workload = { name = "lu", side = 4, planes = 16, compute = "60 us" }',
        95,
        "[3, 1]",
        f'{HALO}, rails = "round_robin", service_level = 0',
        "2 ms",
    ),
)


def changes(name: str, job: str, weights: str, neighbour: str) -> list[str]:
    """A case as changes of the scenario."""
    return [
        f'name="{name}"',
        f"qos.arbiter.weights={weights}",
        f'jobs[0]={{ name = "application", ranks_per_host = 4, {job} }}',
        f'jobs[1]={{ name = "neighbour", ranks_per_host = 4, {neighbour} }}',
    ]


def learned(folder: Path, _names: Sequence[str]) -> None:
    """Simulates every application in all surroundings, once each, and fits the model."""
    tables = []
    for application, parameters in LEARNED.items():
        for number, (cap, weights, neighbour) in enumerate(SURROUNDINGS):
            job = f'ranks = 32, workload = {{ name = "{application}", {parameters} }}'
            out = folder / f"{application}-{number}"
            if not (out / "runs.parquet").is_file():
                changed = changes(f"surroundings-{number}", job, weights, neighbour)
                advise(
                    SCENARIO,
                    cap=f"{cap} W",
                    length="3 ms",
                    seeds=1,
                    out=out,
                    assignments=changed,
                    workers=1,
                    progress=False,
                )
            tables.append(out / "runs.parquet")
    runs = read_runs(tables)
    runs.with_columns(pl.col(pl.Float64).round_sig_figs(6)).write_csv(folder / "runs.csv")
    learn(read_runs([folder / "runs.csv"])).save(folder / "model.json")


def checked(folder: Path, names: Sequence[str]) -> None:
    """Prints a row for each case: what was advised, what would have been best, and what the advice loses."""
    print("| case | by the model | regret | by short simulations | regret | the best | random alternative |")
    print("|---|---|---|---|---|---|---|")
    for case in (one for one in CASES if not names or one.name in names):
        begun = process_time()
        changed = changes(case.name, case.job, case.weights, case.neighbour)
        out = folder / "checked" / case.name.replace(", ", "-")
        short = _advised(case, changed, out / "short", check=case.long, seeds=2)
        model = _advised(case, changed, out / "model", model=folder / "model.json", seeds=1)
        assert short.checked is not None, "it was asked for"
        truth = short.checked
        other = Check.of(model.alternatives, truth.table, truth.runs, case.long, 2)
        row = [case.name, words(model.alternatives), f"{other.regret:.1%} ({other.rank})", words(short.alternatives)]
        row += [f"{truth.regret:.1%} ({truth.rank})", words(truth.table), f"{truth.random_regret:.1%}"]
        row += [f"{other.coverage:.0%}", f"{truth.coverage:.0%}", f"{process_time() - begun:.1f}"]
        print("| " + " | ".join(row) + " |", flush=True)


def _advised(case: Case, changed: list[str], out: Path, *, seeds: int, **more: object) -> Advice:
    return advise(
        SCENARIO,
        cap=f"{case.cap} W",
        length=case.length,
        seeds=seeds,
        out=out,
        assignments=changed,
        workers=1,
        progress=False,
        **more,  # type: ignore[arg-type]
    )


def words(table: pl.DataFrame) -> str:
    """The first alternative of a table."""
    rails, level, placement = table.row(0)[:3]
    return f"{rails}, level {level}, {placement}"


if __name__ == "__main__":
    what, folder, *names = sys.argv[1:]
    {"learn": learned, "check": checked}[what](Path(folder), names)
