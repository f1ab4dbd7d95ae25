"""The commands, and what an error becomes: a message on standard error and an exit code."""

import gc
import os
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Annotated, Any

import typer
from typer import Option
from typer.core import TyperGroup

from fairlane.cli import (
    advising,
    agents,
    analyzing,
    applying,
    benchmarking,
    breaking,
    campaigning,
    comparing,
    controlling,
    counting,
    examining,
    exchanging,
    exporting,
    fabrics,
    listing,
    mapping,
    marking,
    placing,
    predicting,
    reporting,
    reproducing,
    runs,
    saturating,
    scheduling,
    serving,
    slowdown,
    starting,
    studies,
    subnet,
    testbeds,
    traces,
)
from fairlane.cli.command import ExitCode, add
from fairlane.errors import FairlaneError, RunError, disk_full

# What typer raises for wrong options and commands; where it keeps the class depends on its version.
UsageError: Any = typer.BadParameter.__base__


class _Commands(TyperGroup):
    """Commands that pass Ctrl-C on: typer by itself would end them without a word."""

    def invoke(self, ctx: Any) -> Any:
        try:
            with _asking() if sys.stdin.isatty() and sys.stderr.isatty() else nullcontext():
                return super().invoke(ctx)
        except KeyboardInterrupt:
            raise typer.Abort from None


