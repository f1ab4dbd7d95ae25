"""Names in inputs: lines that are searched for words rather than read as a table."""

import re
from collections.abc import Iterator, Mapping

from fairlane.inputs.described import keys_of
from fairlane.inputs.parameters import Entry, editor_schema


def names_listed(kind: str, known: Mapping[str, Entry]) -> Iterator[str]:
    """The names of a kind, where each comes from and what it is."""
    if not known:
        return
    width = max(map(len, known))
    where = max(len(entry.origin) for entry in known.values())
    yield f"{kind}:"
    for name, entry in known.items():
        yield f"  {name:{width}}  {entry.origin:{where}}  {entry.summary}"


def described(entry: Entry, *, simulator: bool) -> Iterator[str]:
    """Describe a name and its parameters as in the reference, without Markdown's signs."""
    yield f"{entry.name} ({entry.origin}): {entry.summary}"
    if entry.routing:
        yield f"usual routing: {entry.routing}"
    rows = list(keys_of(editor_schema(entry.schema, entry.schema) if simulator else entry.schema))
    if not rows:
        yield "no parameters"
    for row in rows:
        value = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", row.type).replace("`", "")
        default = f"default {row.default.strip('`')}" if row.default not in ("", "required") else row.default
        yield f"  {row.name}: {', '.join(filter(None, (value, default)))}"
        if row.meaning:
            yield f"      {' '.join(row.meaning.split())}"
