"""A folder of results in the browser: serve."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from fairlane.cli.command import AsJson, out_option, print_json
from fairlane.cli.options import refused, report

if TYPE_CHECKING:
    from fairlane.serve import Server


def serve(
    folder: Annotated[Path, Argument(metavar="FOLDER", help="The folder with results in it, e.g. runs.")],
    port: Annotated[int, Option(help="The port on 127.0.0.1; 0 for a free one.")] = 0,
    out: Annotated[Path | None, out_option("Write the address to FILE, readable by its owner only.")] = None,
    as_json: AsJson = False,
    quiet: Annotated[bool, Option("--quiet", "-q", help="Print only the address.")] = False,
) -> None:
    """Show a folder of results, and runs in progress, in the browser of this machine.

    Prints an address with a token; whoever has it can see the results and stop runs in progress. Ends on Ctrl-C or
    SIGTERM. For example: fairlane serve runs
    """
    from fairlane.serve import serve as start

    written: list[Path] = []

    def ready(server: "Server") -> None:
        if out is not None:
            _write(out, server.url)
            written.append(out)
        elif as_json:
            print_json({"url": server.url, "port": server.port})
        else:
            typer.echo(server.url)
        if not quiet:
            report(f"{folder} is served on port {server.port}; Ctrl-C ends it")

    try:
        start(folder, port, ready)
    finally:
        for file in written:
            file.unlink(missing_ok=True)


def _write(file: Path, url: str) -> None:
    """Writes the address to a new file that nobody else can read."""
    try:
        file.unlink(missing_ok=True)
        file.touch(0o600, exist_ok=False)
        file.write_text(f"{url}\n", encoding="utf-8")
    except OSError as error:
        raise refused("--out", f"cannot be written: {error.strerror}", str(file)) from None
