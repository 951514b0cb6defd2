"""A run: one training with all that came of it, under a name, saved and opened again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from napari_xcebra.attribution.stability import Stability
from napari_xcebra.errors import InputError
from napari_xcebra.files import read_description, whole

if TYPE_CHECKING:
    from napari_xcebra.attribution import Attribution, Significance
    from napari_xcebra.learn import Factor, Fit
    from napari_xcebra.recording import Recording

KIND = "napari-xcebra run"
FORMAT = 1


@dataclass(frozen=True)
class Run:
    """One training and the attributions made with it.

    Parameters
    ----------
    name : str
    created : str
        Local time, as in 2026-11-16T09:30:00.
    factors : mapping of str to Factor
        As they were asked for.
    fit : Fit
    attributions : mapping of str to Attribution
        By method.
    """

    name: str
    created: str
    factors: Mapping[str, Factor]
    fit: Fit
    attributions: Mapping[str, Attribution] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Whether training went to its end."""
        return self.fit.complete

    @property
    def verdict(self) -> str:
        """In a word or two for each factor: "place clear, speed at chance"."""
        found = self.fit.goodness.items()
        return ", ".join(f"{name} {goodness.strength}" for name, goodness in found)

    def with_attribution(self, attribution: Attribution) -> Run:
        """Copy with an attribution added, or replaced where the method is the same.

        If the cells were tested against chance, it has that, too.
        """
        tested = self.significance
        if tested is not None and tested.fits(attribution.factors, attribution.cell_ids):
            attribution = attribution.with_significance(tested)
        return replace(self, attributions={**self.attributions, attribution.method: attribution})

    @property
    def significance(self) -> Significance | None:
        """Test of the cells, if there was one: the same whatever the method."""
        tested = (each.significance for each in self.attributions.values())
        return next((test for test in tested if test is not None), None)

    def with_significance(self, significance: Significance) -> Run:
        """Copy whose attributions have p and q; they are saved with them."""
        tested = {
            method: each.with_significance(significance)
            for method, each in self.attributions.items()
        }
        return replace(self, attributions=tested)

    def with_stability(self, stability: Stability) -> Run:
        """Copy with scores by further seeds, beside those there are, and their consensus.

        The attribution by the same method has them, which counts as the first seed; the consensus
        is a map of its own. Both are saved.
        """
        first = self.attributions[stability.method]
        before = first.stability or Stability.of([first])
        repeated = first.with_stability(before.with_more(stability))
        consensus = repeated.consensus()
        more = {repeated.method: repeated, consensus.method: consensus}
        return replace(self, attributions={**self.attributions, **more})

    def save(self, folder: str | PathLike[str]) -> Path:
        """Write the run to a folder of its own; ``run.json`` comes last, so that it is whole."""
        folder = Path(folder)
        self.fit.save(folder / "fit")
        for method, attribution in self.attributions.items():
            attribution.to_npz(folder / f"{method}.npz")
        about = {
            "kind": KIND,
            "format": FORMAT,
            "name": self.name,
            "created": self.created,
            "factors": {name: asdict(factor) for name, factor in self.factors.items()},
            "attributions": list(self.attributions),
        }
        with whole(folder / "run.json") as temporary:
            temporary.write_text(json.dumps(about, indent=1), encoding="utf-8")
        return folder

    @classmethod
    def load(cls, folder: str | PathLike[str], recording: Recording | None = None) -> Run:
        """Run that `save` wrote; with the recording, scores over time can be computed again."""
        from napari_xcebra.attribution import Attribution
        from napari_xcebra.learn import Factor, Fit

        folder = Path(folder)
        about = _about(folder / "run.json")
        fit = Fit.load(folder / "fit")
        attributions = {}
        for method in about["attributions"]:
            loaded = Attribution.load(folder / f"{Path(method).name}.npz")
            attributions[method] = replace(loaded, fit=fit, recording=recording)
        try:
            factors = {name: Factor(**values) for name, values in about["factors"].items()}
            return cls(str(about["name"]), str(about["created"]), factors, fit, attributions)
        except (KeyError, TypeError, AttributeError) as error:
            raise InputError(f"{folder} does not hold a complete run ({error}).") from error


def now() -> str:
    """The time to give a run."""
    return datetime.now().isoformat(timespec="seconds")


def free_name(wanted: str, taken: list[str]) -> str:
    """The name, with a number if it is taken.

    >>> free_name("run", ["run", "run 2"])
    'run 3'
    """
    if wanted not in taken:
        return wanted
    return next(name for i in range(2, len(taken) + 3) if (name := f"{wanted} {i}") not in taken)


def next_name(taken: list[str]) -> str:
    """Name for a run that was given none.

    >>> next_name(["run 1", "place"])
    'run 2'
    """
    return next(name for i in range(1, len(taken) + 2) if (name := f"run {i}") not in taken)


def _about(path: Path) -> dict[str, Any]:
    about = read_description(path, "run", FORMAT)
    if not isinstance(about.get("attributions"), list):
        raise InputError(f"{path} does not say which attributions there are: it is damaged.")
    return about
