"""Points of a study with the same results, bit for bit: seeds, placements and factors that change nothing.

Found by the digests of results, so it does not matter why they are the same. Points of one condition that repeat each
other are one replicate (``same_as`` in ``work``).
"""

from collections.abc import Iterator, Sequence

import polars as pl

from fairlane.results.repeats import sentence
from fairlane.wording import listed

_RUN = ("baseline", "treatment", "job")


def repeated(runs: pl.DataFrame, work: pl.DataFrame | None, *, once: bool = True) -> Iterator[str]:
    """Sentences about points, and about cases, parameters and factors, that change nothing.

    A study that measures has no table ``work``: then the digests of ``runs`` say so. ``once``: whether they count once.
    """
    conditions = runs.columns[1 : runs.columns.index("placement")]
    measured = runs.filter(pl.col("digest").is_not_null()).with_columns(
        same_as=pl.col("point").min().over(*conditions, *_RUN, "digest")
    )
    yield from _points(measured if work is None else work, conditions, once)
    if no_effect := _like_default(runs):
        words = "changes nothing: its" if len(no_effect) == 1 else "change nothing: their"
        yield f"{listed(no_effect)} {words} results are those of the default runs, bit for bit, at all points."
    for name in conditions:
        if runs[name].n_unique() > 1 and _changes_nothing(runs, name, [one for one in conditions if one != name]):
            yield f"{name} changes nothing: results are the same, bit for bit, at all its values."


def _like_default(runs: pl.DataFrame) -> list[str]:
    """The treatments whose results are those of the default run at every point."""
    default = runs.filter(pl.col("treatment") == "default").select("point", "baseline", default="digest")
    treated = runs.filter(pl.col("job").is_null(), pl.col("treatment") != "default")
    same = treated.join(default, on=["point", "baseline"], how="left").group_by("treatment", maintain_order=True)
    found = same.agg((pl.col("digest") == pl.col("default")).fill_null(value=False).all().alias("same"))
    return found.filter("same")["treatment"].to_list()


def _points(table: pl.DataFrame, conditions: Sequence[str], once: bool) -> Iterator[str]:
    """How many points repeat another one of their condition, and in which runs."""
    treatments = table["treatment"].unique(maintain_order=True).to_list()
    by_count: dict[tuple[int, int, tuple[str, ...]], list[str]] = {}
    for treatment in treatments:
        of = table.filter(pl.col("treatment") == treatment)
        points, repeats = (rows["point"].n_unique() for rows in (of, of.filter(pl.col("same_as") < pl.col("point"))))
        if repeats:
            by_count.setdefault((repeats, points, _constant(of, conditions)), []).append(treatment)
    for (repeats, points, constant), names in by_count.items():
        whose = "" if names == treatments else f" in {listed(names)} runs"
        yield sentence(repeats, points, constant, what="point", whose=whose, once=once)


def _constant(table: pl.DataFrame, conditions: Sequence[str]) -> tuple[str, ...]:
    """Which of placements and seeds change nothing in any condition."""
    varied = [name for name in ("placement", "seed") if table[name].n_unique() > 1]
    if table.group_by(*conditions, "baseline").agg(pl.col("same_as").n_unique())["same_as"].max() == 1:
        return tuple(f"{name}s" for name in varied)
    found = []
    for name, other in (("placement", "seed"), ("seed", "placement")):
        groups = table.group_by(*conditions, "baseline", other).agg(pl.col(name, "same_as").n_unique())
        if groups[name].max() != 1 and groups["same_as"].max() == 1:
            found.append(f"{name}s")
    return tuple(found)


def _changes_nothing(runs: pl.DataFrame, name: str, others: Sequence[str]) -> bool:
    """Whether all values of a column have the same results, wherever points differ in nothing else."""
    groups = runs.group_by(*others, "placement", "seed", *_RUN).agg(
        pl.col(name).n_unique().alias("values"),
        pl.col("digest").n_unique(),
        pl.col("digest").null_count().alias("none"),
    )
    compared = groups.filter(pl.col("values") > 1)
    return compared.height > 0 and bool(((compared["digest"] == 1) & (compared["none"] == 0)).all())
