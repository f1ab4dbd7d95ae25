"""Processes that mark their progress, for controller.toml: a rank on each node of the running jobs of squeue.json.

Each sleeps for 0.1 to 0.2 s an iteration, for ten minutes: no level can make it faster.
"""

import json
import os
import random
import sys
import time
from pathlib import Path

from fairlane import progress
from fairlane.inputs.hosts import members

FOLDER = Path(__file__).parent
(FOLDER / "pages").mkdir(exist_ok=True)
jobs = json.loads((FOLDER / "squeue.json").read_text())["jobs"]
ranks = [(job["job_id"], *rank) for job in jobs for rank in enumerate(members(job["nodes"]) if job["nodes"] else ())]
for job, rank, node in ranks:
    if os.fork() == 0:
        os.environ |= {"FAIRLANE_JOB": str(job), "FAIRLANE_RANK": str(rank), "SLURMD_NODENAME": node}
        os.environ["FAIRLANE_PROGRESS_DIR"] = str(FOLDER.resolve() / "pages")
        for _ in progress.iterations(range(4000)):
            time.sleep(random.uniform(0.1, 0.2))
        sys.exit()
for _ in ranks:
    os.wait()
