"""What explains the time per iteration in a designed study: shares of the variance by factor and pair of factors."""

from collections.abc import Mapping
from typing import Any

import altair

from fairlane.results.manifest import Sealed
from fairlane.results.parquet import read_tables
from fairlane.results.schemas import STUDY
from fairlane.results.study import STUDY_SCHEMA_VERSION, StudyResults
from fairlane.views.charts import Axis, Layer, chart, choice, colour, described, layers
from fairlane.views.model import Chart
from fairlane.views.tables import Column, Table, fixed
from fairlane.wording import percent

MOST_TERMS = 8
"""Of a job with more terms, a terminal leaves the others out."""
CERTAIN = 0.05
"""The p below which an effect is beyond chance."""
RESIDUAL = "residual"
_FILE = "effects.parquet"
_ABOUT = (
    "Factor: time of an iteration at the worst level over that at the best. Share: of the variation of its logarithm. "
    "p: chance of so large a share if there is no effect (F test)."
)
_VERDICTS = (f"p below {CERTAIN:g}", "chance, or not known")
_FACTOR = Column("factor", "factor", fixed(3))
_SHARE = Column("share", "share", lambda share: f"{share:.1%}")
_P = Column("p", "p", lambda p: f"{p:.2g}")

Rows = list[dict[str, Any]]


def terms_of(studies: Mapping[str, StudyResults]) -> Rows:
    """By job and term: factor, share of the variance and p; none of studies that are not designed.

    Raises ``ResultsError`` if the table has changed since it was written.
    """
    rows: Rows = []
    for name, study in studies.items():
        if study.folder is None or not (study.folder / _FILE).is_file():
            continue
        sealed = Sealed.open(study.folder, "study", STUDY_SCHEMA_VERSION)
        if _FILE in sealed:
            found = read_tables(sealed, {"effects": STUDY["effects"]})["effects"].to_dicts()
            rows += [{**row, "job": f"{name}: {row['name']}" if len(studies) > 1 else row["name"]} for row in found]
    return rows


def terms_table(terms: Rows) -> Table:
    """The terms that explain most of each job's time, and what no term explains."""
    rows: Rows = []
    for job in dict.fromkeys(row["job"] for row in terms):
        own = [row for row in terms if row["job"] == job]
        rows += [row for row in own if row["term"] != RESIDUAL][:MOST_TERMS]
        rows += [row for row in own if row["term"] == RESIDUAL]
    columns = [Column("job", "job", once=True), Column("effect of", "term", left=True, wrap=True), _FACTOR, _SHARE, _P]
    return Table(columns, rows, "Effects on the time per iteration", _ABOUT, sentence=_sentence(terms))


def terms_chart(terms: Rows) -> Chart:
    """Shares of the variance; the job is chosen."""
    known = [row for row in terms if row["share"] is not None]
    certain = [{**row, "verdict": _VERDICTS[not (row["p"] is not None and row["p"] < CERTAIN)]} for row in known]

    def spec() -> altair.LayerChart:
        told, tooltip = described(certain, [Column("job", "job"), Column("effect of", "term"), _FACTOR, _SHARE, _P])
        job, chosen = choice("design_job", "Job", list(dict.fromkeys(row["job"] for row in certain)), "job")
        share = Axis.of([0.0, *(row["share"] for row in certain)], "Share of the variance", "share", scale="linear")
        y = altair.Y("term:N", title=None, sort=altair.EncodingSortField("share", op="max", order="descending"))
        bars = chart(told).transform_filter(chosen).mark_bar(size=13)
        every: list[Layer] = [
            bars.encode(
                x=share.x("share"),
                x2=altair.datum(0),
                y=y,
                color=colour("verdict", _VERDICTS, greys=_VERDICTS[1:]),
                tooltip=tooltip,
            ).add_params(job)
        ]
        return layers(0, *every, zoom=("x",)).properties(height=altair.Step(20))

    note = (
        "Share of the variance of the logarithm of the time per iteration, by factor and by pair of factors. Residual: "
        "what is left to chance."
    )
    title = "What explains the time per iteration"
    return Chart("design", title, spec, _sentence(terms), note, terms, wide=True, only_page=True)


def _sentence(terms: Rows) -> str:
    known = [row for row in terms if row["share"] is not None and row["term"] != RESIDUAL]
    if not known:
        return "No factor is separated from the others by the sample."
    most = max(known, key=lambda row: row["share"])
    return f"{most['term']} explains most of the variance for {most['job']}: {percent(most['share'])}."
