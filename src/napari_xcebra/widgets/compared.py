"""All that is known of the run that is shown, by every method and statistic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from napari_xcebra.attribution.comparison import Comparison, compare
from napari_xcebra.attribution.method_notes import METHODS
from napari_xcebra.attribution.single_cell import STATISTICS
from napari_xcebra.widgets.score_map import attribution_of
from napari_xcebra.widgets.statistics_store import applicable, statistics_of

if TYPE_CHECKING:
    from napari_xcebra.attribution import Attribution
    from napari_xcebra.widgets.session import Session


def comparison_of(session: Session) -> Comparison | None:
    """Methods and statistics that are there for the shown run; None without any method."""
    opened, run, attributions = session.current, session.shown_run, computed(session)
    if opened is None or run is None or not attributions:
        return None
    return compare(attributions, statistics_of(session).of(opened, run))


def computed(session: Session) -> dict[str, Attribution]:
    """Attributions of the shown run for the cells of the recording, by method in their order."""
    run, recording = session.shown_run, session.recording
    found = {method: attribution_of(run, method, recording) for method in METHODS}
    return {method: one for method, one in found.items() if one is not None}


def missing(session: Session) -> tuple[list[str], list[str]]:
    """Methods, and statistics of any factor, that are not there for the shown run."""
    opened, run = session.current, session.shown_run
    if opened is None or run is None:
        return [], []
    done = computed(session)
    answered = statistics_of(session).answered(opened, run)
    wanted = {n for part in run.fit.parts for n in applicable(opened.recording, part.variables)}
    lacking = [name for name in STATISTICS if name in wanted - answered]
    return [method for method in METHODS if method not in done], lacking
