"""The base of fitted models: files read or refused, arrays that fit, held-out predictions, intervals, errors."""

from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.core.errors import ScenarioError
from fairlane.learn.models import COUNTERS, Dims, FittedModel, Floats, Part, PerCounter, read_table
from fairlane.learn.models.validation import ErrorMetrics, assign_folds, conformal_quantile, cross_validate


class Scale(Part):
    """Part of a model."""

    centre: PerCounter


class Small(FittedModel):
    """A model with arrays."""

    FORMAT: ClassVar[str] = "small 2"
    scale: Scale
    axes: Annotated[Floats, Dims(("axes", COUNTERS))]
    strengths: Annotated[Floats, Dims(("axes",), sign="positive")]


def small(**changes: object) -> Small:
    data = {
        "format": "small 2",
        "version": "1",
        "scale": {"centre": [1.0, 2.0, 1 / 3]},
        "axes": [[1, 0, 0], [0, 1, 1e-300]],
        "strengths": [0.1, 7],
    }
    return Small.model_validate(data | changes)


@pytest.mark.parametrize("name", ["model.json", "model.toml"])
def test_a_model_is_the_same_after_reading(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    small().save(path)
    read = Small.load(path)
    assert read.model_dump_json() == small().model_dump_json()
    first = path.read_bytes()
    read.save(path)
    assert path.read_bytes() == first


def test_files_of_another_schema_or_changed_ones_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    small().save(path)
    text = path.read_text()
    cases = {
        "small 1": text.replace("small 2", "small 1"),
        "format: missing": text.replace('"format": "small 2", ', ""),
        "is not that of the file": text.replace("0.1", "0.2"),
        "sha256: missing": "{" + text[text.index('"format"') :],
        "axes": text.replace("[1.0, 0.0, 0.0]", "[1.0, 0.0]"),
        "not valid JSON": text[:-9],
        "without keys": "[]",
    }
    for words, content in cases.items():
        path.write_text(content)
        with pytest.raises(ScenarioError, match=words) as caught:
            Small.load(path)
        assert str(path) in str(caught.value)
    with pytest.raises(ScenarioError, match="cannot be read"):
        Small.load(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"strengths": [0.1]}, "1 axes, while axes has 2"),
        ({"scale": {"centre": [1.0]}}, "3 counters, while scale.centre has 1"),
        ({"strengths": [0.1, 0.0]}, "not all are finite and positive"),
        ({"axes": [[1, 0, float("nan")], [0, 1, 0]]}, "not all are finite"),
        ({"axes": [1, 0, 0]}, "not an array of axes x counters"),
        ({"axes": [["a"]]}, "not an array of numbers with 2 dimensions"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(changes: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        small(**changes)


@given(st.lists(st.integers(0, 6), min_size=7, max_size=40), st.integers(2, 5), st.integers(0, 9))
def test_held_out_predictions_do_not_know_their_group(groups: list[int], folds: int, seed: int) -> None:
    group = np.unique(groups, return_inverse=True)[1]
    fold = assign_folds(group, folds, np.random.default_rng(seed))
    assert all(len(set(fold[group == one])) == 1 for one in group)
    sizes = np.bincount([fold[group == one][0] for one in np.unique(group)], minlength=folds)
    assert sizes.max() - sizes.min() <= 1
    truth = np.arange(len(group), dtype=float)
    # A model that always predicts the sum of what it was fitted to.
    predicted = cross_validate(fold, lambda out: np.full(out.sum(), truth[~out].sum()))
    assert predicted == pytest.approx([truth[fold != own].sum() for own in fold])


def test_the_conformal_quantile_covers_what_it_says() -> None:
    assert conformal_quantile(np.arange(1.0, 10.0), 0.8) == 8, "the 8th of 9: 8 of 10 places for one more"
    rng = np.random.default_rng(1)
    inside = [rng.exponential() <= conformal_quantile(rng.exponential(size=19), 0.8) for _ in range(4000)]
    # 0.8 with a standard deviation of sqrt(0.8 * 0.2 / 4000) = 0.0063.
    assert np.mean(inside) == pytest.approx(0.8, abs=5 * 0.0063)


def test_error_metrics_by_hand() -> None:
    found = ErrorMetrics.of(np.array([1.1, 0.7, 1.0]), np.array([1.2, 1.0, 0.8]))
    assert found.model_dump() == {
        "count": 3,
        "mean_error": pytest.approx(0.4 / 3, abs=1e-4),
        "p90_error": pytest.approx(0.1 + 0.8 * 0.2, abs=1e-4),  # between the second and the third of 0, 0.1, 0.3
        "bias": pytest.approx(-0.2 / 3, abs=1e-4),
        "baseline_error": pytest.approx(0.4 / 3, abs=1e-4),
    }


def test_a_table_with_a_former_column_is_refused_with_the_present_name(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    pl.DataFrame({"beside": ["x"], "seed": [1]}).write_csv(path)
    words = 'co_scheduled: the column "beside" has this name now'
    with pytest.raises(ScenarioError, match=words):
        read_table(path, ("co_scheduled", "seed"), renamed={"beside": "co_scheduled"})
    with pytest.raises(ScenarioError, match="cap: there is no such column"):
        read_table(path, ("cap",))
    assert read_table(path, ("seed",), text=("seed",))["seed"].to_list() == ["1"]
