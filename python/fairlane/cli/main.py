"""The commands, and what an error becomes: a message on standard error and an exit code."""

import gc
import os
import sys
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Annotated, Any

import typer
from typer import Option
from typer.core import TyperGroup

from fairlane.cli.command import ExitCode
from fairlane.cli.lazy import LazyCommand
from fairlane.core.errors import FairlaneError, RunError, disk_full

# What typer raises for wrong options and commands; where it keeps the class depends on its version.
UsageError: Any = typer.BadParameter.__base__

COMMANDS = {  # where each is: a module of this package, and the function
    "init": "scenario:init",
    "run": "run:run",
    "check": "scenario:check",
    "plot": "results:plot",
    "query": "results:query",
    "report": "results:write_page",
    "serve": "results:serve",
    "export": "analysis:export",
    "compare": "results:compare",
    "analyze": "analysis:analyze",
    "place": "scenario:place",
    "schedule": "schedule:schedule",
    "slowdown fit": "schedule:fit_slowdown",
    "slowdown show": "schedule:show_slowdown",
    "study": "study:study",
    "saturate": "study:saturate",
    "gpcnet": "study:gpcnet",
    "cables": "study:cables",
    "advise": "advice:advise",
    "learn": "advice:learn",
    "predict fit": "predict:fit",
    "predict apply": "predict:apply",
    "predict compare": "predict:compare",
    "predict pairs": "predict:pairs",
    "control": "run:control",
    "reproduce": "reproduce:reproduce",
    "robustness": "reproduce:robustness",
    "list": "names:list_",
    "schema": "names:schema",
    "build": "build:build",
    "doctor": "doctor:doctor",
    "fabric describe": "fabric:describe",
    "fabric draw": "fabric:draw",
    "fabric import": "fabric:import_",
    "fabric export": "fabric:export",
    "fabric compare": "fabric:compare",
    "agent run": "agent:run",
    "agent undo": "agent:undo",
    "agent status": "agent:status",
    "agent notify": "agent:notify",
    "agent progress": "agent:progress",
    "progress build": "agent:build",
    "counters export": "counters:export",
    "counters import": "counters:import_",
    "qos export": "qos:export",
    "qos classes": "qos:classes",
    "qos import": "qos:import_",
    "qos apply": "qos:apply",
    "sm check": "qos:check",
    "campaign fit": "campaign:fit",
    "campaign predict": "campaign:predict",
    "campaign compare": "campaign:compare",
    "campaign map": "campaign:draw_map",
    "campaign script": "campaign:script",
    "campaign read": "campaign:read",
    "testbed run": "testbed:run",
    "testbed status": "testbed:status",
    "testbed down": "testbed:down",
    "trace describe": "trace:describe",
    "trace pattern": "trace:pattern",
    "workload pattern": "trace:workload_pattern",
}
GROUPS = {  # of commands of two words: what they are about, by the first word
    "slowdown": "Models of how allocations and neighbours slow jobs down.",
    "predict": "Run times from counters; slowdowns of pairs of jobs before they run.",
    "agent": "Give service levels to the jobs of a cluster that Slurm runs.",
    "progress": "Marks of the progress of real programs.",
    "fabric": "Import, export, describe, draw and compare fabrics.",
    "counters": "Port counters with the names and units of InfiniBand.",
    "qos": "QoS settings for OpenSM and communication libraries, and from OpenSM.",
    "sm": "A real subnet manager reads what is exported.",
    "campaign": "Measure jobs beside aggressors on a real machine, and compare with registered predictions.",
    "testbed": "A small real network on this machine, measured and predicted.",
    "trace": "Describe recorded traces and their communication patterns.",
    "workload": "Communication patterns of workloads.",
}


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


class _RunByDefault(TyperGroup):
    """A group whose command ``run`` may be left out: ``fairlane agent --config FILE``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        first = args[:1]
        options = {option for parameter in self.get_params(ctx) for option in parameter.opts}
        is_option = bool(first) and first[0].startswith("-") and first[0].partition("=")[0] not in options
        return super().parse_args(ctx, ["run", *args] if is_option else args)


@cache
def command() -> Any:
    """The whole command line, made once: that takes longer than many a command."""
    root: Any = typer.main.get_command(app)
    groups = {
        name: (_RunByDefault if name == "agent" else TyperGroup)(
            name=name, help=title, no_args_is_help=True, rich_markup_mode=None
        )
        for name, title in GROUPS.items()
    }
    for title, where in COMMANDS.items():
        group, _, name = title.rpartition(" ")
        groups.get(group, root).add_command(LazyCommand(name, where))
    for group_of in groups.values():
        root.add_command(group_of)
    return root


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
    """Report an error of the system like wrong input, with its file; a full disk has a code of its own."""
    message = str(error)
    if isinstance(error, OSError) and not isinstance(error, FairlaneError):
        message = f"{error.filename}: {error.strerror}" if error.filename else error.strerror or message
    if disk_full(error):
        return _complain(f"{message}\nthe disk is full: make room, or choose another folder", ExitCode.DISK_FULL)
    return _complain(message, ExitCode.RUN_FAILED if isinstance(error, RunError) else ExitCode.WRONG_INPUT)


def _complain(message: str, code: ExitCode) -> int:
    for line in message.splitlines():
        typer.echo(f"fairlane: {line}", err=True)
    return code
