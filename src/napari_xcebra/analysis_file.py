"""Reads and writes the TOML file that makes a run again; sweeps are asked for in the same words.

method = "both-routes"                    # may be left out
shifts = [0, 60, 120]                     # seconds; [0] if left out

[[recordings]]                            # one such part per recording
name = "day 1"                            # its path, if left out
path = "day1/suite2p/plane0"              # from the folder of this file
behavior = "day1/behaviour.csv"           # or several: ["a.csv", "b.csv"]
kinds = { heading_rad = "circular" }
truth = "carries.csv"                     # a column `cell`, and one of 0 and 1 for each factor
rate = 30                                 # and any other flag of `napari-xcebra info`

[factors]
place = ["x_cm", "y_cm"]
speed = { variables = ["speed"], latents = [1, 2] }

[settings]                                # of training: a value, or a list of values to try
seed = [0, 1, 2]
time_latents = [1, 2, 3]
lambda = ["auto", 0.1]
steps = 600
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from napari_xcebra.attribution.methods import METHODS
from napari_xcebra.errors import InputError
from napari_xcebra.files import name_of, read_text, whole
from napari_xcebra.io.opening import ROLES, Opening
from napari_xcebra.io.settings import OpenSettings
from napari_xcebra.learn.data.factors import Factor
from napari_xcebra.learn.settings import PRESETS, FitSettings
from napari_xcebra.recording import KINDS, Recording
from napari_xcebra.recording.fingerprint import content_changes, content_of_training
from napari_xcebra.runs import Run, now
from napari_xcebra.settings import worded
from napari_xcebra.spreadsheets import read_csv

_TOP = ("method", "shifts", "recordings", "factors", "settings")
_OPENING = ("name", "path", *ROLES, "footprints", "kinds", "truth", "cells")
_RUN = ("frames", "aggregate", "significance", "seeds", "model")
_RECORD = ("made", "content", "versions", "elsewhere")
"""Keys of an analysis, beside those of a sweep, which does without them."""
_CHOICES = tuple(knob.name for knob in fields(OpenSettings))
_FACTOR = ("variables", "latents", "similarity", "temperature")
_KEYS = {about.name: f"settings.{about.name.rstrip('_')}" for about in fields(FitSettings)} | {
    about.name: about.name for about in fields(OpenSettings)
}
"""Names in the file of what the library's sentences name."""