app = typer.Typer(
    name="fairlane",
    cls=_Commands,
    help="Simulates many MPI jobs on one HPC interconnect, packet by packet: who slows down whom, and what helps.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        import fairlane

        typer.echo(fairlane.__version__)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[bool, Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    del version


COMMANDS: dict[str, Callable[..., Any]] = {
    "init": starting.init,
    "run": runs.run,
    "check": runs.check,
    "plot": runs.plot,
    "query": runs.query,
    "report": reporting.report,
    "serve": serving.serve,
    "export": exporting.export,
    "compare": comparing.compare,
    "analyze": analyzing.analyze,
    "place": placing.place,
    "schedule": scheduling.schedule,
    "slowdown fit": slowdown.fit,
    "slowdown show": slowdown.show,
    "study": studies.study,
    "saturate": saturating.saturate,
    "gpcnet": benchmarking.gpcnet,
    "cables": breaking.cables,
    "advise": advising.advise,
    "learn": advising.learn,
    "predict fit": predicting.fit,
    "predict apply": predicting.apply,
    "predict compare": predicting.compare,
    "predict pairs": predicting.pairs,
    "control": controlling.control,
    "reproduce": reproducing.reproduce,
    "robustness": mapping.robustness,
    "list": listing.list_,
    "schema": listing.schema,
    "doctor": examining.doctor,
    "fabric describe": fabrics.describe_fabric,
    "fabric draw": fabrics.draw_fabric,
    "fabric import": fabrics.import_fabric,
    "fabric export": fabrics.export_fabric,
    "fabric compare": fabrics.compare_fabrics,
    "agent run": agents.run,
    "agent undo": agents.undo,
    "agent status": agents.status,
    "agent notify": agents.notify,
    "agent progress": marking.progress,
    "progress build": marking.build,
    "counters export": counting.export_counters,
    "counters import": counting.import_counters,
    "qos export": exchanging.export_qos,
    "qos import": exchanging.import_qos,
    "qos apply": applying.apply_qos,
    "sm check": subnet.check_subnet,
    "campaign fit": campaigning.fit,
    "campaign predict": campaigning.predict,
    "campaign compare": campaigning.compare,
    "campaign map": campaigning.draw_map,
    "campaign script": campaigning.script,
    "campaign read": campaigning.read,
    "testbed run": testbeds.run,
    "testbed status": testbeds.status,
    "testbed down": testbeds.down,
    "trace describe": traces.trace_describe,
    "trace pattern": traces.trace_pattern,
    "workload pattern": traces.workload_pattern,
}
GROUPS = {  # of commands of two words: what they are about, by the first word
    "slowdown": "Models of how allocations and neighbours slow jobs down.",
    "predict": "Run times from counters; slowdowns of pairs of jobs before they run.",
    "agent": "Give service levels to the jobs of a cluster that Slurm runs.",
    "progress": "Marks of the progress of real programs.",
    "fabric": "Import, export, describe, draw and compare fabrics.",
    "counters": "Port counters with the names and units of InfiniBand.",
    "qos": "QoS settings for OpenSM and from it.",
    "sm": "A real subnet manager reads what is exported.",
    "campaign": "Measure jobs beside aggressors on a real machine, and compare with registered predictions.",
    "testbed": "A small real network on this machine, measured and predicted.",
    "trace": "Describe recorded traces and their communication patterns.",
    "workload": "Communication patterns of workloads.",
}


class _RunByDefault(TyperGroup):
    """A group whose command ``run`` may be left out: ``fairlane agent --config FILE``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        first = args[:1]
        own = {option for parameter in self.get_params(ctx) for option in parameter.opts}
        is_option = bool(first) and first[0].startswith("-") and first[0].partition("=")[0] not in own
        return super().parse_args(ctx, ["run", *args] if is_option else args)


_RUNNING = {"agent"}  # groups of which the command `run` may be left out
_groups = {
    name: typer.Typer(help=words, no_args_is_help=True, cls=_RunByDefault if name in _RUNNING else TyperGroup)
    for name, words in GROUPS.items()
}
for words, function in COMMANDS.items():
    group, _, name = words.rpartition(" ")
    add(_groups.get(group, app), function, name)
for name, group_app in _groups.items():
    app.add_typer(group_app, name=name)


@cache
def command() -> Any:
    """The whole command line, made once: that takes longer than many a command."""
    return typer.main.get_command(app)


def main() -> None:
    """Runs a command and ends the process with its exit code."""
    gc.set_threshold(100_000)  # what is imported stays, and by default a tenth of its time is spent on finding garbage
    sys.exit(execute(sys.argv[1:]))


def execute(arguments: list[str]) -> int:
    """Runs a command and returns its exit code; errors are printed on standard error."""
    try:
        status = command()(arguments, prog_name="fairlane", standalone_mode=False)
    except typer.Abort:
        return _complain("interrupted", ExitCode.INTERRUPTED)
    except UsageError as error:
        error.show()
        return ExitCode.WRONG_INPUT
    except BrokenPipeError:  # whoever read the output, as `head`, has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.RUN_FAILED
    except (FairlaneError, OSError) as error:
        return _failed(error)
    except MemoryError:
        return _complain("out of memory: it takes more than this process may have", ExitCode.RUN_FAILED)
    return status if isinstance(status, int) else ExitCode.DONE


def _asking() -> AbstractContextManager[object]:
    """Asks at the terminal whether code that an input names may run; for each file and class once."""
    from fairlane.inputs.code import Code, asking

    answers: dict[Code, bool] = {}

    def ask(code: Code) -> bool:
        if code not in answers:
            answers[code] = typer.confirm(f"The input runs code: {code}. Run it?", default=False, err=True)
        return answers[code]

    return asking(ask)


def _failed(error: FairlaneError | OSError) -> int:
    """What the system refuses is reported like wrong input, with its file; a full disk has a code of its own."""
    words = str(error)
    if isinstance(error, OSError) and not isinstance(error, FairlaneError):
        words = f"{error.filename}: {error.strerror}" if error.filename else error.strerror or words
    if disk_full(error):
        return _complain(f"{words}\nthe disk is full: make room, or choose another folder", ExitCode.DISK_FULL)
    return _complain(words, ExitCode.RUN_FAILED if isinstance(error, RunError) else ExitCode.WRONG_INPUT)


def _complain(message: str, code: ExitCode) -> int:
    for line in message.splitlines():
        typer.echo(f"fairlane: {line}", err=True)
    return code
