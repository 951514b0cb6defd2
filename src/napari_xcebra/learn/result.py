"""Holds, saves and loads a fit, and a joint fit of several sessions; imports no torch at once."""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np
from safetensors.numpy import load, save

from napari_xcebra.checksums import (
    Listed,
    NotAsListed,
    content_of,
    differences,
    entry,
    entry_of,
    listed_by,
    listed_in,
    problem,
    remove_listed,
    while_unchanged,
    write_together,
)
from napari_xcebra.errors import InputError
from napari_xcebra.files import (
    check_description,
    parsed_json,
    read_bytes,
    read_description,
    read_json,
    write_description,
)
from napari_xcebra.learn.data.factors import Part, part_named
from napari_xcebra.learn.data.inputs import Filter, Inputs
from napari_xcebra.learn.data.split import usable_frames
from napari_xcebra.learn.quality.verdict import Goodness
from napari_xcebra.learn.settings import FitSettings
from napari_xcebra.locks import locked
from napari_xcebra.recording import Recording
from napari_xcebra.recording.fingerprint import Fingerprint

if TYPE_CHECKING:
    from napari_xcebra.learn.device import FrameData
    from napari_xcebra.learn.model.encoder import Encoder

FILE, FORMAT = "fit.json", 1
"""Description of a saved fit, and its version; later versions of the program read earlier ones."""
_WEIGHTS = re.compile(r"weights-([0-9a-f]{16})\.safetensors")


