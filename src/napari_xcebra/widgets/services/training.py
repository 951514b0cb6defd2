"""Trains runs in the background, shows their maps as they learn, and trains on accepted cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from qtpy.QtCore import QTimer

from napari_xcebra.attribution.methods import FIRST
from napari_xcebra.attribution.ranks import rank_correlation
from napari_xcebra.attribution.score_map import Latent
from napari_xcebra.jobs import Advanced, Cancelled, Failed, Finished, Job, Sketched, tasks
from napari_xcebra.learn.result import JointFit
from napari_xcebra.runs import Run, free_name
from napari_xcebra.widgets.services.jobs import JobQueue, Processes, Work
from napari_xcebra.widgets.state.curations import OFFERED
from napari_xcebra.widgets.state.shown import TRAINING, Asked, LiveRun, best_factor, shown_map
from napari_xcebra.widgets.state.signals import OfState, Signal

if TYPE_CHECKING:
    from pathlib import Path

    from napari_xcebra.jobs import Call, Event
    from napari_xcebra.learn import Factor, Fit, FitSettings
    from napari_xcebra.learn.adaptation import How
    from napari_xcebra.recording import Recording
    from napari_xcebra.widgets.layers.scores import ScoreLayers, ScorePainter
    from napari_xcebra.widgets.state.curations import Curations
    from napari_xcebra.widgets.state.state import State
    from napari_xcebra.workspace_file import Opened


MEASURING = 600.0
"""Seconds that a training has to measure what it has learned when it is stopped."""


class Trainer(JobQueue, OfState):
    """Trains one run at a time, scores the cells with it, and shows it."""

    def __init__(self, state: State, processes: Processes, painter: ScorePainter) -> None:
        JobQueue.__init__(self, processes)
        OfState.__init__(self, state)
        self._layers = painter.layers
        self._live = _MapSoFar(state, painter.layers)
        self._unscored: list[tuple[Opened, Fit]] = []
        self._methods: Sequence[str] = ()
        self.opened: Opened | None = None
        """The recording that was trained on last, which need not be in front."""
        self.doing = ""
        self.stopping = False
        """Whether it was stopped, and measures what was learned so far."""
        self.course: list[Advanced] = []
        """Reports of the training so far, for the curves of a dock that opens later."""
        self.chance = np.nan
        """Loss of an encoder that knows nothing, in nats; NaN for a supervised fit."""

    @property
    def at_stake(self) -> str:
        """What would be lost with the window."""
        at = self.progress
        far = f" ({at.unit} {at.done} of {at.total})" if at is not None else ""
        return f"A run is still being trained{far} and will be lost."

    def start(
        self,
        opened: Opened,
        name: str,
        factors: Mapping[str, Factor],
        settings: FitSettings,
        recording: Recording | None = None,
        *,
        live: bool = True,
    ) -> Job | None:
        """Train a run of that name; None if one is being trained.

        `recording` is another version of the opened one, such as with other cells accepted.
        With `live`, its map is painted while it learns.
        """
        method = self._method_to_show() if live else ""
        call = tasks.FIT(recording or opened.recording, factors, settings, live=method)
        asked = Asked(opened, name, factors)
        job = self._learn(call, asked, settings)
        if job is not None and live and factors:
            # after the button is drawn as pressed; the first map takes a second anyway
            QTimer.singleShot(BREATH, lambda: self._prepare_live(asked, method))
        return job

    def start_together(
        self,
        opened: Opened,
        others: Sequence[Opened],
        name: str,
        factors: Mapping[str, Factor],
        settings: FitSettings,
    ) -> Job | None:
        """Train one embedding on several recordings: a run of that name for each."""
        recordings = {each.name: each.recording for each in (opened, *others)}
        call = tasks.FIT_SESSIONS(recordings, factors, settings)
        return self._learn(call, Asked(opened, name, factors, others=tuple(others)), settings)

    def carry(self, opened: Opened, name: str, run: Run, how: How = "auto") -> Job | None:
        """Bring a run of another recording to this one."""
        call = tasks.ADAPT(run.fit, opened.recording, how)
        return self._learn(call, Asked(opened, name, run.factors), run.fit.settings)

    def open_model(
        self,
        opened: Opened,
        name: str,
        path: Path,
        factors: Mapping[str, Factor],
        settings: FitSettings,
    ) -> Job | None:
        """Open a model that was trained with `cebra` as a run of that name."""
        call = tasks.OPEN_MODEL(path, opened.recording, factors, settings=settings)
        return self._learn(call, Asked(opened, name, factors), settings)

    def _learn(self, call: Call, asked: Asked, settings: FitSettings) -> Job | None:
        if self.busy:
            return None
        self.opened, self.course, self._unscored = asked.opened, [], []
        self.doing = "starting"
        self.chance = np.nan if settings.mode == "supervised" else float(np.log(settings.negatives))
        heard = partial(self._trained, asked=asked)
        return self.ask(Work(asked.name, call, heard=heard, grace=MEASURING))

    def _method_to_show(self) -> str:
        """The method of the painted run, if it is one of those computed first."""
        looked_at = self.state.shown.method if self.state.shown_run else ""
        return looked_at if looked_at in FIRST else FIRST[0]

    def cancel(self, grace: float | None = None) -> None:
        """Stop what runs, and keep what was learned so far; the second time, nothing is kept."""
        if not self.busy:
            return
        self.doing = "stopping" if self.stopping else "stopping: measuring what was learned …"
        super().cancel(0.0 if self.stopping else grace)
        self.stopping = True
        self.changed.emit()

    @property
    def of_front(self) -> bool:
        """Whether a run of the recording in front is being trained or scored."""
        return self.busy and self.opened is self.state.current

    @property
    def elsewhere(self) -> str:
        """The recording that it is about, where that is not in front; else empty."""
        opened = self.opened
        return opened.name if opened is not None and opened is not self.state.current else ""

    def _say(self, sentence: str, tone: str, details: str = "") -> None:
        """Say something of a run, with the name of its recording if that is not in front."""
        said = f"{self.elsewhere}: {sentence}" if self.elsewhere else sentence
        self.said.emit(said, tone, details)

    def _clear_words(self) -> None:
        self.doing, self.stopping = "", False
        self.changed.emit()

    def _trained(self, event: Event, asked: Asked) -> None:
        if isinstance(event, Advanced):
            self.course.append(event)
        elif isinstance(event, Sketched):
            self._live.show(event, asked)
        elif isinstance(event, Failed):
            self._clear_words()
            self._live.give_up(asked)
            self._say(event.sentence, "problem", event.details)
        elif isinstance(event, Finished | Cancelled):
            self._clear_words()
            if event.result is None:
                self._live.give_up(asked)
                self._say("Stopped; nothing of this run is kept.", "plain")
            elif asked.opened not in self.state.opened:
                self._live.give_up(asked)
                self._say(f"{asked.name} is not kept, as its recording was closed.", "plain")
            else:
                self._keep(event, asked)

    def _keep(self, event: Finished | Cancelled, asked: Asked) -> None:
        """Add the run to the others, and have its maps made."""
        opened = asked.opened
        first = self._method_to_show()
        if self.state.painted_live is not None:
            first = self.state.painted_live.attribution.method
        found = event.result
        fits = list(found.fits.values()) if isinstance(found, JointFit) else [found]
        run, *others = (
            self.state.add_run(Run(asked.name, asked.created, asked.factors, fit), each)
            for each, fit in zip((opened, *asked.others), fits, strict=True)
        )
        if run.name != asked.name:
            self._live.give_up(asked)  # its layers have the name that was taken meanwhile
        if isinstance(event, Cancelled):
            # no maps, as the user wants to go on: the Attribution dock offers them
            self._show(opened, run)
            self._layers.discard(opened, asked)
            self._say(
                f"{run.name} was {run.cut_short or 'finished before it could be stopped'}. "
                "Press Compute in Attribution to see its map.",
                "warning",
            )
            return
        self._unscored = [(o, r.fit) for o, r in zip(asked.others, others, strict=True)]
        self._methods = sorted(FIRST, key=lambda method: method != first)
        self._score(opened, run.fit, self._methods)
        # napari takes a turn of the window to insert it; the map is still being made
        QTimer.singleShot(BREATH, lambda: self._prepare(opened, run))

    def _prepare_live(self, asked: Asked, method: str) -> None:
        if self.busy:
            self._live.prepare(asked, method)

    def _prepare(self, opened: Opened, run: Run) -> None:
        if self.state_open and self.state.current is opened:
            factor, _ = self._factor_to_show(run)
            self._layers.prepare(run, factor, FIRST[0])

    # ------------------------------------------------------------ scoring

    def _score(
        self, opened: Opened, fit: Fit, methods: Sequence[str], *, show: bool = True
    ) -> None:
        """Make these maps one after the other, and show the first."""
        method, *others = methods
        self.opened, self.doing = opened, "scoring the cells"
        call = tasks.ATTRIBUTE(fit, opened.recording, method)
        self.ask(
            Work(method, call, heard=lambda e: self._scored(e, opened, fit, others, show=show))
        )

    def _scored(
        self, event: Event, opened: Opened, fit: Fit, others: Sequence[str], *, show: bool
    ) -> None:
        if isinstance(event, Failed):
            self._clear_words()
            self._say(event.sentence, "problem", event.details)
            if others:
                self._score(opened, fit, others, show=show)
            else:
                self._live.end()
                self._score_next()
        elif isinstance(event, Finished | Cancelled):
            # it may have been renamed or removed meanwhile
            run = opened.run_of(fit)
            if run is not None and event.result is not None:
                run = run.with_attribution(event.result)
                self.state.replace_run(run.name, run)
            self._clear_words()
            if show and run is not None:
                self._show(opened, run, event.result.method if event.result is not None else "")
            self._live.end()
            if isinstance(event, Cancelled):
                self._unscored = []
            elif others and run is not None and opened in self.state.opened:
                self._score(opened, fit, others, show=False)
            else:
                self._score_next()

    def _score_next(self) -> None:
        """Make the maps of the next run that was trained together with this one, if any."""
        self._unscored = [(o, fit) for o, fit in self._unscored if o in self.state.opened]
        if self._unscored:
            opened, fit = self._unscored.pop(0)
            self._score(opened, fit, self._methods)

    def _show(self, opened: Opened, run: Run, method: str = "") -> None:
        """Show a run, by a method if one is named, unless another recording is looked at."""
        state, shown = self.state, self.state.shown
        factor, latent = self._factor_to_show(run)
        self._live.end()
        if state.current is not opened:
            return
        state.shown = replace(
            shown, run=run.name, factor=factor, latent=latent, method=method or shown.method
        )

    def _factor_to_show(self, run: Run) -> tuple[str, Latent]:
        """Factor and latent that were chosen while it was trained; else the best factor."""
        shown = self.state.shown
        if self.state.painted_live is not None and shown.factor in run.fit.factors:
            chosen = (shown.factor, shown.latent)
            if chosen != (next(iter(run.factors), ""), None):
                return chosen
        return best_factor(run), None


BREATH = 20
"""Milliseconds that let the window handle waiting events between two steps."""


class _MapSoFar(OfState):
    """Paints the map of a run in training, and removes it in the end."""

    def __init__(self, state: State, layers: ScoreLayers) -> None:
        super().__init__(state)
        self._layers = layers
        self._live: LiveRun | None = None

    def prepare(self, asked: Asked, method: str) -> None:
        """Add the layer of the first map before the map is computed."""
        if self.state_open and self._will_be_seen(asked.opened):
            self._layers.prepare(asked, next(iter(asked.factors)), method, TRAINING)

    def show(self, sketched: Sketched, asked: Asked) -> None:
        """Paint the map so far, unless a map of another run is being looked at."""
        state, attribution = self.state, sketched.attribution
        self._live = live = LiveRun(
            asked.opened, asked.name, asked.created, attribution, sketched.done, sketched.total
        )
        state.show_live(live)
        if self._will_be_seen(asked.opened) and state.painted_live is None:
            factor = next(iter(asked.factors), attribution.factors[0])
            self._layers.prepare(live, factor, attribution.method, TRAINING)
            # the new layer is drawn first, then all that shows the map
            QTimer.singleShot(BREATH, lambda: self._turn_to(live, factor))

    def give_up(self, asked: Asked) -> None:
        """Remove all traces of a run that failed or was stopped."""
        state, painted = self.state, self.state.painted_live
        self.end()
        self._layers.discard(asked.opened, asked)
        if painted is not None and state.shown_run is None:
            state.shown = replace(state.shown, run="", factor="", latent=None)
            state.runs_changed.emit()  # another run may be shown instead

    def end(self) -> None:
        """Make way for the finished run."""
        if self._live is not None:
            self._live = None
            self.state.show_live(None)

    def _will_be_seen(self, opened: Opened) -> bool:
        """Whether a provisional map would be shown, as no other map is."""
        return self.state.current is opened and self.state.shown_run is None

    def _turn_to(self, live: LiveRun, factor: str) -> None:
        if not self.state_open or self._live is None or self.state.live is not self._live:
            return
        state = self.state
        state.shown = replace(
            state.shown,
            run=live.name,
            factor=factor,
            latent=None,
            method=live.attribution.method,
        )


FEWEST = 2


class Retraining(OfState):
    """Trains on the accepted cells, then shows the two maps beside each other."""

    said = Signal(str, str, str)
    """A sentence for a notice, its tone, and details."""

    def __init__(
        self, state: State, curations: Curations, painter: ScorePainter, training: Trainer
    ) -> None:
        super().__init__(state)
        self._curations, self._painter, self.training = curations, painter, training
        self._under_way: tuple[Opened, str, Run, str] | None = None
        self.training.changed.connect(self._follow)
        self.training.said.connect(self._pass_on)

    def why_not(self) -> str:
        """Why it cannot begin, in a sentence; empty if it can."""
        opened, run = self.state.current, self.state.shown_run
        if opened is None or run is None:
            return "Train a run first; it can then be trained again on the accepted cells."
        if self.training.busy:
            return "A run is being trained: see the Train dock."
        if self._curations.offers:
            return OFFERED
        accepted = int(self._curations.accepted(opened).sum())
        if accepted < FEWEST:
            return f"Accept at least {FEWEST} cells first; {accepted} accepted so far."
        return ""

    def start(self) -> str:
        """Train again; returns the name of the new run, empty if it cannot begin."""
        opened, run = self.state.current, self.state.shown_run
        if opened is None or run is None or self.why_not():
            return ""
        accepted = self._curations.accepted(opened)
        taken = [other.name for other in opened.runs]
        name = free_name(f"run {len(taken) + 1}, accepted cells", taken)
        recording = replace(opened.recording, accepted=accepted)
        job = self.training.start(opened, name, run.factors, run.fit.settings, recording)
        if job is None:
            return ""
        self._under_way = (opened, name, run, self.state.shown.factor)
        self.said.emit(
            f"Training “{name}” on {int(accepted.sum())} cells with the settings of {run.name}; "
            "see the Train dock for progress.", "plain", "",
        )  # fmt: skip
        return name

    def _follow(self) -> None:
        if self._under_way is not None and not self.training.busy:
            # once the trainer has shown the new run
            QTimer.singleShot(0, self._compare)

    def _compare(self) -> None:
        if self._under_way is None or self._state() is None or self.training.busy:
            return
        (opened, name, before, factor), self._under_way = self._under_way, None
        state, after = self.state, opened.run(name)
        if after is None or state.current is not opened or factor not in after.fit.factors:
            return
        self._painter.beside = (before.name, factor)
        state.shown = replace(state.shown, run=name, factor=factor, latent=None)
        new, old = shown_map(state), self._painter.second_map()
        if old is None or new is None:
            return
        rho = f"{rank_correlation(new.scores, old.scores):.2f}".replace("-", "−")
        self.said.emit(
            f"“{name}” is shown on the left, {before.name} on the right: rank correlation {rho} "
            f"for {factor}. The plot is in the Attribution dock, under Details.", "good", "",
        )  # fmt: skip

    def _pass_on(self, sentence: str, tone: str, details: str) -> None:
        if self._under_way is not None:
            self._under_way = None
            self.said.emit(sentence, tone, details)
