"""A paper of two studies that take no time: its folder, and how it is run in this process."""

from pathlib import Path
from typing import Any

from fairlane.papers.reproduce import conclude, plan
from fairlane.papers.running import stored_as
from fairlane.study.tasks.executor import Executor
from fairlane.study.tasks.store import Store
from small_study import Here

PAPER = """
title = "A paper"
citation = "Nobody: Nothing, 2020."
options = ["placements", "periods", "also"]
also = "qos"
quick."control.toml" = { note = "one placement", set = { placements = 1 } }
[[study]]
name = "control"
file = "control.toml"
[[study]]
name = "times"
file = "times.toml"
quick = { only = { size = ["small"] }, note = "small messages only" }
[[table]]
name = "medians"
csv = "{size}"
studies = ["times"]
sql = "SELECT size, seed, median(seconds) AS seconds FROM iterations GROUP BY ALL ORDER BY ALL"
"""

CLAIMS = """
[[claim]]
id = "large-is-slow"
where = "I"
setup = "a ring"
claim = "large messages are slow"
check = "large / small > 2"
studies = ["times"]
sql = '''
SELECT large.seconds / small.seconds AS value, 2.0 AS bound FROM medians large, medians small
WHERE large.size = 'large' AND small.size = 'small' AND large.seed = small.seed
'''
[[claim.clause]]
says = "large / small {value:.2f}"
band = "> bound"
[[claim]]
id = "qos"
where = "II"
setup = "two rings"
claim = "nothing is lost"
check = "min improvement >= -0.5"
studies = ["control"]
sql = "SELECT min(improvement) AS value FROM work WHERE treatment = 'qos'"
[[claim.clause]]
says = "min improvement {value:+.3f}"
band = ">= -0.5"
reported = "0"
"""

FIGURES = """
[[figure]]
file = "times"
title = "Times"
[[figure.chart]]
sql = "SELECT size, seconds FROM iterations WHERE seconds IS NOT NULL"
[figure.chart.spec]
mark = "boxplot"
encoding.x = { field = "size" }
encoding.y = { field = "seconds" }
"""

SCENARIO = """
duration = "3 ms"
fabric = { topology = "crossbar", hosts = 8, bandwidth = "100 Gb/s" }
observe = { iterations = ["ring"] }
[[jobs]]
name = "ring"
ranks = 4
stop = 4
workload = { name = "ring", message_size = "1 KiB", compute = "1 us" }
"""

CONTROLLED = """
scenario = "ring.toml"
placements = 2
[treatments.qos]
controller = "none"
period = "100 us"
periods = 3
"""

TIMES = """
scenario = "ring.toml"
seeds = [1, 2]
[factors.size]
small = { "jobs[0].workload.message_size" = "1 KiB" }
large = { "jobs[0].workload.message_size" = "64 KiB" }
[[rules]]
where = { size = "small", seed = 2 }
skip = true
[measure]
until = "ring"
tables.iterations = "SELECT rank, iteration, time_s AS seconds FROM iterations"
"""


def written(place: Path) -> Path:
    """Writes the files of the paper into a new folder."""
    place.mkdir()
    plain = SCENARIO.replace("stop = 4\n", "").replace('observe = { iterations = ["ring"] }\n', "")
    files = {
        "paper.toml": PAPER,
        "claims.toml": CLAIMS,
        "figures.toml": FIGURES,
        "ring.toml": SCENARIO.replace("crossbar", "fat_tree").replace("hosts = 8", "hosts = 8, levels = 2, radix = 4"),
        "control.toml": CONTROLLED.replace("ring.toml", "plain.toml"),
        "plain.toml": plain.replace("crossbar", "fat_tree").replace("hosts = 8", "hosts = 8, levels = 2, radix = 4"),
        "times.toml": TIMES,
    }
    for name, text in files.items():
        (place / name).write_text(text)
    return place


def run(place: Path | str, out: Path, **options: Any) -> Any:
    """The claims of a paper, judged."""
    with Executor(Here(), Store(out, stored_as)) as executor:
        return conclude(plan(place, **options), executor, out)
