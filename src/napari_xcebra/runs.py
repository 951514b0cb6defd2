"""Saves and opens runs, and writes what commands make of a fit as one.

A run is a named training with its attributions. A folder of results lists the fit that each file
was made with, so that scores of an earlier training are never reported with a later one.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from napari_xcebra.attribution.stability import Stability
from napari_xcebra.checksums import (
    STAGED,
    Listed,
    NotAsListed,
    content_of,
    differences,
    entry,
    listed_by,
    listed_in,
    problem,
    remove_listed,
    settle,
    while_unchanged,
    write_together,
)
from napari_xcebra.errors import InputError
from napari_xcebra.files import described, in_a_sentence, read_description, refuse_link
from napari_xcebra.locks import locked
from napari_xcebra.recording.fingerprint import check_same

if TYPE_CHECKING:
    from napari_xcebra.attribution import Attribution, Significance
    from napari_xcebra.learn import Factor, Fit
    from napari_xcebra.recording import Recording

FILE, KIND, FORMAT = "run.json", "napari-xcebra run", 1
RESULTS, RESULTS_KIND, RESULTS_FORMAT = "results.json", "results", 1
FIT = "fit"
"""Folder of the fit, in that of the results."""
ANALYSIS = "analysis.toml"
"""File that every run writes, and `napari-xcebra run` takes to make it again."""
_NEW = "new"


@dataclass(frozen=True)
class Run:
    """One training and the attributions made with it.

    Parameters
    ----------
    name : str
    created : str
        Local time, as in 2026-11-16T09:30:00.
    factors : mapping of str to Factor
        As requested.
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
    def cut_short(self) -> str:
        """Where training was stopped before its end, in words; empty if it was not."""
        if self.fit.complete:
            return ""
        steps = self.fit.settings.steps + self.fit.repeated
        return f"cut short at step {self.fit.steps:,} of {steps:,}"

    @property
    def verdict(self) -> str:
        """A word or two for each factor: "place clear, speed at chance"."""
        found = self.fit.goodness.items()
        told = ", ".join(f"{name} {goodness.strength}" for name, goodness in found)
        return f"{self.cut_short}: {told}" if self.cut_short else told

    def with_attribution(self, attribution: Attribution) -> Run:
        """Copy with an attribution added, or replaced if the method is the same.

        It gets the test of the cells against chance, if there is one.
        """
        tested = self.significance
        if tested is not None and tested.fits(attribution.factors, attribution.cell_ids):
            attribution = attribution.with_significance(tested)
        return replace(self, attributions={**self.attributions, attribution.method: attribution})

    @property
    def significance(self) -> Significance | None:
        """Test of the cells, if there is one: it is the same for all methods."""
        tested = (each.significance for each in self.attributions.values())
        return next((test for test in tested if test is not None), None)

    def with_significance(self, significance: Significance) -> Run:
        """Copy whose attributions have p and q, which are saved with them."""
        tested = {
            method: each.with_significance(significance)
            for method, each in self.attributions.items()
        }
        return replace(self, attributions=tested)

    def with_stability(self, stability: Stability) -> Run:
        """Copy with scores by further seeds, and their consensus.

        They are added to the attribution by the same method, which counts as the first seed; the
        consensus is a map of its own. Both are saved.
        """
        first = self.attributions[stability.method]
        before = first.stability or Stability.of([first])
        repeated = first.with_stability(before.with_more(stability))
        consensus = repeated.consensus()
        more = {repeated.method: repeated, consensus.method: consensus}
        return replace(self, attributions={**self.attributions, **more})

    def save(self, folder: str | PathLike[str]) -> Path:
        """Write the run to a folder of its own; ``run.json`` lists all files with their checksums.

        At any moment the folder holds one complete run, this or an earlier one, also if two
        programs save to it at once.
        """
        folder = Path(folder)
        refuse_link(folder / FIT)
        with locked(folder), locked(folder / FIT):
            before = _files_in(folder)
            contents = _packed_fit(self.fit)
            contents |= {f"{m}.npz": each.packed() for m, each in self.attributions.items()}
            about = {
                "kind": KIND,
                "format": FORMAT,
                "name": self.name,
                "created": self.created,
                "factors": {name: asdict(factor) for name, factor in self.factors.items()},
                "attributions": list(self.attributions),
            }
            write_together(folder, FILE, about, contents, before)
        return folder

    @classmethod
    def load(cls, folder: str | PathLike[str], recording: Recording | None = None) -> Run:
        """Open what `save` wrote; with the recording, scores over time can be computed.

        Fit and scores that do not belong to ``run.json`` are refused.
        """
        folder = Path(folder)
        return while_unchanged(folder / FILE, lambda: cls._read(folder, recording))

    @classmethod
    def _read(cls, folder: Path, recording: Recording | None) -> Run:
        from napari_xcebra.learn import Factor

        about = read_description(folder / FILE, "run", FORMAT)
        if not isinstance(about.get("attributions"), list):
            raise InputError(f"{folder / FILE} is damaged: it does not list the attributions.")
        try:
            fit, scores = _contents(folder, about)
            if recording is not None:
                for each in (fit.fingerprint, *(one.fingerprint for one in scores.values())):
                    check_same(each, recording, f"run {about['name']}")
            attributions = {
                method: replace(each, fit=fit, recording=recording)
                for method, each in scores.items()
            }
            factors = {name: Factor(**values) for name, values in about["factors"].items()}
            return cls(str(about["name"]), str(about["created"]), factors, fit, attributions)
        except (KeyError, TypeError, AttributeError, NotAsListed) as error:
            raise InputError(
                f"{folder} does not hold a complete run ({problem(error)}): save the run again, or "
                "restore the folder from a copy."
            ) from error


