"""What all commands have in common: the same standard options, and how results become JSON.

Every command has ``--help``/``-h``, ``--out``/``-o``, ``--json`` and ``--quiet``/``-q``; every command that draws
random numbers has ``--seed``. A command that stores nothing has no ``out`` or ``quiet`` of its own: its ``--out`` takes
what it would print, and its ``--quiet`` leaves the exit code only.
"""

import functools
import inspect
import io
import pkgutil
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated, Any, cast

import typer

__all__ = ["AsJson", "OutFile", "OutFolder", "Quiet", "Seed", "add", "completing", "out_option", "print_json"]


def out_option(help: str, metavar: str = "FILE") -> Any:
    """The option ``--out`` of a command that stores something."""
    return typer.Option("--out", "-o", metavar=metavar, help=help)


AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
"""Print JSON instead of text."""
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="No progress and no tables; print only where the results are.")
]
"""No progress and no tables."""
Seed = Annotated[int | None, typer.Option("--seed", min=0, help="Replace the scenario's seed.")]
"""A seed that replaces the scenario's."""
OutFolder = Annotated[Path | None, out_option("Folder of the results.", "DIR")]
"""A folder for the results."""
OutFile = Annotated[Path | None, out_option("Write what is printed to FILE.")]
"""A file that takes what would be printed."""
_Silent = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing; only set the exit code.")]


def add(app: typer.Typer, function: Callable[..., Any], name: str | None = None) -> None:
    """Adds a command with the standard options that it does not have itself."""
    app.command(name)(_with_standard_options(function))


def completing(names: str, *arguments: str) -> Callable[[str], list[str]]:
    """What a shell offers for an option or argument that takes a name: ``module:names``, a table or a function."""

    def complete(incomplete: str) -> list[str]:
        found = pkgutil.resolve_name(names)
        return sorted(name for name in (found(*arguments) if callable(found) else found) if name.startswith(incomplete))

    return complete


def print_json(data: Any) -> None:
    """Prints data as JSON: data frames as lists of rows, dataclasses and models as objects, NaN as null."""
    from pydantic_core import to_json

    typer.echo(to_json(data, indent=2, inf_nan_mode="null", fallback=_plain).decode())


def _plain(value: Any) -> Any:
    """What the serializer does not know: data frames and arrays."""
    for convert in ("to_dicts", "tolist"):
        if hasattr(value, convert):
            return getattr(value, convert)()
    return str(value)


def _with_standard_options(function: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(function, eval_str=True)
    given = signature.parameters
    missing = {name: kind for name, kind in (("out", OutFile), ("quiet", _Silent)) if name not in given}

    @functools.wraps(function)
    def command(**options: Any) -> Any:
        own = {name: value for name, value in options.items() if name not in missing}
        file, quiet = (options[name] if name in missing else None for name in ("out", "quiet"))
        if not (file or quiet):
            return function(**own)
        printed = io.StringIO()
        with redirect_stdout(printed):
            status = function(**own)
        if file:
            _write(printed.getvalue(), file)
        return status

    added = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=False if name == "quiet" else None, annotation=kind
        )
        for name, kind in missing.items()
    ]
    kept = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in given.values()]
    shown = cast("Any", command)
    shown.__signature__ = signature.replace(parameters=[*kept, *added])
    shown.__annotations__ = {parameter.name: parameter.annotation for parameter in (*kept, *added)}
    del shown.__wrapped__
    return command


def _write(text: str, file: Path) -> None:
    from fairlane.errors import Problem, ScenarioError
    from fairlane.inputs.writing import replacing

    try:
        with replacing(file) as scratch:
            scratch.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ScenarioError(Problem("--out", f"cannot be written: {error.strerror}", str(file))) from None
