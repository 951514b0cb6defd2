"""Finds, makes and removes the layers that maps are painted on, one per run and factor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import WeakKeyDictionary, WeakSet

from napari.layers import Labels

from napari_xcebra.attribution.methods import is_consensus
from napari_xcebra.text import unmarked
from napari_xcebra.widgets.layers.painting import AT_CHANCE, NOT_TESTED, blank_layer
from napari_xcebra.widgets.state.of_state import OfState
from napari_xcebra.widgets.state.own_layers import KEY, role_of

if TYPE_CHECKING:
    from napari_xcebra.runs import Run
    from napari_xcebra.widgets.state.shown import Asked, LiveRun
    from napari_xcebra.widgets.state.state import State
    from napari_xcebra.workspace_file import Opened

AnyRun: TypeAlias = "Run | LiveRun | Asked"
"""What has maps: a run, also one that is being trained or was just asked for."""
TRAINING = " (training)"
MARKS = ("", TRAINING, AT_CHANCE, NOT_TESTED)
"""Marks of a map, with which the name of its layer may end."""


class ScoreLayers(OfState):
    """Finds, makes and removes the Labels layers of maps.

    The user may rename, move or delete them. The consensus of several seeds has its own layer.
    """

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self.painted: WeakKeyDictionary[Labels, tuple[Any, Any]] = WeakKeyDictionary()
        """What the colours and the table of each layer were made from."""
        # made for maps that are still being computed
        self._spare: WeakSet[Labels] = WeakSet()
        # creation times of present and of deleted runs
        self._known: set[str] = set()
        self._deleted: set[str] = set()

    def find(self, run: AnyRun, factor: str, method: str) -> Labels | None:
        """The layer of a map of the current recording, if it has been made."""
        for layer in self._of(self.state.current):
            entry = layer.metadata[KEY]
            same_map = entry.get("factor") == factor and (
                is_consensus(entry.get("method", "")) == is_consensus(method)
            )
            if _is_of(layer, run) and same_map:
                return layer
        return None

    def to_paint(self, run: AnyRun, factor: str, method: str) -> Labels:
        """The layer of a map; made if there is none."""
        layer = self.find(run, factor, method) or self._take_over(run, factor, method)
        if layer is None:
            layer = self._insert(self._blank(run, factor, method))
        self._spare.discard(layer)
        return layer

    def prepare(self, run: AnyRun, factor: str, method: str, mark: str = "") -> None:
        """Make the layer of a map that is being computed: inserting it takes napari a while."""
        layer = self.find(run, factor, method)
        if layer is None:
            layer = self._take_over(run, factor, method)
        elif layer not in self._spare:
            return
        if layer is None:
            layer = self._insert(self._blank(run, factor, method))
        self._spare.add(layer)
        entitle(layer, mark)

    def discard(self, opened: Opened, run: AnyRun) -> None:
        """Remove the layers of a run that failed or was stopped."""
        for layer in self._of(opened):
            if _is_of(layer, run):
                self.state.viewer.layers.remove(layer)

    def follow_runs(self) -> None:
        """Keep the layers of renamed runs, and free those of deleted ones."""
        state = self.state
        there = {run.created for opened in state.opened for run in opened.runs}
        self._deleted = (self._deleted | self._known) - there
        self._known = there
        names = {run.name for run in state.runs}
        for layer in self._of(state.current):
            entry = layer.metadata[KEY]
            runs = [run for run in state.runs if run.created == entry.get("created")]
            if entry.get("run") in names or len(runs) != 1:
                continue
            before, after = (_title(entry["factor"], name) for name in (entry["run"], runs[0].name))
            if _mark_of(layer) is not None:
                layer.name = layer.name.replace(before, after, 1)
            entry["title"] = entry["title"].replace(before, after, 1)
            entry["run"] = runs[0].name

    def _of(self, opened: Opened | None) -> list[Labels]:
        layers = self.state.layers_of(opened) if opened else []
        return [layer for layer in layers if role_of(layer) == "scores"]

    def _blank(self, run: AnyRun, factor: str, method: str) -> Labels:
        opened = self.state.current
        assert opened is not None, "a map is of a recording"
        # runs of two recordings may have one name, which napari would number
        title = self.state.prefix(opened) + _title(factor, run.name) + of_seeds(method)
        return blank_layer(
            opened.recording,
            opened.labels,
            title,
            title=title,
            token=opened.token,
            factor=factor,
            method=method,
            run=run.name,
            created=run.created,
        )

    def _take_over(self, run: AnyRun, factor: str, method: str) -> Labels | None:
        """Reuse the layer of a deleted run, or one that is still without a map.

        Each additional layer costs napari 10 MB, which it does not free.
        """
        for layer in self._of(self.state.current):
            if layer in self._spare or layer.metadata[KEY].get("created") in self._deleted:
                blank = self._blank(run, factor, method)
                layer.metadata, layer.name = blank.metadata, blank.name
                layer.features, layer.colormap = blank.features, blank.colormap
                self.painted.pop(layer, None)
                return layer
        return None

    def _insert(self, layer: Labels) -> Labels:
        """Put it below what is drawn over maps."""
        # the label image is shared: drawing in one layer would change all
        layer.editable = False
        layers = self.state.viewer.layers
        above = [i for i, x in enumerate(layers) if role_of(x) in ("decisions", "selection")]
        layers.insert(above[0] if above else len(layers), layer)
        return layer


def entitle(layer: Labels, mark: str) -> None:
    """Put the mark of its map into a layer's name, unless the user renamed it."""
    if _mark_of(layer) is not None:
        layer.name = layer.metadata[KEY]["title"] + mark


def _mark_of(layer: Labels) -> str | None:
    """The mark in a layer's name; None if the user renamed it."""
    title = layer.metadata[KEY].get("title", "")
    return next((mark for mark in MARKS if layer.name == title + mark), None)


def of_seeds(method: str) -> str:
    """Suffix of the name of a layer with the consensus of seeds."""
    return " · consensus of seeds" if is_consensus(method) else ""


def _title(factor: str, run: str) -> str:
    return unmarked(f"{factor} · {run}")


def _is_of(layer: Labels, run: AnyRun) -> bool:
    entry = layer.metadata[KEY]
    return (entry.get("run"), entry.get("created")) == (run.name, run.created)
