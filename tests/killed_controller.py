"""Has a controller go through two periods, killed at every step, and each restart killed at some of its steps.

Called with the configuration of an agent for the jobs of ``steered_jobs``, ``apply`` or ``dry``, and a stride. Steps
are those of ``killed_agent``. For each pair of kills it prints a JSON object: the states of all changes when what was
left has been repaired, the levels in force then, those that the journal has, those after a start that is not
disturbed, and the files of an OpenSM in the folder of the configuration.
"""

import json
import sys
from itertools import count
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from fairlane.cluster.agent.config import AgentConfig
from fairlane.cluster.agent.control import Steered
from fairlane.cluster.agent.jobs import levels_of
from fairlane.cluster.agent.journal import Journal
from fairlane.cluster.agent.watch import recover
from killed_agent import in_process
from steered_jobs import RANKS, Jobs


def steered(config: AgentConfig, journal: Journal, *, apply: bool) -> Steered:
    """An agent that has started: it has repaired and taken back what was left."""
    agent = Steered(config, journal, SimpleQueue(), apply=apply)
    agent.start()
    return agent


def repaired(config: AgentConfig, journal: Journal, *, apply: bool) -> dict[str, Any]:
    """What is left when the changes that were interrupted are completed or undone."""
    backend = Steered(config, journal, SimpleQueue(), apply=apply)._backend
    recover(journal, backend)
    wanted = journal.in_force(backend.name)
    backend.verify(wanted)
    numbers = range(1, journal._data.execute("SELECT count(*) FROM decisions").fetchone()[0] + 1)
    states = [journal.entry(number).state for number in numbers]
    return {"states": states, "in_force": backend.in_force(), "journal": levels_of(wanted)}


def main() -> None:
    """Kills at every pair of steps until the periods come to their end undisturbed."""
    file, apply, stride = Path(sys.argv[1]), sys.argv[2] == "apply", int(sys.argv[3])
    loaded = AgentConfig.from_file(file)
    jobs = Jobs(file.parent, RANKS)
    for first in count():
        for second in count(first % stride, stride):
            config = loaded.model_copy(update={"journal": file.parent / f"{first}-{second}.db"})

            def periods(config: AgentConfig = config) -> None:
                with Journal(config.journal) as journal:
                    agent = steered(config, journal, apply=apply)
                    agent.period()
                    jobs.mark(dict.fromkeys(RANKS, 3))
                    agent.period()

            def restart(config: AgentConfig = config) -> None:
                with Journal(config.journal) as journal:
                    steered(config, journal, apply=apply)

            ended = in_process(periods, first)
            restarted = in_process(restart, second)
            with Journal(config.journal) as journal:
                row = repaired(config, journal, apply=apply)
                agent = steered(config, journal, apply=apply)
                row["after"] = agent._backend.in_force()
            row["files"] = {path.name: path.read_text() for path in sorted(file.parent.glob("[!.]*.conf"))}
            sys.stdout.write(json.dumps({"kills": [first, second], "ended": ended, **row}) + "\n")
            if restarted:
                break
        if ended:
            jobs.close()
            return


if __name__ == "__main__":
    main()