def _contents(folder: Path, about: Mapping[str, Any]) -> tuple[Fit, dict[str, Attribution]]:
    """Fit and attributions, by method, as the description lists them."""
    from napari_xcebra.attribution import Attribution
    from napari_xcebra.learn import Fit
    from napari_xcebra.learn.result import described_fit

    names = {str(method): f"{Path(method).name}.npz" for method in about["attributions"]}
    files = listed_in(about, folder / FILE)
    if files is None:  # of an earlier version
        scores = {method: Attribution.load(folder / name) for method, name in names.items()}
        return Fit.load(folder / FIT), scores
    place = folder / FIT / "fit.json"
    of_fit = described_fit(content_of(folder, "fit/fit.json", files).decode(), place)
    fit = Fit.unpacked(of_fit, lambda name: content_of(folder, f"fit/{name}", files), place.parent)
    scores = {
        method: Attribution.unpacked(content_of(folder, name, files), folder / name)
        for method, name in names.items()
    }
    return fit, scores


def _files_in(folder: Path) -> Listed:
    """Files of the run in a folder, beside its description."""
    from napari_xcebra.learn.result import files_of_fit

    of_fit = {f"{FIT}/{name}": each for name, each in files_of_fit(folder / FIT).items()}
    return {**of_fit, **listed_by(folder / FILE)}


def remove_run(folder: Path, described: Mapping[str, Any]) -> None:
    """Remove a saved run if its description is still that one; other files in its folder stay.

    Parameters
    ----------
    folder : Path
    described : mapping
        Size and SHA-256 of its ``run.json``.
    """
    if folder.is_symlink() or differences(folder, {FILE: described}):
        return
    remove_listed(folder, {**_files_in(folder), FILE: described})
    with contextlib.suppress(OSError):  # something of the user's is in it
        if (folder / FIT).is_dir():
            (folder / FIT).rmdir()
        folder.rmdir()


