"""Adds what was found in a recording to an NWB file: scores, embedding, decisions, settings.

Everything is a plain table or time series of the specification, so that pynwb reads it without an
extension and any viewer of NWB files shows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from napari_xcebra.attribution.methods import method_named
from napari_xcebra.errors import InputError
from napari_xcebra.io.formats.nwb.behavior import clock_of, plain_name
from napari_xcebra.io.formats.nwb.walk import RESULTS
from napari_xcebra.recording.recording import Recording

if TYPE_CHECKING:
    import pandas as pd

    from napari_xcebra.attribution import Attribution
    from napari_xcebra.learn import Fit


class _TableColumn(NamedTuple):
    """Values of a column, and what it holds."""

    values: Any
    description: str


def _holds_something(values: Any) -> bool:
    """Whether any value is known."""
    values = np.asarray(values)
    return values.dtype.kind != "f" or not np.isnan(values).all()


def _factor_columns(first: Attribution) -> dict[str, _TableColumn]:
    """A row for each factor: its variables, verdict and goodness of fit."""
    parts, fit = first.parts, first.fit
    by_factor = {
        "factor": _TableColumn([part.name for part in parts], "name of the factor"),
        "variables": _TableColumn([", ".join(part.variables) for part in parts], "its variables"),
        "map": _TableColumn([first.method] * len(parts), "map that `score` is by"),
        "above_chance": _TableColumn(
            [first.was_found(part.name) for part in parts],
            "False if the map of the factor means nothing",
        ),
        "verdict": _TableColumn(
            [first.verdicts[part.name] for part in parts], "verdict on the factor"
        ),
        "latents": _TableColumn(
            [part.stop - part.start for part in parts], "columns of the embedding"
        ),
    }
    if fit is not None:
        for name, text in (
            ("goodness", "nats above chance on held-out frames"),
            ("r2", "held-out R² of the variables, read from the latents"),
            ("ridge_r2", "the same of a ridge regression from the cells"),
            ("encoder_share", "of the trained encoder in its mean with the regression"),
            ("p", "of the cells telling the labels that well by chance"),
        ):
            values = np.array([getattr(fit.goodness[part.name], name) for part in parts], float)
            if _holds_something(values):
                by_factor[name] = _TableColumn(values, text)
    return by_factor


def _made_with(attributions: Sequence[Attribution], threshold: float) -> dict[str, _TableColumn]:
    """A row for each setting and version: name, value and meaning."""
    first = attributions[0]
    rows = [
        ("threshold", f"{threshold:g}", "z above which a cell is above threshold"),
        ("maps", ", ".join(each.method for each in attributions), "maps of the cells"),
        ("aggregate", first.aggregate, "how scores of single frames are combined"),
        ("frames", str(first.n_frames), "frames that the scores are taken over"),
    ]
    fit = first.fit
    if fit is not None:
        rows += [
            (f"version of {name}", version, "that it was trained with")
            for name, version in fit.versions.items()
        ]
        rows += [
            (knob.name.rstrip("_"), str(getattr(fit.settings, knob.name)), knob.metadata["help"])
            for knob in fields(fit.settings)
        ]
        rows += [
            (f"lambda of {part.name}", f"{part.lambda_:g}", "λ that training ended with")
            for part in fit.parts
            if not np.isnan(part.lambda_)
        ]
        rows += [("steps done", str(fit.steps), "training steps")]
    rows += [("note", note, "") for note in _notes(first)]
    settings, values, help = zip(*rows, strict=True)
    return {
        "setting": _TableColumn(settings, "name of the setting"),
        "value": _TableColumn(values, "its value"),
        "meaning": _TableColumn(help, "what it means"),
    }


def _notes(attribution: Attribution) -> Iterable[str]:
    return (*(attribution.fit.notes if attribution.fit else ()), *attribution.notes)


WORDS = 4 * 2**20
"""Bytes that names, descriptions and the specification itself take in a file, at most."""
MEANINGS = {
    "cell": "id of the cell",
    "z": "score in standard deviations over the cells of the recording",
    "selected": "whether z is above the threshold",
    "low": "5 % of the score, over stretches of the recording",
    "high": "95 % of the score, over stretches of the recording",
    "of_explainable": "score as a share of the variance that is not frame-to-frame noise",
    "beside_variables": "what the factor adds to the other variables, as a share of variance",
    "beside_state": "what the factor adds to the unobserved state, as a share of variance",
    "interaction": "share of the tunings to other factors that this factor scales",
    "lag": "seconds by which the cell follows the behaviour; negative if it leads",
    "lag_error": "standard error of the lag in seconds",
    "sign": "1 if the cell rises with the variable, -1 if it falls",
    "p": "of such a score by chance, from labels shifted, reordered or permuted",
    "q": "p after Benjamini and Hochberg, over the cells",
    "q_beside_variables": "q beside the other variables alone, without the unobserved state",
    "score_mean": "mean of the score over trainings with other seeds",
    "score_sd": "standard deviation of the score over trainings with other seeds",
    "z_mean": "mean of z over trainings with other seeds",
    "rank_low": "best rank over trainings with other seeds",
    "rank_high": "worst rank over trainings with other seeds",
    "stable": "whether every training puts the cell on the same side of the threshold",
    "status": "accepted, rejected or undecided",
    "by": "who decided: by hand, a threshold, the extractor, or a proposal",
    "tags": "tags, separated by semicolons",
    "note": "what the curator wrote",
    "curator": "who decided",
    "time": "when it was decided",
}
"""What the columns of the tables hold."""


@dataclass(frozen=True, eq=False)
class Results:
    """What was found in one recording.

    Parameters
    ----------
    attributions : sequence of Attribution
        Maps of one fit, the one to look at first before others.
    embedding : (frames, latents) float32 or None
        NaN at frames whose window leaves its trial.
    decisions : DataFrame or None
        One row per cell: cell, status and more.
    threshold : float
        z above which a cell counts as above threshold.
    """

    attributions: Sequence[Attribution]
    embedding: np.ndarray | None
    decisions: pd.DataFrame | None
    threshold: float

    @classmethod
    def of(
        cls,
        recording: Recording,
        attributions: Sequence[Attribution],
        decisions: pd.DataFrame | None,
        threshold: float,
    ) -> Results:
        """Check that the maps belong to the recording and to one fit, and embed its frames."""
        for each in attributions:
            if not np.array_equal(each.cell_ids, np.asarray(recording.cell_ids)):
                raise InputError(
                    f"The {each.method} scores have {len(each.cell_ids)} cells, but not those of "
                    f"the recording ({recording.n_cells}): give the recording they were made with."
                )
            if each.parts != attributions[0].parts:
                raise InputError(
                    f"{each.method} and {attributions[0].method} are of different trainings: write "
                    "a file for each."
                )
        fit = attributions[0].fit if attributions else None
        return cls(attributions, _embedding(fit, recording), decisions, threshold)

    def room(self, recording: Recording) -> int:
        """Bytes that results and behaviour take in a file, at most."""
        columns = 2 + sum(v.values.shape[1] for v in recording.behavior.values())
        of_frames = 16 * columns + (0 if self.embedding is None else 4 * self.embedding.shape[1])
        tables = 1 + sum(len(each.parts) for each in self.attributions)
        return of_frames * recording.n_frames + 500 * tables * recording.n_cells + WORDS


class RoiRows(NamedTuple):
    """A table of ROIs in a file, and which of its rows are cells of the recording.

    Parameters
    ----------
    table : pynwb.ophys.PlaneSegmentation
    rows : (n,) int
        Rows of the table.
    cells : slice
        The same cells in the recording.
    """

    table: Any
    rows: np.ndarray
    cells: slice


def _embedding(fit: Fit | None, recording: Recording) -> np.ndarray | None:
    if fit is None or not fit.weights:
        return None
    from napari_xcebra.attribution.over_time import embedding_by_frame

    return embedding_by_frame(fit, recording)


def add_results(
    nwb: Any, file: Any, planes: Sequence[RoiRows], recording: Recording, found: Results
) -> None:
    """Add a processing module with the results; none if there are no results.

    Parameters
    ----------
    nwb : module
        pynwb.
    file : pynwb.NWBFile
    planes : sequence of RoiRows
        Together all cells of the recording, in its order.
    """
    if not found.attributions and found.decisions is None:
        return
    module = file.create_processing_module(
        name=RESULTS,
        description="Which cells carry which variable, found by napari-xcebra (xCEBRA)",
    )
    tables = _Tables(nwb, module)
    if found.attributions:
        for factor in found.attributions[0].factors:
            columns = _score_columns(found, factor)
            tables.add_by_cell(f"scores_{factor}", _about(found, factor), columns, planes)
        first = found.attributions[0]
        about = "What the cells were asked about, and what was found"
        tables.add("factors", about, _factor_columns(first))
        about = "Settings and versions that the results were made with"
        tables.add("settings", about, _made_with(found.attributions, found.threshold))
        _add_embedding(nwb, module, recording, found)
    if found.decisions is not None:
        columns = _decision_columns(found.decisions, np.asarray(recording.cell_ids))
        tables.add_by_cell("decisions", "Which cells were accepted or rejected", columns, planes)


class _Tables:
    """Puts tables into a processing module."""

    def __init__(self, nwb: Any, module: Any) -> None:
        self._nwb, self._module = nwb, module

    def add(
        self, name: str, about: str, columns: Mapping[str, _TableColumn], roi: Any = None
    ) -> None:
        """A table, whose rows refer to ROIs if these are given."""
        core = self._nwb.core
        made = [] if roi is None else [roi]
        for key, (values, description) in columns.items():
            values = np.asarray(values)
            data = [str(each) for each in values] if values.dtype.kind in "OU" else values
            made.append(core.VectorData(name=key, description=description, data=data))
        name = plain_name(name, self._module.data_interfaces)
        self._module.add(core.DynamicTable(name=name, description=about, columns=made))

    def add_by_cell(
        self, name: str, about: str, columns: Mapping[str, _TableColumn], planes: Sequence[RoiRows]
    ) -> None:
        """A table with a row for each cell; one for each table of ROIs, if there are several."""
        for rois in planes:
            refers = self._nwb.core.DynamicTableRegion(
                name="roi", description="the ROI", data=rois.rows.tolist(), table=rois.table
            )
            own = {
                key: _TableColumn(np.asarray(values)[rois.cells], description)
                for key, (values, description) in columns.items()
            }
            called = name if len(planes) == 1 else f"{name}_{rois.table.name}"
            self.add(called, about, own, refers)


def _score_columns(found: Results, factor: str) -> dict[str, _TableColumn]:
    """Columns of one factor: the first map with its test, its latents, and the other maps."""
    first = found.attributions[0]
    table = first.table(factor, found.threshold).drop(columns="at_chance")
    columns = {"score": _TableColumn(table.pop("score"), f"score by {_told(first)}")}
    for name in table:
        text = MEANINGS.get(str(name), f"{name} of {first.method}")
        if name == "selected":
            text = f"whether z is above the threshold, {found.threshold:g}"
        columns[str(name)] = _TableColumn(table[name].to_numpy(), text)
    for each in found.attributions:
        own = each.method.replace("-", "_")
        if each is not first:
            columns[own] = _TableColumn(each.score(factor), f"score by {_told(each)}")
        part = each.part(factor)
        if each.has_latents and part.stop - part.start > 1:
            for i in range(part.stop - part.start):
                text = f"score by {each.method} for latent {i + 1} of the factor"
                columns[f"{own}_latent_{i + 1}"] = _TableColumn(each.latent(factor, i), text)
    known = {key: each for key, each in columns.items() if _holds_something(each.values)}
    return {"cell": known.pop("cell"), **known}


def _told(attribution: Attribution) -> str:
    return f"{attribution.method} ({method_named(attribution.method).unit})"


def _about(found: Results, factor: str) -> str:
    """Which map it is, and how far to believe it."""
    first = found.attributions[0]
    told = [f"How much each cell carries {factor}, by {first.method}.", first.verdicts[factor]]
    if first.significance is not None:
        told.append(first.significance.how(factor))
    return " ".join(filter(None, told))


def _decision_columns(decisions: pd.DataFrame, cell_ids: np.ndarray) -> dict[str, _TableColumn]:
    by_cell = decisions.drop_duplicates("cell").set_index("cell").reindex(cell_ids)
    columns = {"cell": _TableColumn(cell_ids, MEANINGS["cell"])}
    for name in (name for name in by_cell if name in MEANINGS):
        columns[str(name)] = _TableColumn(by_cell[name].fillna("").astype(str), MEANINGS[str(name)])
    return columns


def _add_embedding(nwb: Any, module: Any, recording: Recording, found: Results) -> None:
    if found.embedding is None:
        return
    labels = [
        f"{part.name} {i + 1}"
        for part in found.attributions[0].parts
        for i in range(part.stop - part.start)
    ]
    told = "; ".join(f"column {i}: {label}" for i, label in enumerate(labels))
    module.add(
        nwb.TimeSeries(
            name="embedding",
            data=nwb.H5DataIO(found.embedding, compression="gzip", shuffle=True),
            unit="n.a.",
            description=f"Embedding of the cells' activity; latents by factor: {told}",
            comments="NaN at frames whose window leaves its trial.",
            **clock_of(recording),
        )
    )
