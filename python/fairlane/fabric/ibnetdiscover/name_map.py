"""Node name maps as infiniband-diags and OpenSM read them: a GUID and a name in quotes on each line.

``0xe09d730300858468  "a08-p1-dgx-04-c01"  # comment``. Besides the node GUID the system image GUID may stand there,
and an identifier of the dump (``H-e09d730300858468``). A GUID that the dump does not have is ignored: maps are kept
for whole sites.
"""

import re
from pathlib import Path

from fairlane.errors import Problem, ScenarioError
from fairlane.inputs.files import MOST_STORED, read_text, reading

_LINE = re.compile(r"""(0x[0-9a-fA-F]{1,16}|[SHR]-\S+)\s+(?:"([^"]+)"|'([^']+)'|([^\s"'#]+))\s*(?:#.*)?""")


def read_name_map(file: Path) -> dict[str, str]:
    """The names by GUID (16 hexadecimal digits) or identifier; ``ScenarioError`` names every line that is wrong."""
    with reading(file):
        text = read_text(file, MOST_STORED, "utf-8-sig")
    names: dict[str, str] = {}
    lines: dict[str, int] = {}
    problems = []
    for number, line in enumerate(map(str.strip, text.splitlines()), 1):
        if not line or line.startswith("#"):
            continue
        found = _LINE.fullmatch(line)
        if found is None:
            words = f"not a line of a node name map: {line[:60]!r}"
            problems.append(Problem.of_file(file, words, number, allowed='0xGUID "name"'))
            continue
        key = f"{int(found[1], 16):016x}" if found[1].startswith("0x") else found[1]
        name = (found[2] or found[3] or found[4]).strip()
        if names.setdefault(key, name) != name:
            words = f"{found[1]} has another name on line {lines[key]}: {names[key]}"
            problems.append(Problem.of_file(file, words, number))
        lines.setdefault(key, number)
    if problems:
        raise ScenarioError(problems)
    return names