def missing_in(folder: Path) -> list[str]:
    """Files of a run that are missing or cut short, each as part of a sentence; contents unread."""
    about = read_description(folder / FILE, "run", FORMAT)
    files = listed_in(about, folder / FILE)
    if files is not None:
        return differences(folder, files, contents=False)
    names = ["fit/fit.json", *(f"{Path(str(m)).name}.npz" for m in about.get("attributions", ()))]
    names += list(_files_in(folder)) or [f"{FIT}/weights"]
    return [f"{name} is missing" for name in names if not (folder / name).is_file()]


def now() -> str:
    """The local time, as of `Run.created`."""
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
    """Name for a run without one.

    >>> next_name(["run 1", "place"])
    'run 2'
    """
    return next(name for i in range(1, len(taken) + 2) if (name := f"run {i}") not in taken)


@contextlib.contextmanager
def results_to(folder: Path, fit: Fit, *, with_fit: bool = False) -> Iterator[Path]:
    """A folder to write files to, which then take their places in another one together.

    At any moment that one holds the earlier results or the new ones, never some of both; files of
    other names stay in it. If the block fails, nothing was written.

    Parameters
    ----------
    folder : Path
        To have to oneself meanwhile.
    fit : Fit
        That the files are computed with.
    with_fit : bool
        Write the fit as well.
    """
    from napari_xcebra.learn.result import files_of_fit

    refuse_link(folder / FIT)
    new = folder / STAGED / _NEW
    settle(folder)
    shutil.rmtree(new, ignore_errors=True)
    try:
        with in_a_sentence(folder):
            new.mkdir(parents=True)
        yield new
        contents: dict[str, Path | bytes] = {
            path.name: path for path in sorted(new.iterdir()) if path.is_file()
        }
        before: Listed = {}
        if with_fit:
            contents |= _packed_fit(fit)
            before = {f"{FIT}/{name}": e for name, e in files_of_fit(folder / FIT).items()}
        others = {
            name: each
            for name, each in results_in(folder).items()
            if name not in before and (folder / name).exists()
        }
        about = {"kind": f"napari-xcebra {RESULTS_KIND}", "format": RESULTS_FORMAT}
        write_together(
            folder, RESULTS, about, contents, before, others=others, mark={"fit": fit.digest}
        )
    finally:
        shutil.rmtree(new, ignore_errors=True)
        with contextlib.suppress(OSError):
            new.parent.rmdir()


def _packed_fit(fit: Fit) -> dict[str, bytes]:
    """Contents of the files of a fit, by their names in the folder that has it in `FIT`."""
    about, weights = fit.packed()
    listed = {name: entry(content) for name, content in weights.items()}
    contents = {f"{FIT}/{name}": content for name, content in weights.items()}
    return {**contents, f"{FIT}/fit.json": described({**about, "files": listed}).encode()}


def results_in(folder: Path) -> Listed:
    """What the list of a folder says; nothing if there is none, or it is damaged."""
    try:
        about = read_description(folder / RESULTS, RESULTS_KIND, RESULTS_FORMAT)
        return listed_in(about, folder / RESULTS) or {}
    except InputError:
        return {}


def problems_in(folder: Path, fit: Fit) -> list[str]:
    """Why a run or results in a folder are not whole, a sentence each."""
    files = results_in(folder)
    of_fit = f"{FIT}/"
    wrong = [why_not_of(fit, folder, n, files) for n in files if not n.startswith(of_fit)]
    if (folder / FILE).is_file():
        wrong += [f"{each}." for each in differences(folder, listed_by(folder / FILE))]
    return list(filter(None, wrong))


def why_not_of(fit: Fit, folder: Path, name: str, files: Listed) -> str:
    """Why a file must not be used with a fit, in a sentence; empty if it may, or is not listed."""
    if name not in files:
        return ""
    if files[name].get("fit") != fit.digest:
        return f"{name} belongs to another training, and is left out."
    if differences(folder, {name: files[name]}):
        return f"{name} is missing, or was changed after it was written, and is left out."
    return ""
