"""Scores, tests and repeats runs, tries numbers of latents, and runs sweeps."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from qtpy.QtCore import QUrl
from qtpy.QtGui import QDesktopServices
from qtpy.QtWidgets import QFileDialog, QWidget

from napari_xcebra.attribution.comparison import Comparison, compare
from napari_xcebra.attribution.methods import METHODS, method_behind, method_named, title_of_method
from napari_xcebra.attribution.score_map import attribution_of
from napari_xcebra.attribution.shift_test.result import Significance, seconds_to_test
from napari_xcebra.attribution.single_cell import STATISTICS, CellStatistics, applicable
from napari_xcebra.batch.running import ComputePlace
from napari_xcebra.errors import InputError
from napari_xcebra.jobs import Call, Cancelled, Failed, Finished, Job, tasks
from napari_xcebra.learn.data.factors import latents_for
from napari_xcebra.learn.training.progress import seconds_to_fit
from napari_xcebra.report import exports
from napari_xcebra.widgets.services.jobs import SEVERAL, JobQueue, Processes, Work, while_exists
from napari_xcebra.widgets.state.signals import OfState, Signal

if TYPE_CHECKING:
    from napari_xcebra.attribution import Attribution
    from napari_xcebra.attribution.stability import Stability
    from napari_xcebra.batch import Sweep
    from napari_xcebra.jobs import Event
    from napari_xcebra.learn import Fit
    from napari_xcebra.learn.data.factors import Factor
    from napari_xcebra.learn.quality.consistency import Dimensions
    from napari_xcebra.learn.settings import FitSettings
    from napari_xcebra.recording import Recording
    from napari_xcebra.runs import Run
    from napari_xcebra.widgets.state.state import State
    from napari_xcebra.widgets.window import Services
    from napari_xcebra.workspace_file import Opened


Kind = Literal["scores", "test", "repeat"]


class RunJobs(OfState):
    """Asks for work on runs, and adds the results to them.

    A run may be renamed or removed meanwhile, so it is identified by its fit.
    """

    def __init__(self, state: State, jobs: JobQueue) -> None:
        super().__init__(state)
        self._jobs = jobs
        self._seconds: list[tuple[Fit, float]] = []

    def awaits(self, kind: Kind, run: Run) -> bool:
        """Whether such work on a run is under way, or waits for its turn."""
        return self._jobs.awaits((kind, id(run.fit)))

    def score(self, opened: Opened, run: Run, *methods: str) -> Job | None:
        """Score the cells of a run by some methods, once other work is done."""
        return self._jobs.ask(*(self._score(opened, run.fit, method) for method in methods))

    def test(self, opened: Opened, run: Run) -> None:
        """Test the cells of a run against chance for all factors, once other work is done."""
        if self.awaits("test", run):
            return
        fit = run.fit

        def keep(significance: Significance) -> None:
            if (run := opened.run_of(fit)) is not None:
                self.state.replace_run(run.name, run.with_significance(significance))

        call = tasks.SIGNIFICANCE(fit, opened.recording)
        key = ("test", id(fit))
        self._jobs.ask(self._work(opened, "the test against chance", call, keep, key))

    def repeat(self, opened: Opened, run: Run, method: str, more: int) -> None:
        """Train with more seeds once other work is done, and score the cells by a method.

        That of a consensus is the method it is of.
        """
        method, fit = method_behind(method), run.fit
        if method not in run.attributions or self.awaits("repeat", run):
            return
        if fit.architecture:
            self._jobs.said.emit(NOT_TRAINED_HERE, "problem", "")
            return
        first = run.attributions[method]
        known = first.stability.seeds if first.stability else (first.seed,)

        def keep(found: Stability) -> None:
            run = opened.run_of(fit)
            if run is not None and method in run.attributions:
                self.state.replace_run(run.name, run.with_stability(found))

        call = tasks.STABILITY(
            _with_cells_of(fit, opened.recording),
            run.factors,
            fit.settings,
            tuple(range(max(known) + 1, max(known) + 1 + more)),
            method,
            frames=method_named(method).frames,
        )
        title = f"{title_of_method(method)} with {more} more seeds"
        key = ("repeat", id(fit))
        self._jobs.ask(self._work(opened, title, call, keep, key, long=True, grace=SEVERAL))

    def seconds_to_test(self, opened: Opened, run: Run) -> float:
        """About how long a test of a run takes; NaN if its variables are gone."""
        for fit, seconds in self._seconds:
            if fit is run.fit:
                return seconds
        try:
            seconds = seconds_to_test(run.fit, opened.recording)
        except InputError:  # the test will say what is wrong
            seconds = np.nan
        there = [run.fit for one in self.state.opened for run in one.runs]
        kept = [entry for entry in self._seconds if any(entry[0] is fit for fit in there)]
        self._seconds = [*kept, (run.fit, seconds)]
        return seconds

    def _score(self, opened: Opened, fit: Fit, method: str) -> Work:
        def keep(attribution: Attribution) -> None:
            if (run := opened.run_of(fit)) is not None:
                self.state.replace_run(run.name, run.with_attribution(attribution))

        frames = method_named(method).frames
        call = tasks.ATTRIBUTE(fit, opened.recording, method, frames=frames)
        return self._work(opened, title_of_method(method), call, keep, ("scores", id(fit)))

    def _work(
        self,
        opened: Opened,
        title: str,
        call: Call,
        keep: Callable[[Any], object],
        key: Hashable,
        **how: Any,
    ) -> Work:
        """Work on a run that names its recording, where another one may be looked at meanwhile."""
        named = f"{title} of {opened.name}" if len(self.state.opened) > 1 else title
        name = opened.name

        def say(sentence: str, tone: str, details: str) -> None:
            in_front = not self.state_open or opened is self.state.current or name in sentence
            self._jobs.said.emit(sentence if in_front else f"{name}: {sentence}", tone, details)

        return Work(named, call, keep, key, say, **how)


def seconds_to_repeat(run: Run, more: int) -> float:
    """About how long more seeds take, by how long the run took itself if that is known."""
    fit = run.fit
    # one that was stopped says how long the rest would have taken, but not one that was settled
    share = 1.0 if fit.complete or fit.steps == 0 else fit.steps / fit.settings.steps
    whole = replace(fit, seconds=fit.seconds / share)
    cells, latents = len(fit.inputs.cell_ids), fit.parts[-1].stop
    return more * seconds_to_fit(fit.settings, cells, latents, like=whole)


NOT_TRAINED_HERE = (
    "This model was opened from cebra: train it there with other seeds, and compare what is opened."
)


def _with_cells_of(fit: Fit, recording: Recording) -> Recording:
    """Recording with those cells accepted that the fit used: others may be accepted by now."""
    used = np.isin(np.asarray(recording.cell_ids), fit.inputs.cell_ids)
    return replace(recording, accepted=used)


@dataclass(eq=False)
class _Of:
    """Statistics of one fit: names asked for, names answered, and values."""

    fit: Fit
    recording: Recording
    asked: set[str] = field(default_factory=set)
    answered: set[str] = field(default_factory=set)
    found: CellStatistics | None = None


class StatisticsStore(OfState):
    """Keeps statistics by run, and computes missing ones in the background."""

    changed = Signal()
    """More statistics have been computed."""

    def __init__(self, state: State, jobs: JobQueue) -> None:
        super().__init__(state)
        self._jobs = jobs
        self._kept: list[_Of] = []

    def of(self, opened: Opened, run: Run) -> CellStatistics | None:
        """Statistics of the cells of a run, as far as they are there."""
        return self._entry(opened, run.fit).found

    def answered(self, opened: Opened, run: Run) -> set[str]:
        """Names of the statistics of a run that are computed, or found to be impossible."""
        return self._entry(opened, run.fit).answered

    def ask(self, opened: Opened, run: Run, names: Sequence[str], *, again: bool = False) -> None:
        """Compute statistics for all factors of a run, unless they were asked for before.

        With `again`, those that were asked for but stopped by the user are computed as well.
        """
        entry = self._entry(opened, run.fit)
        before = entry.answered if again else entry.asked
        missing = tuple(name for name in names if name in STATISTICS and name not in before)
        if not missing:
            return
        entry.asked.update(missing)
        try:
            cells = run.fit.inputs.columns(opened.recording)
        except InputError as error:
            self._jobs.said.emit(str(error), "problem", "")
            return
        variables = _variables(opened.recording, run)
        call = tasks.STATISTICS(opened.recording, variables, missing, cells=cells)
        titles = ", ".join(name.replace("_", " ") for name in missing)
        title = titles if len(missing) < 3 else "single-cell statistics"
        self._jobs.ask(Work(title, call, lambda found: self._keep(entry, missing, found)))

    def comparison(self) -> Comparison | None:
        """Computed methods and statistics of the shown run; None without any method."""
        opened, run, attributions = self.state.current, self.state.shown_run, computed(self.state)
        if opened is None or run is None or not attributions:
            return None
        return compare(attributions, self.of(opened, run))

    def missing(self) -> tuple[list[str], list[str]]:
        """Methods, and statistics of any factor, that the shown run lacks."""
        opened, run = self.state.current, self.state.shown_run
        if opened is None or run is None:
            return [], []
        done, answered = computed(self.state), self.answered(opened, run)
        wanted = {n for part in run.fit.parts for n in applicable(opened.recording, part.variables)}
        lacking = [name for name in STATISTICS if name in wanted - answered]
        return [method for method in METHODS if method not in done], lacking

    def _keep(self, entry: _Of, names: Sequence[str], found: CellStatistics) -> None:
        entry.answered.update(names)
        entry.found = found if entry.found is None else entry.found.merged(found)
        if found.notes:
            self._jobs.said.emit(" ".join(found.notes), "plain", "")
        self.changed.emit()

    def _entry(self, opened: Opened, fit: Fit) -> _Of:
        """The entry of a fit; a new one if the recording has changed since."""
        recording = opened.recording
        for entry in self._kept:
            if entry.fit is fit and _same(entry.recording, recording):
                return entry
        there = [run.fit for one in self.state.opened for run in one.runs]
        self._kept = [e for e in self._kept if e.fit is not fit and any(e.fit is f for f in there)]
        self._kept.append(_Of(fit, recording))
        return self._kept[-1]


def _variables(recording: Recording, run: Run) -> dict[str, tuple[str, ...]]:
    """Variables of the factors of a run; those are left out that the recording does not have."""
    parts = {part.name: part.variables for part in run.fit.parts}
    return {f: names for f, names in parts.items() if applicable(recording, names)}


def _same(one: Recording, other: Recording) -> bool:
    """Whether traces and behaviour are the same; which cells are accepted does not matter."""
    return one is other or (
        one.traces is other.traces
        and np.array_equal(np.asarray(one.excluded), np.asarray(other.excluded))
        and one.behavior.keys() == other.behavior.keys()
        and all(one.behavior[name] is other.behavior[name] for name in one.behavior)
    )


def computed(state: State) -> dict[str, Attribution]:
    """Attributions of the shown run for the cells of the recording, by method in their order."""
    run, recording = state.shown_run, state.recording
    found = {method: attribution_of(run, method, recording) for method in METHODS}
    return {method: one for method, one in found.items() if one is not None}


HELP = (
    "One page about the run that opens in any browser: verdicts, maps, tables, controls, settings "
    "and how to reproduce it."
)
NWB_HELP = (
    "Traces, ROIs, behaviour, scores, embedding, decisions and settings in one file for pynwb, "
    "neurosift and archives. An NWB recording is copied, and stays as it is."
)
Say = Callable[[str, str, str], object]
"""Takes a sentence, its tone, and details."""


class RunWriter:
    """Writes runs to files for a widget, once other work is done.

    The user is asked for a path where none is given.

    Parameters
    ----------
    services : Services
    say : callable
        Told where a file was written, or what went wrong, unless `parent` is gone by then.
    parent : QWidget
    """

    def __init__(self, services: Services, say: Say, parent: QWidget) -> None:
        self._services, self._say, self._parent = services, say, parent

    def report(self, opened: Opened, run: Run, path: str | Path | None = None) -> None:
        """Write the page of a run, and open it."""
        if (target := self._target(opened, run, "report", ".html", path)) is not None:
            found = self._services.statistics.of(opened, run)
            call = tasks.REPORT(run, opened.recording, target, opened.opening, found)
            self._write("the report", call, _show_page)

    def nwb(self, opened: Opened, run: Run, path: str | Path | None = None) -> None:
        """Write a run with its recording as NWB, and decisions if there are any."""
        if (target := self._target(opened, run, "results", ".nwb", path)) is not None:
            curation = self._services.curations.of(opened)
            table = curation.table() if curation.status.any() or curation.all_tags else None
            threshold = self._services.state.shown.threshold
            self._write("the NWB file", tasks.NWB(run, opened.recording, target, table, threshold))

    def _target(
        self, opened: Opened, run: Run, word: str, suffix: str, path: str | Path | None
    ) -> Path | None:
        start = exports.default_path(opened.recording, run.name, word, suffix=suffix)
        return chosen_target(self._parent, word.capitalize(), start, (suffix,), path)

    def _write(
        self, title: str, call: Call, show: Callable[[Path], object] = lambda _: None
    ) -> None:
        exists, say = while_exists(self._parent), self._say

        def tell(sentence: str, tone: str, details: str) -> None:
            if exists():
                say(sentence, tone, details)

        def written(file: Path) -> None:
            tell(f"Wrote {file}.", "good", "")
            show(file)

        self._services.jobs.ask(Work(title, call, written, say=tell))


def chosen_target(
    parent: QWidget,
    title: str,
    start: Path,
    suffixes: Sequence[str],
    path: str | Path | None = None,
) -> Path | None:
    """Where to write, as given or as the user says; None if they cancel.

    A path without an ending gets that of the kind that was chosen.
    """
    suffix = suffixes[0]
    if path is None:
        kinds = ";;".join(f"*{each}" for each in suffixes)
        path, kind = QFileDialog.getSaveFileName(parent, title, str(start), kinds)
        suffix = kind.removeprefix("*") or suffix
    if not path:
        return None
    target = Path(path)
    return target if target.suffix else target.with_suffix(suffix)


def _show_page(page: Path) -> None:
    """Open a page in the browser."""
    QDesktopServices.openUrl(QUrl.fromLocalFile(str(page.absolute())))


GRACE = 10.0
"""Seconds in which a sweep that is stopped writes what it has."""
NEXT = "Next: select a run in the table and press Open run to see its map, or press Report."
AT_STAKE = "A sweep is running. Finished runs are kept; press Start to continue it next time."


class Sweeper(JobQueue):
    """Runs one sweep at a time, in a process of its own: training and maps need not wait."""

    def __init__(self, processes: Processes) -> None:
        super().__init__(processes)
        self._reports = JobQueue(processes, latest=True)
        self.stopping = False
        self.folder: Path | None = None
        """Where the last sweep was written."""

    def start(self, sweep: Sweep, folder: Path, place: ComputePlace) -> Job | None:
        """Run a sweep; None if one is under way."""
        return self.begin(tasks.SWEEP(sweep, folder, place), folder)

    def begin(self, call: Call, folder: Path) -> Job | None:
        """Run a call that writes a sweep to a folder; None if one is under way."""
        if self.busy:
            return None
        self.folder, self.stopping = folder, False
        work = Work("a sweep", call, heard=self._hear, long=True, grace=GRACE, at_stake=AT_STAKE)
        return self.ask(work)

    def cancel(self, grace: float | None = None) -> None:
        """Stop; what is finished is kept."""
        self.stopping = self.busy
        super().cancel(grace)
        self.changed.emit()

    def report(self, folder: Path) -> None:
        """Write a page about a sweep into its folder, and open it in the browser."""

        def written(page: Path) -> None:
            self.said.emit(f"Wrote {page}.", "good", "")
            _show_page(page)

        self.said.emit("Writing the report …", "plain", "")
        call = tasks.SWEEP_REPORT(folder)
        self._reports.ask(Work("the report", call, written, say=self.said.emit))

    def compare(
        self, call: Call, keep: Callable[[str], object], say: Callable[[str, str, str], object]
    ) -> None:
        """Compare the conditions of a sweep; `say` is told what goes wrong.

        Parameters
        ----------
        call : Call
            `tasks.COHORT` of a folder.
        keep : callable
            Called with what was found, in sentences.
        say : callable
            Takes a sentence, its tone, and details.
        """
        self._reports.ask(Work("the comparison", call, keep, say=say))

    def _hear(self, event: Event) -> None:
        if isinstance(event, Finished | Cancelled | Failed):
            self.changed.emit()
        if isinstance(event, Failed):
            self.said.emit(event.sentence, "problem", event.details)
        elif isinstance(event, Finished) and self._progress is not None:
            self.said.emit(f"{self._progress.phase} are finished. {NEXT}", "good", "")
        elif isinstance(event, Cancelled):
            self.said.emit("Stopped. Finished runs are kept; press Start to continue.", "plain", "")


KEY = "dimensions"


@dataclass(frozen=True)
class Latents:
    """Chosen numbers of latents.

    Parameters
    ----------
    of_time : int
        0 where there are none.
    of_factors : mapping of str to int
        Of those factors whose number was looked for.
    """

    of_time: int
    of_factors: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Trial:
    """What is tried.

    Parameters
    ----------
    recording : Recording
    factors : mapping of str to Factor
    settings : FitSettings
    time_latents : tuple of int
        None of them in modes without time latents.
    factor_latents : tuple of int
        Of the one factor there is; empty for as many as its variables have.
    seeds : int
        Trainings at each number of latents.
    """

    recording: Recording
    factors: Mapping[str, Factor]
    settings: FitSettings
    time_latents: tuple[int, ...]
    factor_latents: tuple[int, ...]
    seeds: int

    @property
    def sizes(self) -> list[tuple[int, int]]:
        """Latents of all factors together, and of time."""
        usual = sum(
            factor.latents or latents_for(self.recording, factor.variables)
            for factor in self.factors.values()
        )
        return list(product(self.factor_latents or (usual,), self.time_latents or (0,)))

    def seconds(self, like: Fit | None) -> float:
        """About how long it takes; `like` is a fit that was timed on this machine."""
        cells = int(np.asarray(self.recording.accepted).sum())
        each = (seconds_to_fit(self.settings, cells, sum(size), like) for size in self.sizes)
        return self.seeds * sum(each)

    @property
    def call(self) -> Call:
        """The call for the background process."""
        return tasks.DIMENSION(
            self.recording,
            dict(self.factors),
            self.settings,
            time_latents=self.time_latents or (self.settings.time_latents,),
            factor_latents=self.factor_latents or None,
            seeds=self.seeds,
        )

    def latents(self, found: Dimensions) -> Latents:
        """The suggestion as numbers for the Train dock."""
        chosen = found.suggested
        names = list(self.factors) if self.factor_latents else []
        return Latents(chosen.time_latents, {name: chosen.factor_latents for name in names})


class DimensionSearch(OfState):
    """Tries numbers of latents, and keeps the last result."""

    changed = Signal()
    """A result has arrived."""

    def __init__(self, state: State, jobs: JobQueue) -> None:
        super().__init__(state)
        self._jobs = jobs
        self._found: tuple[Opened, Trial, Dimensions] | None = None

    @property
    def found(self) -> tuple[Trial, Dimensions] | None:
        """What was tried on the current recording, and the result."""
        current = self.state.current
        if self._found is None or self._found[0] is not current:
            return None
        return self._found[1:]

    @property
    def awaited(self) -> bool:
        """Whether it is under way, or waits for its turn."""
        return self._jobs.awaits(KEY)

    @property
    def running(self) -> bool:
        """Whether it is being computed now."""
        return self._jobs.runs(KEY)

    def start(self, trial: Trial) -> None:
        """Try numbers of latents on the current recording, once other work is done."""
        opened = self.state.current
        if opened is None or self.awaited:
            return

        def keep(found: Dimensions) -> None:
            self._found = (opened, trial, found)
            self.changed.emit()

        work = Work("the number of latents", trial.call, keep, KEY, long=True, grace=SEVERAL)
        self._jobs.ask(work)