@dataclass(frozen=True)
class Fit:
    """A trained encoder, with everything needed to use, judge and reproduce it.

    Parameters
    ----------
    settings : FitSettings
    parts : tuple of Part
        Behaviour factors in their order, then time.
    inputs : Inputs
        Cells in use and their standardisation.
    weights : mapping of str to array
        Parameters of the encoder.
    scale : (latents,) float32
        Factor of each latent inside the similarity (τ^(−1/2)).
    history : mapping of str to (reports,) float64
        "step", "lambda", "penalty", and the loss of each part.
    goodness : mapping of str to Goodness
    steps : int
        Steps done; fewer than asked for if training was stopped.
    source : str
        Recording it was trained on.
    versions : mapping of str to str
    notes : tuple of str
        Notes to the user about this run.
    lambda_reason : str
        Why λ is what it is, if it was found by the run.
    stop_reason : str
        Why it did not do all steps, if it stopped by itself.
    repeated : int
        Steps of the search for λ that were undone when it ended, and done again.
    together : tuple of str
        Other sessions that it was trained together with.
    seconds : float
        About how long training took where it was trained; NaN if that is not known.
    fingerprint : Fingerprint or None
        Of the recording it was trained on.
    architecture : str
        Name of the encoder in the `cebra` package, if it is one of its models.
    """

    settings: FitSettings
    parts: tuple[Part, ...]
    inputs: Inputs
    weights: Mapping[str, np.ndarray]
    scale: np.ndarray
    history: Mapping[str, np.ndarray]
    goodness: Mapping[str, Goodness]
    steps: int
    source: str
    versions: Mapping[str, str]
    notes: tuple[str, ...] = ()
    lambda_reason: str = ""
    stop_reason: str = ""
    repeated: int = 0
    together: tuple[str, ...] = ()
    seconds: float = field(default=float("nan"), compare=False)
    fingerprint: Fingerprint | None = None
    architecture: str = ""

    @property
    def factors(self) -> tuple[str, ...]:
        """Names of the parts of the embedding."""
        return tuple(part.name for part in self.parts)

    @property
    def complete(self) -> bool:
        """Whether training ran to its end: all steps, or until nothing changed any more."""
        return self.steps >= self.settings.steps + self.repeated or bool(self.stop_reason)

    @property
    def lambda_(self) -> float:
        """λ that training ended with, given or found; NaN if it ended before its first report."""
        reported = self.history["lambda"]
        return float(reported[-1]) if len(reported) else float("nan")

    def part(self, factor: str) -> Part:
        """Part of that name; the error lists the names there are."""
        return part_named(factor, self.parts)

    def encoder(self, device: str | None = None) -> Encoder:
        """The trained encoder, ready to use."""
        import torch

        from napari_xcebra.learn.device import choose_device
        from napari_xcebra.learn.model import encoder_like

        # the initial weights are replaced at once; drawing them must not move the user's seed
        with torch.random.fork_rng(devices=[]):
            encoder = encoder_like(self.weights, self.settings, self.architecture)
        weights = {name: torch.as_tensor(np.array(w)) for name, w in self.weights.items()}
        encoder.load_state_dict(weights)
        return encoder.to(choose_device(device or self.settings.device)).requires_grad_(False)

    def frame_data(self, recording: Recording, device: str | None = None) -> FrameData:
        """Inputs of the encoder for this recording, gathered by frame."""
        from napari_xcebra.learn.device import FrameData, choose_device

        chosen = choose_device(device or self.settings.device)
        return FrameData(self.inputs.on(recording), self.settings.window, chosen)

    def embed(self, recording: Recording) -> np.ndarray:
        """Embedding of every frame, NaN where its window leaves the trial: (frames, latents)."""
        from napari_xcebra.learn.device import embedded, limited_threads

        frames = usable_frames(recording, self.settings.window)
        with limited_threads(self.settings.threads):
            return embedded(self.encoder(), self.frame_data(recording), frames)

    def summary(self) -> str:
        """Verdict of every factor, and how λ was found, a line each."""
        lines = [goodness.verdict for goodness in self.goodness.values()]
        return "\n".join(filter(None, [*lines, self.lambda_reason, self.stop_reason]))

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write `fit.json` and the weights it names into a folder.

        At any moment the folder holds one complete fit, this or an earlier one, also if two
        programs save to it at once.
        """
        folder = Path(folder)
        with locked(folder):
            before = files_of_fit(folder)
            about, weights = self.packed()
            write_together(folder, FILE, about, weights, before)
        return folder

    def packed(self) -> tuple[dict[str, Any], dict[str, bytes]]:
        """Description and, by its name, the file with the weights, as `save` writes them."""
        packed = save(self._tensors())
        weights = f"weights-{hashlib.sha256(packed).hexdigest()[:16]}.safetensors"
        return self._description(weights), {weights: packed}

    @property
    def digest(self) -> str:
        """Checksum of everything that was learned, by which scores name the fit they are of."""
        digest = hashlib.sha256()
        for name, values in sorted(self._tensors().items()):
            digest.update(f"{name} {values.dtype} {values.shape} ".encode())
            digest.update(values.tobytes())
        return digest.hexdigest()

    def _tensors(self) -> dict[str, np.ndarray]:
        tensors = {f"encoder.{name}": np.ascontiguousarray(w) for name, w in self.weights.items()}
        tensors |= {f"history.{name}": np.asarray(v) for name, v in self.history.items()}
        return tensors | {
            "scale": self.scale,
            "inputs.cell_ids": self.inputs.cell_ids,
            "inputs.mean": self.inputs.mean,
            "inputs.scale": self.inputs.scale,
        }

    def _description(self, weights: str) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "kind": "napari-xcebra fit",
            "weights": weights,
            "settings": self.settings.as_dict(),
            "parts": [part.as_dict() for part in self.parts],
            "smoothing": self.inputs.smoothing,
            "filter": {
                "weights": list(self.inputs.filter.weights),
                "spacing": self.inputs.filter.spacing,
            },
            "clip": None if math.isinf(self.inputs.clip) else self.inputs.clip,
            "goodness": {name: g.as_dict() for name, g in self.goodness.items()},
            "steps": self.steps,
            "source": self.source,
            "fingerprint": self.fingerprint and self.fingerprint.as_dict(),
            "versions": dict(self.versions),
            "notes": list(self.notes),
            "lambda_reason": self.lambda_reason,
            "stop_reason": self.stop_reason,
            "repeated": self.repeated,
            "together": list(self.together),
            "seconds": None if math.isnan(self.seconds) else round(self.seconds, 1),
            "architecture": self.architecture,
        }

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Fit:
        """Read a fit that `save` wrote, by this or an earlier version."""
        folder = Path(folder)

        def read() -> Fit:
            about = read_description(folder / FILE, "fit", FORMAT)
            return cls.unpacked(about, lambda name: _weights_of(folder, name, about), folder)

        return while_unchanged(folder / FILE, read)

    @classmethod
    def unpacked(
        cls, about: Mapping[str, Any], weights: Callable[[str], bytes], folder: Path
    ) -> Fit:
        """From a description and, by its name, the file with the weights."""
        try:
            tensors = load(weights(about["weights"]))
            goodness = {name: Goodness.from_dict(g) for name, g in about["goodness"].items()}
            return cls(
                settings=FitSettings.from_dict(about["settings"]),
                parts=tuple(Part.from_dict(part) for part in about["parts"]),
                inputs=Inputs(
                    tensors["inputs.cell_ids"],
                    tensors["inputs.mean"],
                    tensors["inputs.scale"],
                    about["smoothing"],
                    _read_filter(about.get("filter")),
                    float(about.get("clip") or "inf"),
                ),
                weights=_under("encoder.", tensors),
                scale=tensors["scale"],
                history=_under("history.", tensors),
                goodness=goodness,
                steps=about["steps"],
                source=about["source"],
                fingerprint=Fingerprint.from_dict(about["fingerprint"]),
                versions=about["versions"],
                notes=tuple(about["notes"]),
                lambda_reason=about.get("lambda_reason", ""),
                stop_reason=about.get("stop_reason", ""),
                repeated=about.get("repeated", 0),
                together=tuple(about.get("together", ())),
                seconds=float(about.get("seconds") or "nan"),
                architecture=str(about.get("architecture", "")),
            )
        # values of another kind than they should be fail in many ways
        except Exception as error:
            if isinstance(error, InputError) and not isinstance(error, NotAsListed):
                raise
            raise InputError(
                f"{folder} does not hold a complete fit ({problem(error)}): train again, or "
                "restore the folder from a copy."
            ) from error


def described_fit(text: str, path: Path) -> dict[str, Any]:
    """Description of a fit from the text of its file."""
    return check_description(parsed_json(text, path), path, "fit", FORMAT)


def _weights_of(folder: Path, name: str, about: Mapping[str, Any]) -> bytes:
    """The file with the weights, checked; earlier versions have its checksum in its name only."""
    name = Path(name).name
    files = listed_in(about, folder / FILE)
    if files is not None:
        return content_of(folder, name, files)
    packed = read_bytes(folder / name)
    if (told := _WEIGHTS.fullmatch(name)) and told[1] != entry(packed)["sha256"][:16]:
        raise NotAsListed(f"{name} is damaged")
    return packed


def files_of_fit(folder: Path) -> Listed:
    """Files that the fit in a folder has beside its description."""
    files = dict(listed_by(folder / FILE))
    with contextlib.suppress(InputError, OSError, KeyError, TypeError, ValueError):
        name = str(read_json(folder / FILE)["weights"])
        told = _WEIGHTS.fullmatch(name)  # all that earlier versions say of it
        if told and name not in files and (found := entry_of(folder / name)):
            files |= {name: found} if found["sha256"].startswith(told[1]) else {}
    return files


def _remove_fit(folder: Path, described: Mapping[str, Any]) -> None:
    """Remove a saved fit if its description has that size and SHA-256; other files there stay."""
    if folder.is_symlink() or differences(folder, {FILE: described}):
        return
    remove_listed(folder, {**files_of_fit(folder), FILE: described})
    with contextlib.suppress(OSError):
        folder.rmdir()


def _read_filter(about: dict[str, Any] | None) -> Filter:
    """Fits of earlier versions have none."""
    return Filter(tuple(about["weights"]), int(about["spacing"])) if about else Filter()


def _under(prefix: str, tensors: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}


JOINT_FILE, JOINT_FORMAT, JOINT_KIND = "joint.json", 1, "napari-xcebra joint fit"
_FIT_OF_SESSION = re.compile(rf"fits/[0-9a-f]{{8}}-[0-9]+/{re.escape(FILE)}")
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
            before = listed_by(folder / JOINT_FILE)
            for name, fit in self.fits.items():
                fit.save(folder / places[name])
            names = [f"{place}/{FILE}" for place in places.values()]
            files = {name: entry_of(folder / name) for name in names}
            about = {
                "kind": JOINT_KIND,
                "format": JOINT_FORMAT,
                "own": self.own,
                "sessions": places,
            }
            write_description(folder / JOINT_FILE, {**about, "sessions": places, "files": files})
            for name, wanted in before.items():
                if _FIT_OF_SESSION.fullmatch(name) and not (folder / "fits").is_symlink():
                    _remove_fit((folder / name).parent, wanted)
        return folder

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> JointFit:
        """Read what `save` wrote."""
        folder = Path(folder)
        return while_unchanged(folder / JOINT_FILE, lambda: cls._read(folder))

    @classmethod
    def _read(cls, folder: Path) -> JointFit:
        about = read_description(folder / JOINT_FILE, "joint fit", JOINT_FORMAT)
        try:
            places = {str(name): Path(place).name for name, place in about["sessions"].items()}
            own = str(about["own"])
        except (KeyError, TypeError, AttributeError) as error:
            raise InputError(f"{folder / JOINT_FILE} is damaged: it lacks {error}.") from error
        if wrong := differences(folder, listed_in(about, folder / JOINT_FILE) or {}):
            raise InputError(
                f"{folder} does not hold a complete joint fit ({wrong[0]}): train again, or "
                "restore the folder from a copy."
            )
        return cls({name: Fit.load(folder / "fits" / place) for name, place in places.items()}, own)
