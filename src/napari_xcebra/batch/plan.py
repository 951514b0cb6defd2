"""Defines a sweep and its members, each identified by all that its result depends on."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from napari_xcebra.attribution.methods import METHODS
from napari_xcebra.errors import InputError
from napari_xcebra.learn.data.factors import Factor, Factors, as_factors
from napari_xcebra.learn.settings import FitSettings
from napari_xcebra.recording import Recording
from napari_xcebra.recording.fingerprint import content_of_training

RESULTS = 2
"""Increased when the same member gives other results than before, so that it is run again."""
_ELSEWHERE = ("device", "threads")
"""Knobs that say where to compute, not what: not part of a member's id."""


@dataclass(frozen=True, eq=False)
class Member:
    """One run of a sweep.

    Parameters
    ----------
    id : str
        Ten characters made from everything that the result depends on: another sweep with the
        same member finds it done.
    recording : str
        Name of its recording in the sweep.
    factors : mapping of str to Factor
    settings : FitSettings
    shift : float
        Seconds by which the labels are moved against the traces, around the recording.
    method : str
        Of the attribution.
    varied : mapping of str to value
        What distinguishes it from the others: "recording", "shift", "place latents" or a knob.
    """

    id: str
    recording: str
    factors: Mapping[str, Factor]
    settings: FitSettings
    shift: float
    method: str
    varied: Mapping[str, Any]

    @property
    def title(self) -> str:
        """What distinguishes it from the others, in words: "seed 1, λ auto"."""
        words = [f"{knob_name(name)} {value}" for name, value in self.varied.items()]
        return ", ".join(words) or "the only run"

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for a file."""
        return {
            "id": self.id,
            "recording": self.recording,
            "shift": self.shift,
            "method": self.method,
            "varied": dict(self.varied),
            "factors": {name: asdict(factor) for name, factor in self.factors.items()},
            "settings": self.settings.as_dict(),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Member:
        """Member from a file."""
        return cls(
            str(values["id"]),
            str(values["recording"]),
            {name: Factor(**about) for name, about in values["factors"].items()},
            FitSettings.from_dict(values["settings"]),
            float(values["shift"]),
            str(values["method"]),
            dict(values["varied"]),
        )


@dataclass(frozen=True, eq=False)
class Sweep:
    """Runs that differ in seeds, latents, settings, shifts of the labels, or recordings.

    Parameters
    ----------
    recordings : mapping of str to Recording
        By the names used in the tables.
    factors : mapping of str to list of str, or to Factor
        As `fit` takes them.
    settings : FitSettings
        Settings that all runs share.
    grid : mapping of str to sequence
        Knobs of `FitSettings` and the values each takes: ``{"seed": [0, 1], "lambda_": [0.1, 1]}``.
    latents : mapping of str to sequence of int
        Numbers of latents to try for a factor; those of time are the knob `time_latents`.
    shifts : sequence of float
        Seconds by which the labels are moved against the traces; 0 is as recorded.
    method : str
        Of the attribution.
    factors_by_recording : mapping of str to factors
        Where recordings have factors of their own.
    truth : mapping of str to mapping of str to (cells,) bool
        By recording and factor: cells known to carry it, where that is known.

    Examples
    --------
    >>> from napari_xcebra.simulate import box
    >>> made = box(frames=3000)
    >>> sweep = Sweep({"box": made.recording}, made.factors, grid={"seed": [0, 1, 2]})
    >>> [member.title for member in sweep.members]
    ['seed 0', 'seed 1', 'seed 2']
    """

    recordings: Mapping[str, Recording]
    factors: Factors
    settings: FitSettings = field(default_factory=FitSettings)
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    latents: Mapping[str, Sequence[int]] = field(default_factory=dict)
    shifts: Sequence[float] = (0.0,)
    method: str = METHODS[0]
    truth: Mapping[str, Mapping[str, np.ndarray]] = field(default_factory=dict)
    factors_by_recording: Mapping[str, Factors] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.recordings:
            raise InputError("A sweep needs at least one recording.")
        if self.method not in METHODS:
            known = ", ".join(METHODS)
            raise InputError(f"`method` is {self.method!r}: one of {known} is needed.")
        factors = {n for each in self.recordings for n in self._factors_of(each, self.settings)}
        for name in self.latents:
            if name not in factors:
                raise InputError(
                    f"Latents are given for factor {name!r}, but the factors are: "
                    f"{', '.join(factors) or 'none'}."
                )
        knobs = [about.name for about in fields(FitSettings)]
        for name, values in self.grid.items():
            if name not in knobs:
                raise InputError(f"There is no setting `{name}`; there are: {', '.join(knobs)}.")
            if len(values) == 0:
                raise InputError(f"`{name}` has no values: give at least one.")
        _ = self.members  # a mistake in any of them is found now rather than after an hour

    @cached_property
    def members(self) -> tuple[Member, ...]:
        """Every combination, once."""
        made = []
        for name, recording in self.recordings.items():
            shared = self._factors_of(name, self.settings)
            variables = sorted({v for factor in shared.values() for v in factor.variables})
            content = content_of_training(recording, variables)
            for shift in self.shifts:
                _check_shift(shift, recording, name)
                for sizes in product(*self.latents.values()):
                    for values in product(*self.grid.values()):
                        sized = dict(zip(self.latents, sizes, strict=True))
                        knobs = dict(zip(self.grid, values, strict=True))
                        made.append(self._member(name, content, float(shift), sized, knobs))
        return tuple({member.id: member for member in made}.values())

    def _factors_of(self, recording: str, settings: FitSettings) -> dict[str, Factor]:
        return as_factors(self.factors_by_recording.get(recording, self.factors), settings)

    def _member(
        self,
        recording: str,
        content: Mapping[str, Any],
        shift: float,
        sizes: Mapping[str, int],
        knobs: Mapping[str, Any],
    ) -> Member:
        settings = replace(self.settings, **knobs)
        factors = self._factors_of(recording, settings)
        factors = {
            name: replace(factor, latents=sizes.get(name, factor.latents))
            for name, factor in factors.items()
        }
        as_factors(factors, settings)  # checks the numbers of latents
        what = settings.as_dict()
        made_of = {
            "results": RESULTS,
            "recording": content,
            "factors": {name: asdict(factor) for name, factor in factors.items()},
            "settings": {name: what[name] for name in what if name not in _ELSEWHERE},
            "shift": shift,
            "method": self.method,
        }
        return Member(
            _digest(made_of),
            recording,
            factors,
            settings,
            shift,
            self.method,
            self._varied(recording, shift, sizes, {name: what[name] for name in knobs}),
        )

    def _varied(
        self, recording: str, shift: float, sizes: Mapping[str, int], knobs: Mapping[str, Any]
    ) -> dict[str, Any]:
        varied: dict[str, Any] = {}
        if len(self.recordings) > 1:
            varied["recording"] = recording
        if len(self.shifts) > 1:
            varied["shift"] = shift
        varied |= {
            f"{name} latents": size for name, size in sizes.items() if len(self.latents[name]) > 1
        }
        return varied | {name: value for name, value in knobs.items() if len(self.grid[name]) > 1}

    def as_dict(self) -> dict[str, Any]:
        """Plain values for a file, without the content of the recordings."""
        own = [self._factors_of(name, self.settings) for name in self.recordings]
        factors = {name: factor for each in own for name, factor in each.items()}
        return {
            "recordings": {
                name: {
                    "source": each.source,
                    "frames": each.n_frames,
                    "cells": each.n_cells,
                    "rate": float(each.rate),
                }
                for name, each in self.recordings.items()
            },
            "factors": {name: asdict(factor) for name, factor in factors.items()},
            "settings": self.settings.as_dict(),
            "grid": {name: list(values) for name, values in self.grid.items()},
            "latents": {name: list(values) for name, values in self.latents.items()},
            "shifts": [float(shift) for shift in self.shifts],
            "method": self.method,
            "members": [member.as_dict() for member in self.members],
        }


@dataclass(frozen=True)
class Shard:
    """Part of a sweep, for one of several programs that write to the same folder.

    Members are dealt out in turn, so that shards are disjoint and complete, and alike in what they
    take.

    Parameters
    ----------
    number : int
        From 1.
    count : int
        Shards in all.

    Examples
    --------
    >>> Shard.typed("2/4")
    Shard(number=2, count=4)
    """

    number: int
    count: int

    @classmethod
    def typed(cls, text: str) -> Shard:
        """As typed: "2/4"."""
        number, slash, count = text.partition("/")
        if not (slash and number.isdecimal() and count.isdecimal()):
            raise InputError(f"The shard is {text!r}: give its number and their count, as in 2/4.")
        if not 1 <= int(number) <= int(count):
            raise InputError(f"There is no shard {text}: shards are numbered from 1 to {count}.")
        return cls(int(number), int(count))

    def of(self, sweep: Sweep) -> tuple[Member, ...]:
        """Its members; none if there are more shards than members."""
        return sweep.members[self.number - 1 :: self.count]


def read_sweep(path: str | os.PathLike[str]) -> Sweep:
    """The sweep described by a file, with its recordings open."""
    from napari_xcebra.analysis_file import named_in, sweep_in

    with named_in(Path(path)):
        return Sweep(**sweep_in(Path(path)))


def knob_name(name: str) -> str:
    """Name in a table of what is varied.

    >>> knob_name("lambda_"), knob_name("time_latents")
    ('λ', 'time latents')
    """
    return {"lambda_": "λ", "shift": "shift (s)"}.get(name, name.replace("_", " "))


def plain(value: Any) -> Any:
    """Plain numbers and lists, for JSON, of numpy's."""
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else list(value)


def _check_shift(shift: float, recording: Recording, name: str) -> None:
    seconds = recording.n_frames / recording.rate
    if not -seconds < shift < seconds:
        raise InputError(
            f"A shift of {shift:g} s is longer than recording {name!r}, which lasts "
            f"{seconds:.0f} s."
        )


def _digest(made_of: Mapping[str, Any]) -> str:
    text = json.dumps(made_of, sort_keys=True, default=plain)
    return hashlib.sha256(text.encode()).hexdigest()[:10]
