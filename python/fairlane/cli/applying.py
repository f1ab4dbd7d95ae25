"""Levels of running jobs on the machine of OpenSM: qos apply."""

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from fairlane.cli.command import Answer, ExitCode
from fairlane.cli.options import AllowCode


def apply_qos(
    folder: Annotated[Path, Argument(metavar="DIR", help="The folder that qos export has written.")],
    once: Annotated[bool, Option("--once", help="Put in force what the jobs that run now have, and end.")] = False,
    undo: Annotated[bool, Option("--undo", help="Take all levels back, and end.")] = False,
    allow_code: AllowCode = False,
) -> Answer:
    """Keep the service levels of Slurm's jobs in OpenSM's policy: on the machine of OpenSM, as its user.

    Levels go by account, QOS and partition (levels.tsv); prolog.sh and epilog.sh report the jobs. Changes within
    `interval` of apply.toml are made together. SIGTERM ends it, and levels stay in force until the next start or
    --undo. For example: fairlane qos apply /etc/opensm/fairlane
    """
    import signal

    from fairlane.agent.apply import FILE, Applier, ApplyConfig, alone

    config = ApplyConfig.from_file(folder / FILE, allow_code=allow_code)
    applier = Applier(config, report=typer.echo)
    applier.start()
    with alone(config.running):
        if undo:
            applier.withdraw()
        elif once:
            return Answer(code=ExitCode.RUN_FAILED if applier.look() else ExitCode.DONE)
        else:
            signal.signal(signal.SIGTERM, lambda *_: applier.stop())
            applier.run()
    return Answer()
