"""Common parts of all commands: the standard options, and how an answer becomes text, JSON or an exit code.

A command is a function of its arguments that returns an ``Answer``; it does not print. Every command has
``--help``/``-h``, ``--out``/``-o``, ``--json`` and ``--quiet``/``-q``; ``made`` adds those that the function does not
have: ``--json``; an ``--out`` that takes what would be printed, a view as a page if the file is HTML; and a
``--quiet``, which leaves only the exit code unless the command stores something by an ``--out`` of its own.
"""

import functools
import inspect
import io
import pkgutil
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext, redirect_stdout
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from typer import Option

from fairlane.core.errors import Problem, ScenarioError, writing

if TYPE_CHECKING:
    import polars as pl

    from fairlane.cli.terminal import Part


class ExitCode(IntEnum):
    """Exit codes of commands."""

    DONE = 0
    RUN_FAILED = 1
    WRONG_INPUT = 2
    DISK_FULL = 3
    INTERRUPTED = 130


def out_option(help: str, metavar: str = "FILE") -> Any:
    """The option ``--out`` of a command that stores something."""
    return Option("--out", "-o", metavar=metavar, help=help)


AsJson = Annotated[bool, Option("--json", help="Print JSON.")]
Quiet = Annotated[bool, Option("--quiet", "-q", help="No progress and no tables; print only where the results are.")]
Seed = Annotated[int | None, Option("--seed", min=0, help="Replace the scenario's seed.")]
OutFolder = Annotated[Path | None, out_option("Folder of the results.", "DIR")]
OutFile = Annotated[Path | None, out_option("Write what is printed to FILE.")]
_Silent = Annotated[bool, Option("--quiet", "-q", help="Print nothing; only set the exit code.")]
_STANDARD: dict[str, tuple[Any, Any]] = {"as_json": (AsJson, False), "out": (OutFile, None), "quiet": (_Silent, False)}


@dataclass(frozen=True)
class Answer:
    """Result of a command."""

    data: Any = None  # for ``--json``; or a function that makes it
    text: "Iterable[Part]" = ()  # for people; made only if it is shown
    where: object = None  # file or folder that is the only output of ``--quiet``; by default ``folder``
    files: Iterable[Path | str] = ()  # also written; printed on standard error if the output is JSON
    code: ExitCode = ExitCode.DONE  # how the command ended
    folder: Path | None = None  # with all results; people are told

    def page(self) -> str:
        """The page of the view that is the text; nothing if it is none."""
        from fairlane.views.model import View
        from fairlane.views.page import page

        views = [part for part in self.text if isinstance(part, View)]
        return page(views[0]) if views else ""

    def print(self, *, as_json: bool, quiet: bool) -> None:
        """Prints it in the form that is wanted."""
        if as_json:
            print_json(self.data() if callable(self.data) else self.data)
        elif quiet:
            if (where := self.where or self.folder) is not None:
                typer.echo(where)
        else:
            for part in self.text:
                if type(part) is str:  # printed as it is made, without loading what draws tables
                    typer.echo(part)
                else:
                    from fairlane.cli.terminal import show

                    show([part])
            if self.folder is not None:
                typer.echo(f"Everything is in {self.folder}.")
        for file in self.files if as_json or not quiet else ():
            typer.echo(file, err=as_json)


def made(function: Callable[..., Any], name: str) -> Any:
    """The command of a function, with the standard options that it does not have itself."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(name)(_with_standard_options(function))
    return typer.main.get_command(app)


def completing(names: str, *arguments: str) -> Callable[[str], list[str]]:
    """Complete an option or argument that takes a name: ``module:names``, a table or a function."""

    def complete(incomplete: str) -> list[str]:
        candidates = pkgutil.resolve_name(names)
        return sorted(
            name
            for name in (candidates(*arguments) if callable(candidates) else candidates)
            if name.startswith(incomplete)
        )

    return complete


def print_json(data: Any) -> None:
    """Prints data as JSON: data frames as lists of rows, dataclasses and models as objects, NaN as null."""
    from pydantic_core import to_json

    typer.echo(to_json(data, indent=2, inf_nan_mode="null", fallback=_plain).decode())


def _plain(value: Any) -> Any:
    """Serialize data frames and arrays."""
    for convert in ("to_dicts", "tolist"):
        if hasattr(value, convert):
            return getattr(value, convert)()
    return str(value)


def _with_standard_options(function: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(function, eval_str=True)
    given = signature.parameters
    stores = "out" in given
    missing = {name: option for name, option in _STANDARD.items() if name not in given}
    if stores and "quiet" in missing:
        missing["quiet"] = (Quiet, False)

    @functools.wraps(function)
    def command(**options: Any) -> Any:
        taken = {name: value for name, value in options.items() if name not in missing}
        file = None if stores else options["out"]
        printed = io.StringIO()
        with redirect_stdout(printed) if file or (options["quiet"] and not stores) else nullcontext():
            answer = function(**taken)
            if isinstance(answer, Answer):
                answer.print(as_json=options["as_json"], quiet=options["quiet"] and stores)
        if file:
            from fairlane.inputs.files import write_text

            page = isinstance(answer, Answer) and not options["as_json"] and file.suffix == ".html" and answer.page()
            write_text(file, page or printed.getvalue())
        return answer.code if isinstance(answer, Answer) else answer

    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = [parameter.replace(kind=keyword) for parameter in given.values()]
    parameters += [
        inspect.Parameter(name, keyword, default=default, annotation=kind) for name, (kind, default) in missing.items()
    ]
    # In the help the options of the command come first, the standard ones last.
    parameters.sort(key=lambda parameter: parameter.name in _STANDARD and 1 + [*_STANDARD].index(parameter.name))
    shown = cast("Any", command)
    shown.__signature__ = signature.replace(parameters=parameters)
    shown.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    del shown.__wrapped__
    return command


def _unwritable(option: str, path: Path, error: OSError) -> ScenarioError:
    return ScenarioError(Problem(option, f"cannot be written: {error.strerror}", str(path)))


def write_folder(folder: Path, files: Mapping[str, str], option: str) -> None:
    """Writes all files or none; scripts are executable. Raises ``ScenarioError`` with the option."""
    outside = [name for name in files if ".." in Path(name).parts or len(Path(name).parts) > 2]
    if outside:
        message = f"cannot have the file {outside[0]}"
        raise ScenarioError(Problem(option, message, str(folder), "names of jobs without / for files that have them"))
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        unfinished = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    except OSError as error:
        raise _unwritable(option, folder, error) from None
    try:
        for name, text in files.items():
            path = unfinished / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
            path.chmod(0o755 if text.startswith("#!") else 0o644)
        unfinished.chmod(0o755)
        unfinished.rename(folder)
    except OSError as error:
        raise _unwritable(option, folder, error) from None
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def write_table(table: "pl.DataFrame", path: Path) -> None:
    """Writes a table wholly or not at all: Parquet by the file's name, else CSV. Raises ``ResultsError``."""
    from fairlane.inputs.files import replacing

    with writing(path), replacing(path) as scratch:
        if path.suffix == ".parquet":
            table.write_parquet(scratch)
        else:
            table.write_csv(scratch)