@contextmanager
def named_in(path: Path) -> Iterator[None]:
    """Sentences that are raised name this file, and settings by its keys."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{path}: {worded(str(error), _KEYS)}") from error


def sweep_in(path: Path) -> dict[str, Any]:
    """Arguments of a `Sweep`, with its recordings open."""
    asked = _parsed(path)
    _check_keys(asked, (*_TOP, *_RUN, *_RECORD), "")
    factors, latents = _factors(asked.get("factors", {}))
    settings, grid = _settings(asked.get("settings", {}))
    recordings, truth = _recordings(asked.get("recordings"), _places(asked, path.parent))
    return {
        "recordings": recordings,
        "factors": factors,
        "settings": settings,
        "grid": grid,
        "latents": latents,
        "shifts": _numbers(asked.get("shifts", [0.0]), "shifts"),
        "method": _text(asked.get("method", METHODS[0]), "method"),
        "truth": truth,
    }


def _parsed(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"this is not valid TOML: {error}.") from error
    except RecursionError as error:
        raise InputError("this is not valid TOML: it is nested too deeply.") from error


def _settings(asked: Any) -> tuple[FitSettings, dict[str, list[Any]]]:
    """Settings that all runs share, and lists of those that vary."""
    asked = {_knob(name): value for name, value in _table(asked, "settings").items()}
    known = [about.name for about in fields(FitSettings)]
    preset = asked.pop("preset", next(iter(PRESETS)))
    _check_keys(asked, [*known, "preset"], "settings.")
    if preset not in PRESETS:
        raise InputError(f"settings.preset is {preset!r}: one of {', '.join(PRESETS)} is needed.")
    grid = {name: value for name, value in asked.items() if isinstance(value, list)}
    for name, values in grid.items():
        if not values:
            raise InputError(f"settings.{_key(name)} is an empty list: give at least one value.")
    single = {name: value for name, value in asked.items() if name not in grid}
    return PRESETS[preset](**single), grid


def _factors(asked: Any) -> tuple[dict[str, Factor], dict[str, list[int]]]:
    factors, latents = {}, {}
    for name, given in _table(asked, "factors").items():
        where = f"factors.{name}"
        about = dict(given) if isinstance(given, Mapping) else {"variables": given}
        _check_keys(about, _FACTOR, f"{where}.")
        if isinstance(about.get("latents"), list):
            latents[name] = _numbers(about.pop("latents"), f"{where}.latents")
        if "variables" not in about:
            raise InputError(f"{where} names no variables: variables = [...] is needed.")
        variables = _texts(about.pop("variables"), f"{where}.variables")
        factors[name] = Factor(variables, **about)
    return factors, latents


def _recordings(
    asked: Any, place: Callable[[str], Path]
) -> tuple[dict[str, Recording], dict[str, dict[str, np.ndarray]]]:
    found: dict[str, Recording] = {}
    truth: dict[str, dict[str, np.ndarray]] = {}
    for where, about in _parts(asked):
        name = _text(about.get("name", about["path"]), f"{where}: name")
        if name in found:
            raise InputError(f"{where} is called {name!r}, like another one: give it its own name.")
        found[name] = _with_cells(_opening(about, place, where).open(), about)
        if "truth" in about:
            truth[name] = _truth(place(_text(about["truth"], f"{where}: truth")), found[name])
    return found, truth


def _parts(asked: Any) -> Iterable[tuple[str, dict[str, Any]]]:
    """Every recording that is asked for, and what it is called in a sentence."""
    if not isinstance(asked, list) or not asked:
        raise InputError("recordings is missing: a part [[recordings]] with a path is needed.")
    for number, given in enumerate(asked, 1):
        where = f"recordings {number}"
        about = _table(given, where)
        _check_keys(about, (*_OPENING, *_CHOICES), f"{where}: ")
        if "path" not in about:
            raise InputError(f"{where} has no path.")
        yield where, about


def _opening(about: Mapping[str, Any], place: Callable[[str], Path], where: str) -> Opening:
    kinds = _table(about.get("kinds", {}), f"{where}: kinds")
    for variable, kind in kinds.items():
        if kind not in KINDS:
            known = ", ".join(KINDS)
            raise InputError(f"{where}: kinds.{variable} is {kind!r}: one of {known} is needed.")
    footprints = about.get("footprints")
    chosen = {name: about[name] for name in _CHOICES if name in about}
    return Opening(
        place(_text(about["path"], f"{where}: path")),
        footprints=None if footprints is None else place(_text(footprints, f"{where}: footprints")),
        kinds=kinds,
        movie=None,  # no run looks at it
        settings=OpenSettings(**chosen),
        **{
            role: tuple(place(p) for p in _texts(about.get(role, []), f"{where}: {role}"))
            for role in ROLES
        },
    )


def _places(asked: Mapping[str, Any], folder: Path) -> Callable[[str], Path]:
    """Finds what a file names: from its folder or, if it is not there, where it once was."""
    once = _table(asked.get("elsewhere", {}), "elsewhere")

    def place(name: str) -> Path:
        seen = folder / name
        return Path(once[name]) if name in once and not seen.exists() else seen

    return place


def _with_cells(recording: Recording, about: Mapping[str, Any]) -> Recording:
    """The recording with those cells accepted that a file lists, if it lists any."""
    if "cells" not in about:
        return recording
    return replace(
        recording, accepted=np.isin(np.asarray(recording.cell_ids), _ids(about["cells"]))
    )


def _ids(text: Any) -> np.ndarray:
    """Ids as `_ranges` writes them."""
    found: list[int] = []
    for part in filter(None, re.split(r"[,\s]+", _text(text, "cells"))):
        ends = re.fullmatch(r"(\d+)(?:-(\d+))?", part)
        if ends is None or int(ends[2] or ends[1]) - int(ends[1]) > 10_000_000:
            raise InputError(f"cells has {part!r}: ids as in '0-15, 18' are needed.")
        found += range(int(ends[1]), int(ends[2] or ends[1]) + 1)
    return np.array(found, np.int64)


def _ranges(ids: np.ndarray) -> str:
    """Ids in few words.

    >>> _ranges(np.array([0, 1, 2, 5]))
    '0-2, 5'
    """
    ids = np.sort(ids)
    runs = np.split(ids, np.flatnonzero(np.diff(ids) > 1) + 1)
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs)


def _truth(path: Path, recording: Recording) -> dict[str, np.ndarray]:
    """Cells known to carry each factor, from a table."""
    try:
        table = read_csv(path)
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read as a table: {error}.") from error
    if "cell" not in table:
        raise InputError(f"{path} has no column `cell` with the ids of the cells.")
    ids = np.asarray(recording.cell_ids)
    missing = ~np.isin(ids, table["cell"])
    if missing.any():
        raise InputError(
            f"{path} lacks {int(missing.sum())} of the {len(ids)} cells (first: {ids[missing][0]})."
        )
    rows = table.set_index("cell").loc[ids]
    return {str(name): rows[name].to_numpy().astype(bool) for name in rows}


def _check_keys(given: Mapping[str, Any], known: Sequence[str], before: str) -> None:
    for name in given:
        if name not in known:
            keys = ", ".join(_key(each) for each in known)
            raise InputError(f"{before}{name} is not known; there are: {keys}.")


def _knob(key: str) -> str:
    """Field of `FitSettings` for a key: Python keeps the word lambda for itself."""
    return "lambda_" if key == "lambda" else key.replace("-", "_")


def _key(knob: str) -> str:
    return knob.rstrip("_")


def _table(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InputError(f"{where} is {value!r}: a table, [{where}], is needed.")
    return value


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str) or not value:
        raise InputError(f"{where} is {value!r}: text is needed.")
    return value


def _texts(value: Any, where: str) -> list[str]:
    return [_text(each, where) for each in (value if isinstance(value, list) else [value])]


def _numbers(value: Any, where: str) -> list[Any]:
    values = value if isinstance(value, list) else [value]
    for each in values:
        if isinstance(each, bool) or not isinstance(each, int | float):
            raise InputError(f"{where} has {each!r}: numbers are needed.")
    if not values:
        raise InputError(f"{where} is an empty list: give at least one value.")
    return values


@dataclass(frozen=True, eq=False)
class Analysis:
    """All that a run is made of.

    Parameters
    ----------
    opening : Opening
        How the recording was opened.
    factors : mapping of str to Factor
        As they were asked for.
    settings : FitSettings
    how : mapping of str to value
        Of the scores: method, frames (as typed), aggregate, significance, seeds; and `model`, how
        a model of `cebra` was opened in place of training, if one was.
    cells : (cells,) int64, optional
        Ids of the cells it was trained on, by the decisions of then.
    content : mapping of str to digest
        Of all that was read, as `content_of_training` gives it.
    versions : mapping of str to str
        Of the programs that made it.
    """

    opening: Opening
    factors: Mapping[str, Factor]
    settings: FitSettings
    how: Mapping[str, Any]
    cells: np.ndarray | None = None
    content: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of_run(cls, run: Run, opening: Opening) -> Analysis | None:
        """What a run of the window is made of; None if another training is part of it."""
        fit = run.fit
        if fit.together or fit.architecture or any(" carried to " in note for note in fit.notes):
            return None
        how: dict[str, Any] = {}
        if run.attributions:
            first = next(method for method in METHODS if method in run.attributions)
            how = {"method": first, "significance": run.significance is not None}
        cells = np.asarray(fit.inputs.cell_ids) if fit.settings.accepted_only else None
        return cls(opening, run.factors, fit.settings, how, cells, versions=fit.versions)

    def on(self, recording: Recording) -> Recording:
        """The recording with the cells of then, or a sentence if it was changed since."""
        if self.cells is not None:
            recording = replace(
                recording, accepted=np.isin(np.asarray(recording.cell_ids), self.cells)
            )
        variables = [v for factor in self.factors.values() for v in factor.variables]
        changes = content_changes(self.content, _content(recording, variables))
        if changes:
            raise InputError(
                f"{name_of(str(self.opening.path))} was changed since this analysis was written: "
                f"{' and '.join(changes)} differ. Bring back the files, or make a new analysis."
            )
        return recording

    def save(self, path: Path, recording: Recording, seen_from: Path | None = None) -> Path:
        """Write it; `read_analysis` reads it.

        Parameters
        ----------
        path : Path
        recording : Recording
            The one that was opened.
        seen_from : Path, optional
            Folder that the file is going to be in, if that is another one.
        """
        ours = version("napari-xcebra")
        variables = [v for factor in self.factors.values() for v in factor.variables]
        about, places = self._recording(Path(seen_from or path.parent).absolute())
        settings = {_key(name): value for name, value in self.settings.as_dict().items()}
        factors = {
            name: {k: v for k, v in asdict(factor).items() if v is not None}
            for name, factor in self.factors.items()
        }
        parts = [
            f"# napari-xcebra {ours} made the results beside this file. To make them again:",
            f"# napari-xcebra run {path.name} --out again",
            "",
            *_lines({"made": now(), **self.how}),
            "",
            "[[recordings]]",
            *_lines(about),
            *(line for name, table in (
                ("factors", factors), ("settings", settings),
                ("content", _content(recording, variables)),
                ("versions", {"napari-xcebra": ours, **self.versions}), ("elsewhere", places),
            ) for line in ("", f"[{name}]", *_lines(table))),
        ]  # fmt: skip
        with whole(path) as file:
            file.write_text("\n".join([*parts, ""]), encoding="utf-8")
        return path

    def _recording(self, folder: Path) -> tuple[dict[str, Any], dict[str, str]]:
        """The part on the recording, and where files are that it names from a folder."""
        kept, places = self.opening.as_dict(folder), dict[str, str]()

        def place(about: Mapping[str, str]) -> str:
            name = about["relative"] or about["absolute"]
            places[name] = about["absolute"]
            return name

        about: dict[str, Any] = {"path": place(kept["path"])}
        about |= {role: [place(each) for each in kept[role]] for role in ROLES if kept[role]}
        about |= {"footprints": place(kept["footprints"])} if kept["footprints"] else {}
        about |= {"kinds": kept["kinds"]} if kept["kinds"] else {}
        values, usual = asdict(self.opening.settings), asdict(OpenSettings())
        about |= {name: value for name, value in values.items() if value != usual[name]}
        about |= {name: str(each["absolute"]) for name, each in kept["files"].items()}
        if self.cells is not None:
            about["cells"] = _ranges(self.cells)
        return about, places


def read_analysis(path: Path) -> Analysis:
    """What `Analysis.save` wrote; nothing of it is opened yet."""
    with named_in(path):
        asked = _parsed(path)
        _check_keys(asked, (*_TOP, *_RUN, *_RECORD), "")
        parts = list(_parts(asked.get("recordings")))
        factors, several = _factors(asked.get("factors", {}))
        settings, grid = _settings(asked.get("settings", {}))
        if len(parts) > 1 or several or grid or "shifts" in asked:
            raise InputError("it asks for several runs: napari-xcebra sweep runs it.")
        where, about = parts[0]
        return Analysis(
            _opening(about, _places(asked, path.parent), where),
            factors,
            settings,
            {name: asked[name] for name in ("method", *_RUN) if name in asked},
            _ids(about["cells"]) if "cells" in about else None,
            _table(asked.get("content", {}), "content"),
            _table(asked.get("versions", {}), "versions"),
        )


def _content(recording: Recording, variables: Sequence[str]) -> dict[str, Any]:
    """Digests of what is read, in values that TOML has; cells are listed instead."""
    found = content_of_training(recording, variables)
    del found["accepted"]
    labels = {name: " ".join(map(str, each)) for name, each in found["variables"].items()}
    return {**found, "variables": labels}


def _lines(table: Mapping[str, Any]) -> list[str]:
    return [f"{_quoted(name)} = {_as_toml(value)}" for name, value in table.items()]


def _quoted(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _as_toml(key)


def _as_toml(value: Any) -> str:
    """Plain value in TOML, which writes text and numbers as JSON does.

    >>> _as_toml({"a b": [1, 0.5, True], "c": "\u03bb"})
    '{ "a b" = [1, 0.5, true], c = "λ" }'
    """
    if isinstance(value, Mapping):
        return f"{{ {', '.join(_lines(value))} }}" if value else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_as_toml, value))}]"
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def factors_typed(texts: list[str]) -> dict[str, Factor]:
    """Factors as typed: ``name=variable,variable`` and, if wanted, ``:latents``."""
    factors: dict[str, Factor] = {}
    for text in texts:
        name, _, rest = text.strip().partition("=")
        variables, _, latents = rest.partition(":")
        named = tuple(v.strip() for v in variables.split(",") if v.strip())
        if not name or not named or (latents and not latents.isdecimal()):
            raise InputError(f"--factor {text} is not of the form name=variable,variable or "
                             "name=variable,variable:latents.")  # fmt: skip
        if name in factors:
            raise InputError(f"--factor {name} is given twice: list all its variables in one.")
        factors[name] = Factor(named, int(latents) if latents else None)
    return factors
