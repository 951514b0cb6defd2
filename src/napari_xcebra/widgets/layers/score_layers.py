"""Finds, makes and removes the layers that maps are painted on, one per run and factor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import WeakKeyDictionary, WeakSet

from napari.layers import Labels

from napari_xcebra.attribution.methods import is_consensus, title_of_method
from napari_xcebra.text import unmarked
from napari_xcebra.widgets.layers.painting import blank_layer
from napari_xcebra.widgets.state.of_state import OfState
from napari_xcebra.widgets.state.own_layers import KEY, Role, role_of

if TYPE_CHECKING:
    from napari_xcebra.runs import Run
    from napari_xcebra.widgets.state.shown import Asked, LiveRun
    from napari_xcebra.widgets.state.state import State
    from napari_xcebra.workspace_file import Opened

AnyRun: TypeAlias = "Run | LiveRun | Asked"
"""What has maps: a run, also one that is being trained or was just asked for."""
TRAINING = " (training)"
"""Mark of a map, with which the name of its layer ends."""


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
        for layer in self.state.layers.of(self.state.current, "scores"):
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
        for layer in self.state.layers.of(opened, "scores"):
            if _is_of(layer, run):
                self.state.layers.remove(opened, layer)

    def follow_runs(self) -> None:
        """Keep the layers of renamed runs, and free those of deleted ones."""
        state = self.state
        there = {run.created for opened in state.opened for run in opened.runs}
        self._deleted = (self._deleted | self._known) - there
        self._known = there
        names = {run.name for run in state.runs}
        for layer in self.state.layers.of(state.current, "scores"):
            entry = layer.metadata[KEY]
            runs = [run for run in state.runs if run.created == entry.get("created")]
            if entry.get("run") not in names and len(runs) == 1:
                entry["run"] = runs[0].name
                entitle(layer)

    def _blank(self, run: AnyRun, factor: str, method: str) -> Labels:
        opened = self.state.current
        assert opened is not None, "a map is of a recording"
        title = _title(factor, method, run.name)
        return blank_layer(
            opened.recording,
            opened.labels,
            title,
            named=title,
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
        for layer in self.state.layers.of(self.state.current, "scores"):
            if layer in self._spare or layer.metadata[KEY].get("created") in self._deleted:
                blank = self._blank(run, factor, method)
                layer.metadata, layer.name = blank.metadata, blank.name
                layer.features, layer.colormap = blank.features, blank.colormap
                self.painted.pop(layer, None)
                return layer
        return None

    def _insert(self, layer: Labels) -> Labels:
        # the label image is shared: drawing in one layer would change all
        layer.editable = False
        self.state.layers.put(layer, place_below(self.state, "decisions", "selection"))
        return layer


def place_below(state: State, *roles: Role) -> int:
    """Where to insert a layer so that it lies below those of the recording in front."""
    layers = state.viewer.layers
    above = [i for i, layer in enumerate(layers) if role_of(layer) in roles]
    return above[0] if above else len(layers)


def entitle(layer: Labels, mark: str | None = None) -> None:
    """Name a layer by its map and a mark, unless the user renamed it; None leaves the mark."""
    entry = layer.metadata[KEY]
    if layer.name != entry.get("named"):
        return
    if mark is not None:
        entry["mark"] = mark
    latent = entry.get("latent")
    title = _title(entry["factor"], entry["method"], entry["run"], latent) + entry.get("mark", "")
    # napari numbers a name that another layer has
    layer.name = title
    entry["named"] = layer.name


def _title(factor: str, method: str, run: str, latent: int | str | None = None) -> str:
    part = (
        ""
        if latent is None
        else f", {latent if isinstance(latent, str) else f'latent {latent + 1}'}"
    )
    return unmarked(f"{factor}{part} · {title_of_method(method)} · {run}")


def _is_of(layer: Labels, run: AnyRun) -> bool:
    entry = layer.metadata[KEY]
    return (entry.get("run"), entry.get("created")) == (run.name, run.created)
