"""Holds, saves and loads a joint fit: one embedding of several sessions."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from napari_xcebra.checksums import (
    differences,
    entry_of,
    listed_by,
    listed_in,
    while_unchanged,
)
from napari_xcebra.errors import InputError
from napari_xcebra.files import read_description, write_description
from napari_xcebra.learn.result import FILE as FIT
from napari_xcebra.learn.result import Fit, remove_fit
from napari_xcebra.learn.settings import FitSettings
from napari_xcebra.locks import locked

FILE, FORMAT, KIND = "joint.json", 1, "napari-xcebra joint fit"
_FIT = re.compile(rf"fits/[0-9a-f]{{8}}-[0-9]+/{re.escape(FIT)}")
"""Names that `save` gives: no other is removed."""


@dataclass(frozen=True)
class JointFit:
    """One embedding of several sessions.

    Parameters
    ----------
    fits : mapping of str to Fit
        By session. Each works on its own session as any other fit does: `embed`, `attribute`.
    own : {"input layer", "encoder"}
        What each session has for itself; the rest of the encoder is shared.
    """

    fits: Mapping[str, Fit]
    own: str

    def __getitem__(self, session: str) -> Fit:
        """Fit of one session; the error lists the sessions there are."""
        try:
            return self.fits[session]
        except KeyError:
            raise InputError(
                f"There is no session {session!r} here; there are: {', '.join(self.fits)}."
            ) from None

    @property
    def sessions(self) -> tuple[str, ...]:
        """Names of the sessions."""
        return tuple(self.fits)

    @property
    def settings(self) -> FitSettings:
        """Settings of the training, the same for all."""
        return self._first.settings

    @property
    def factors(self) -> tuple[str, ...]:
        """Names of the parts of the embedding."""
        return self._first.factors

    @property
    def steps(self) -> int:
        """Steps done; fewer than requested if training was stopped."""
        return self._first.steps

    @property
    def _first(self) -> Fit:
        return next(iter(self.fits.values()))

    def summary(self) -> str:
        """Verdict of every factor in every session, and how λ was found, a line each."""
        lines = [
            f"{name}: {goodness.verdict}"
            for name, fit in self.fits.items()
            for goodness in fit.goodness.values()
        ]
        return "\n".join(filter(None, [*lines, self._first.lambda_reason]))

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write a folder for each fit, and `joint.json` last, so that it is complete.

        Fits go to new folders; those of an earlier save are removed once the file names the new
        ones.
        """
        folder = Path(folder)
        mark = uuid4().hex[:8]
        places = {name: f"fits/{mark}-{i}" for i, name in enumerate(self.fits)}
        with locked(folder):
            before = listed_by(folder / FILE)
            for name, fit in self.fits.items():
                fit.save(folder / places[name])
            names = [f"{place}/{FIT}" for place in places.values()]
            files = {name: entry_of(folder / name) for name in names}
            about = {"kind": KIND, "format": FORMAT, "own": self.own, "sessions": places}
            write_description(folder / FILE, {**about, "files": files})
            for name, wanted in before.items():
                if _FIT.fullmatch(name) and not (folder / "fits").is_symlink():
                    remove_fit((folder / name).parent, wanted)
        return folder

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> JointFit:
        """Read what `save` wrote."""
        folder = Path(folder)
        return while_unchanged(folder / FILE, lambda: cls._read(folder))

    @classmethod
    def _read(cls, folder: Path) -> JointFit:
        about = read_description(folder / FILE, "joint fit", FORMAT)
        try:
            places = {str(name): Path(place).name for name, place in about["sessions"].items()}
            own = str(about["own"])
        except (KeyError, TypeError, AttributeError) as error:
            raise InputError(f"{folder / FILE} is damaged: it lacks {error}.") from error
        if wrong := differences(folder, listed_in(about, folder / FILE) or {}):
            raise InputError(
                f"{folder} does not hold a complete joint fit ({wrong[0]}): train again, or "
                "restore the folder from a copy."
            )
        return cls({name: Fit.load(folder / "fits" / place) for name, place in places.items()}, own)
