"""What a joint training leaves: a fit for each session, in one embedding."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from napari_xcebra.files import read_description, whole
from napari_xcebra.learn.result import Fit
from napari_xcebra.learn.settings import FitSettings
from napari_xcebra.recording import InputError

FILE, FORMAT, KIND = "joint.json", 1, "napari-xcebra joint fit"


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
        """Fit of one session, or a sentence listing those there are."""
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
        return next(iter(self.fits.values())).settings

    @property
    def factors(self) -> tuple[str, ...]:
        """Names of the parts of the embedding."""
        return next(iter(self.fits.values())).factors

    @property
    def steps(self) -> int:
        """Steps done; fewer than asked for if training was stopped."""
        return next(iter(self.fits.values())).steps

    def summary(self) -> str:
        """Verdict of every factor in every session, and how λ was found, a line each."""
        lines = [
            f"{name}: {goodness.verdict}"
            for name, fit in self.fits.items()
            for goodness in fit.goodness.values()
        ]
        reason = next(iter(self.fits.values())).lambda_reason
        return "\n".join(filter(None, [*lines, reason]))

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write a folder for each fit, and `joint.json` last, so that it is whole.

        Fits go to new folders; those of an earlier save are removed once the file names the new
        ones.
        """
        folder = Path(folder)
        mark = uuid4().hex[:8]
        places = {name: f"fits/{mark}-{i}" for i, name in enumerate(self.fits)}
        for name, fit in self.fits.items():
            fit.save(folder / places[name])
        about = {"kind": KIND, "format": FORMAT, "own": self.own, "sessions": places}
        with whole(folder / FILE) as file:
            file.write_text(json.dumps(about, indent=1), encoding="utf-8")
        for stale in (folder / "fits").iterdir():
            if stale.is_dir() and not stale.name.startswith(mark):
                shutil.rmtree(stale)
        return folder

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> JointFit:
        """Read what `save` wrote."""
        folder = Path(folder)
        about = read_description(folder / FILE, "joint fit", FORMAT)
        try:
            places = {str(name): Path(place).name for name, place in about["sessions"].items()}
            own = str(about["own"])
        except (KeyError, TypeError, AttributeError) as error:
            raise InputError(f"{folder / FILE} is damaged: it lacks {error}.") from error
        return cls({name: Fit.load(folder / "fits" / place) for name, place in places.items()}, own)
