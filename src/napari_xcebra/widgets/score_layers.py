"""The layers that maps are painted on: one a run and factor, found by what they carry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakKeyDictionary, WeakSet

from napari.layers import Labels

from napari_xcebra.attribution.method_notes import is_consensus
from napari_xcebra.widgets.layers import KEY, role_of
from napari_xcebra.widgets.painting import AT_CHANCE, NOT_TESTED, blank_layer
from napari_xcebra.widgets.per_session import OfSession

if TYPE_CHECKING:
    from napari_xcebra.sessions import Opened
    from napari_xcebra.widgets.session import Session

TRAINING = " (training)"
MARKS = ("", TRAINING, AT_CHANCE, NOT_TESTED)
"""What the name of a layer may end with: what to think of its map."""


class Named(Protocol):
    """What has maps: a run, also one that is being trained or was just asked for."""

    @property
    def name(self) -> str:
        """What the user calls it."""

    @property
    def created(self) -> str:
        """When it was made, which stays when it is renamed."""


class ScoreLayers(OfSession):
    """Finds, makes and removes the Labels layers of maps.

    The user may rename, move or delete them. What several seeds agree on has a layer of its own.

    Parameters
    ----------
    session : Session
    """

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.painted: WeakKeyDictionary[Labels, tuple[Any, Any]] = WeakKeyDictionary()
        """What the colours and the table of each were made from, for who paints them."""
        # made for maps that have not come yet
        self._spare: WeakSet[Labels] = WeakSet()
        # when runs were made: those there are, and those there were
        self._known: set[str] = set()
        self._deleted: set[str] = set()

    def find(self, run: Named, factor: str, method: str) -> Labels | None:
        """The layer of a map of the current recording, if it has been made."""
        for layer in self._of(self.session.current):
            entry = layer.metadata[KEY]
            same_map = entry.get("factor") == factor and (
                is_consensus(entry.get("method", "")) == is_consensus(method)
            )
            if _is_of(layer, run) and same_map:
                return layer
        return None

    def to_paint(self, run: Named, factor: str, method: str) -> Labels:
        """The layer of a map that is there, made where it has none."""
        layer = self.find(run, factor, method) or self._take_over(run, factor, method)
        if layer is None:
            layer = self._insert(self._blank(run, factor, method))
        self._spare.discard(layer)
        return layer

    def prepare(self, run: Named, factor: str, method: str, mark: str = "") -> None:
        """Make the layer of a map that is to come: inserting it takes napari a while."""
        layer = self.find(run, factor, method)
        if layer is None:
            layer = self._take_over(run, factor, method)
        elif layer not in self._spare:
            return
        if layer is None:
            layer = self._insert(self._blank(run, factor, method))
        self._spare.add(layer)
        entitle(layer, mark)

    def discard(self, opened: Opened, run: Named) -> None:
        """Remove what was made for a run that came to nothing."""
        for layer in self._of(opened):
            if _is_of(layer, run):
                self.session.viewer.layers.remove(layer)

    def follow_runs(self) -> None:
        """Keep the layers of a run that was renamed, and set those of deleted ones free."""
        session = self.session
        there = {run.created for opened in session.opened for run in opened.runs}
        self._deleted = (self._deleted | self._known) - there
        self._known = there
        names = {run.name for run in session.runs}
        for layer in self._of(session.current):
            entry = layer.metadata[KEY]
            runs = [run for run in session.runs if run.created == entry.get("created")]
            if entry.get("run") in names or len(runs) != 1:
                continue
            before, after = (_title(entry["factor"], name) for name in (entry["run"], runs[0].name))
            if _mark_of(layer) is not None:
                layer.name = layer.name.replace(before, after, 1)
            entry["title"] = entry["title"].replace(before, after, 1)
            entry["run"] = runs[0].name

    def _of(self, opened: Opened | None) -> list[Labels]:
        layers = self.session.layers_of(opened) if opened else []
        return [layer for layer in layers if role_of(layer) == "scores"]

    def _blank(self, run: Named, factor: str, method: str) -> Labels:
        opened = self.session.current
        assert opened is not None, "a map is of a recording"
        # runs of two recordings may have one name, which napari would number
        title = self.session.prefix(opened) + _title(factor, run.name) + of_seeds(method)
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

    def _take_over(self, run: Named, factor: str, method: str) -> Labels | None:
        """A layer of a run that was deleted, or whose map has not come: made that of another.

        A layer more costs napari 10 MB, which it does not give back.
        """
        for layer in self._of(self.session.current):
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
        layers = self.session.viewer.layers
        above = [i for i, x in enumerate(layers) if role_of(x) in ("decisions", "selection")]
        layers.insert(above[0] if above else len(layers), layer)
        return layer


def entitle(layer: Labels, mark: str) -> None:
    """Say in its name what to think of it, unless the user gave it another."""
    if _mark_of(layer) is not None:
        layer.name = layer.metadata[KEY]["title"] + mark


def _mark_of(layer: Labels) -> str | None:
    """What its name says to think of it; None if the user gave it another."""
    title = layer.metadata[KEY].get("title", "")
    return next((mark for mark in MARKS if layer.name == title + mark), None)


def of_seeds(method: str) -> str:
    """What the name of a layer ends with if it is of several seeds."""
    return " · consensus of seeds" if is_consensus(method) else ""


def _title(factor: str, run: str) -> str:
    return f"{factor} · {run}"


def _is_of(layer: Labels, run: Named) -> bool:
    entry = layer.metadata[KEY]
    return (entry.get("run"), entry.get("created")) == (run.name, run.created)
