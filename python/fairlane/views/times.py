"""Where the time of simulations went: lines for a terminal."""

from collections.abc import Iterator, Mapping

from fairlane.results.run import Run
from fairlane.views.tables import Faint
from fairlane.wording import percent, plural, seconds, wall_time

_PROFILE = {
    "simulating": "workers in simulations",
    "set-up": "workers building scenarios and finding compute times",
    "waiting": "workers starting, without a task, or with their answer on its way",
    "planning": "this process reading the study and trying every scenario, before workers start",
    "writing": "this process storing answers and tables",
}
_OF_WORKERS = ("simulating", "set-up", "waiting")


def of_run(run: Run) -> Iterator[str]:
    """Where the wall time of a run went, and the engine's speed in the co-run."""
    spent = run.meta.timings
    if spent is None:
        return
    parts = {"set-up": spent.set_up_s, "calibration": spent.calibration_s, "simulation": spent.simulation_s}
    more = {"tables": spent.writing_s, "figures": spent.figures_s}
    known = parts | {name: value for name, value in more.items() if value is not None}
    each = ", ".join(f"{name} {wall_time(value)}" for name, value in known.items())
    yield Faint(f"Wall time {wall_time(sum(known.values()))}: {each}")
    if spent.engine_s:
        speed = f"{run.meta.packet_hops / spent.engine_s / 1e6:.1f} M packet-hops/s"
        yield Faint(f"Engine, co-run {wall_time(spent.engine_s)}: {speed}")


def of_study(found: Mapping[str, float]) -> Iterator[str]:
    """Where the time of a study went, summed over workers: the shares of its ``profile``."""
    workers = plural(round(found["workers"]), "worker")
    yield f"Where the time went: {seconds(found['wall'])}, of these {seconds(found['spent'])} with {workers}"
    for name, meaning in _PROFILE.items():
        of = found["spent"] * found["workers"] if name in _OF_WORKERS else found["wall"]
        share = percent(found[name] / of) if of else ""
        yield f"  {name:<10}  {seconds(found[name]):>8}  {share:>6}  {meaning}"


def of_reproduction(runs: int, wall_s: float, cpu_s: float, *, stored: int, unused: int) -> Iterator[str]:
    """What the runs of a reproduction took, whenever they were computed, and what was stored before."""
    yield f"{runs} runs took {seconds(wall_s)}, {seconds(cpu_s)} of processor time, summed over workers."
    if stored:
        yield f"{stored - unused} of them were stored already."
    if unused:
        words = "not used: of other settings, or computed by another version of the simulator"
        yield f"{unused} stored runs are {words}."
