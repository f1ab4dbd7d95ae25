"""The prediction of times in Smith et al. 2018: its Tables II and III, and other counters, runs and hyperparameters.

Errors are in seconds of a timestep of as many iterations as the paper's, so that they can be compared with its own.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import polars as pl

from fairlane.learn.predict.clusters import local
from fairlane.learn.predict.hyperparameters import Given
from fairlane.learn.predict.parts import PARTS
from fairlane.learn.predict.table import CounterTable
from fairlane.learn.predict.validation import FOLDS, Comparison, compare
from fairlane.sim.runner.counters import FEATURES

if TYPE_CHECKING:
    from fairlane.learn.models import RegressorName
    from fairlane.learn.predict.hyperparameters import Given, Named
    from fairlane.learn.predict.table import CounterTable
    from fairlane.learn.predict.validation import Comparison
    from fairlane.study.sql import Database
    from fairlane.study.tasks.task import Stopwatch

ITERATIONS = 2500
"""Iterations of a timestep of the paper."""
TUNED_FROM = 20
"""Runs from which hyperparameters are tuned: fewer are too few to be divided twice."""
OF_THE_TIME: "Named" = "2018"
"""Hyperparameters where there is one set only: defaults of the library in the year of the paper."""
BOOSTING: Mapping[str, str] = {"model": "gbm", "setting": "inductive"}

Frames = dict[str, pl.DataFrame]


def hyperparameters(arguments: Mapping[str, Any], _watch: "Stopwatch") -> dict[str, dict[str, list[Any]]]:
    """A row for each hyperparameter that is given, as ``forest.max_features``; others are the defaults of 2018."""
    rows = [(*key.split("."), float(value)) for key, value in arguments.items()]
    columns = ("regressor", "name", "value")
    return {"given": {column: [row[at] for row in rows] for at, column in enumerate(columns)}}


def _given(tables: "Database") -> "Given | None":
    """Return the hyperparameters of the study ``hyperparameters``, if it has any."""
    whole = {"n_estimators", "max_depth", "min_samples_leaf"}
    hyperparameters: dict[str, dict[str, Any]] = {}
    for model, name, value in tables.ask("SELECT * FROM hyperparameters.given").iter_rows():
        hyperparameters.setdefault(model, {})[name] = int(value) if name in whole else value
    return Given(**hyperparameters) if hyperparameters else None


def by_parts(tables: "Database") -> Frames:
    """Table II: models on the counters, and on their low-rank and sparse parts, with what they predict.

    ``table_2_differences`` has paired differences of mean square errors: between forest and boosting, between sparse
    parts and the counters themselves, and between the transductive and the inductive setting. With hyperparameters of
    the study of that name there is boosting and the forest with these only, inductively.
    """
    table = _table(_regular(tables, "runs"))
    folds = _folds(tables, table)
    if given := _given(tables):
        models: tuple[RegressorName, ...] = ("gbm", "forest")
        return {"table_2": compare(table, models=models, hyperparameters=(given,), transductive=False, **folds).table}
    chosen: tuple[Named, ...] = (OF_THE_TIME,)
    if table.runs >= TUNED_FROM:
        chosen = (OF_THE_TIME, "tuned")
    comparison = compare(table, hyperparameters=chosen, **folds)
    differences = pl.DataFrame(list(_of_parts(comparison, chosen)))
    return {"table_2": comparison.table, "table_2_differences": differences, "predictions_2": comparison.predictions}


def _of_parts(comparison: "Comparison", hyperparameters: Iterable[str]) -> Iterator[dict[str, Any]]:
    for kind in hyperparameters:
        gbm = {**BOOSTING, "hyperparameters": kind}
        for part in PARTS:
            forest, boosting = ({**gbm, "model": model, "parts": part} for model in ("forest", "gbm"))
            yield _difference(comparison, f"forest - boosting, {part}", forest, boosting, hyperparameters=kind)
        sparse, base = ({**gbm, "parts": part} for part in ("sparse", "base"))
        yield _difference(comparison, "sparse - base, boosting", sparse, base, hyperparameters=kind)
        for model in ("gbm", "forest") if kind != "tuned" else ():
            for part in PARTS[1:]:
                inside = {**gbm, "model": model, "parts": part}
                both = {**inside, "setting": "transductive"}
                difference = f"transductive - inductive, {model}, {part}"
                yield _difference(comparison, difference, both, inside, hyperparameters=kind)


def by_clusters(tables: "Database") -> Frames:
    """Table III: one, two and three models for clusters of runs, on sparse parts, with what they predict."""
    table = _table(_regular(tables, "runs"))
    given = _given(tables)
    comparison = local(table, hyperparameters=given or OF_THE_TIME, transductive=given is None, **_folds(tables, table))
    return {"table_3": comparison.table, "predictions_3": comparison.predictions}


def by_kinds(tables: "Database") -> Frames:
    """Table III for runs whose other jobs are of one kind, and for as large ones in which they are mixed.

    Each run is known by its kind and seed. With known kinds there is a model for each kind; ``adjusted_rand`` is how
    well the clusters of held-out runs agree with the kinds (L. Hubert, P. Arabie, "Comparing partitions", Journal of
    Classification 2, 1985): the mean over folds, 1 for the same, 0 for what chance gives. ``kinds_differences`` has the
    paired differences of mean square errors from those of one model.
    """
    errors, differences = [], []
    for background, study in (("of one kind", "kinds"), ("mixed", "eighth")):
        rows = _regular(tables, study)
        kinds = dict(rows.select("run", "kind").unique().iter_rows()) if study == "kinds" else None
        table = _table(rows)
        of_run = None if kinds is None else [kinds[name] for name in table.names]
        comparison = local(table, kinds=of_run, hyperparameters=OF_THE_TIME, **_folds(tables, table))
        for row in comparison.table.iter_rows(named=True):
            model = {"clusters": row["clusters"], "setting": row["setting"]}
            baseline = {"clusters": 1, "setting": "inductive"}
            agreement = None if kinds is None else _agreement(comparison.predictions.filter(**model), kinds)
            errors.append({"background": background, **row, "adjusted_rand": agreement})
            if model != baseline:
                difference = f"{row['clusters']} models, {row['setting']} - one model"
                differences.append(_difference(comparison, difference, model, baseline, background=background))
    return {
        "kinds_table": pl.DataFrame(errors, infer_schema_length=None),
        "kinds_differences": pl.DataFrame(differences),
    }


def _agreement(predictions: pl.DataFrame, kinds: Mapping[str, str]) -> float:
    from sklearn.metrics import adjusted_rand_score

    of_runs = predictions.unique(["run", "fold"]).sort("run")
    scores = [
        adjusted_rand_score([kinds[run] for run in of["run"]], of["cluster"]) for of in of_runs.partition_by("fold")
    ]
    return float(sum(scores) / len(scores))


def by_windows(tables: "Database") -> Frames:
    """Errors with counters of windows before timesteps and with those of the timesteps, of own and of all switches.

    Timesteps that compute more than others are left out, and those before which there is no room for the longest
    window. For comparison the time of the timestep before is a feature, alone and with the counters of the longest
    window. ``windows_differences`` has paired differences of mean square errors.
    """
    errors, differences = [], []
    for study in ("eighth", "long"):
        comparison, windows = _windows(tables, study)
        errors.append(comparison.table.select(pl.lit(study).alias("study"), pl.all()))
        differences += list(_of_windows(comparison, study, windows))
    return {"windows_table": pl.concat(errors), "windows_differences": pl.DataFrame(differences)}


BEFORE = "time of the timestep before"
ITSELF = "the timestep"


def _windows(tables: "Database", study: str) -> tuple["Comparison", list[str]]:
    """A comparison whose models are known by ``switches`` and ``counters``, and the names of windows."""
    inputs, windows = _inputs(tables, study)
    models: tuple[RegressorName, ...] = ("gbm", "ridge")
    parts = []
    for (switches, counters), rows in inputs.items():
        table = _table(rows)
        how: dict[str, Any] = {"models": models, "parts": ("base",), "hyperparameters": (OF_THE_TIME,)}
        comparison = compare(table, transductive=False, **how, **_folds(tables, table))
        names = (pl.lit(switches).alias("switches"), pl.lit(counters).alias("counters"))
        left = ("hyperparameters", "parts", "setting")
        parts.append(
            [frame.select(*names, pl.all().exclude(left)) for frame in (comparison.table, comparison.predictions)]
        )
    return Comparison(*(pl.concat(frame) for frame in zip(*parts, strict=True))), windows


def _inputs(tables: "Database", study: str) -> tuple[dict[tuple[str, str], pl.DataFrame], list[str]]:
    """Tables of the same timesteps with each input, and the names of windows from the shortest to the longest."""
    regular = _regular(tables, study)
    one_later = "seed::UINTEGER AS run, timestep + 1 AS timestep, seconds AS before"
    earlier = tables.ask(f'SELECT {one_later} FROM "{study}".own')
    keys, inputs = ["run", "timestep"], {}
    counted = regular.filter(~pl.col("extra")).join(earlier, on=keys).select(*keys, "seconds", "before")
    lengths: list[float] = tables.ask(f'SELECT DISTINCT window_s FROM "{study}".own_before ORDER BY 1')[
        "window_s"
    ].to_list()
    names = [f"{1000 * length:g} ms before" for length in lengths]
    whole = tables.ask(
        f'SELECT seed::UINTEGER AS run, timestep FROM "{study}".own_before WHERE window_s = {lengths[-1]!r}'
    )
    counted = counted.join(whole, on=keys)
    inputs["none", BEFORE] = counted
    times = counted.drop("before")
    for switches in ("own", "everywhere"):
        itself = _counters_of(tables, f'"{study}".{switches}')
        inputs[switches, ITSELF] = times.join(itself, on=keys)
        windows = _counters_of(tables, f'"{study}".{switches}_before')
        for length, name in zip(lengths, names, strict=True):
            inputs[switches, name] = times.join(windows.filter(window_s=length).drop("window_s"), on=keys)
        longest = windows.filter(window_s=lengths[-1]).drop("window_s")
        inputs[switches, f"{names[-1]}, {BEFORE}"] = counted.join(longest, on=keys)
    return inputs, names


def _counters_of(tables: "Database", table: str) -> pl.DataFrame:
    counters = "COLUMNS('^(window_s|flits_.*|stalls_.*)$')"
    return tables.ask(f"SELECT seed::UINTEGER AS run, timestep, {counters} FROM {table}")


def _of_windows(comparison: "Comparison", study: str, windows: list[str]) -> Iterator[dict[str, Any]]:
    """Of boosting: each window against the timestep itself, all switches against own ones, both against persistence."""

    def model(switches: str, counters: str) -> dict[str, str]:
        return {"model": "gbm", "switches": switches, "counters": counters}

    persistent = model("none", BEFORE)
    for switches in ("own", "everywhere"):
        itself = model(switches, ITSELF)
        for name in windows:
            difference = f"{switches}: {name} - {ITSELF}"
            yield _difference(comparison, difference, model(switches, name), itself, study=study)
        for name in (ITSELF, windows[-1], f"{windows[-1]}, {BEFORE}"):
            difference = f"{switches}: {name} - {BEFORE} alone"
            yield _difference(comparison, difference, model(switches, name), persistent, study=study)
    for name in (ITSELF, *windows):
        difference = f"{name}: everywhere - own"
        yield _difference(comparison, difference, model("everywhere", name), model("own", name), study=study)


def _difference(
    comparison: "Comparison", title: str, first: Mapping[str, Any], second: Mapping[str, Any], **names: str
) -> dict[str, Any]:
    off = comparison.difference(first, second)
    return {**names, "difference": title, "mse": off.mse, "low": off.low, "high": off.high}


def _regular(tables: "Database", study: str) -> pl.DataFrame:
    """Timesteps of a study but for those to warm up. A run is its seed, and its kind if there are several."""
    kind = study == "kinds"
    name, same = ("o.kind || ' ' || o.seed", "AND r.kind = o.kind") if kind else ("o.seed::UINTEGER", "")
    return tables.ask(
        f"""SELECT {name} AS run, {"o.kind," if kind else ""} o.timestep, o.extra,
            o.seconds * ({ITERATIONS} / r.iterations) AS seconds, COLUMNS('^(flits|stalls)_')
        FROM "{study}".own o JOIN "{study}".run r ON r.seed = o.seed {same}
        WHERE NOT o.warmup ORDER BY o.point, o.timestep"""
    )


def _table(rows: pl.DataFrame) -> "CounterTable":
    """Without virtual channels that no packet takes: they say nothing."""
    used = [name for name in (*FEATURES, "before") if name in rows.columns and rows[name].n_unique() > 1]
    return CounterTable.of(rows.select("run", "timestep", "seconds", *used))


def _folds(tables: "Database", table: "CounterTable") -> dict[str, Any]:
    return {"folds": min(FOLDS, table.runs), "seed": int(tables.ask("SELECT seed FROM replicate").item())}
