"""Holds the hidden factors of a recording: their courses, their cells, and what they go with.

Torch is not imported here, so that a window can show them without it.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from napari_xcebra.attribution.result import Attribution
from napari_xcebra.attribution.shift_test.result import LEVEL, Significance
from napari_xcebra.errors import InputError
from napari_xcebra.files import check_description, parsed_json, read_bytes, whole
from napari_xcebra.learn.data.factors import Part
from napari_xcebra.recording import Recording, Variable
from napari_xcebra.recording.fingerprint import Fingerprint, check_same
from napari_xcebra.spreadsheets import write_csv
from napari_xcebra.text import counted, duration

if TYPE_CHECKING:
    import pandas as pd

METHOD = "unobserved-state"
"""Name of the maps of hidden factors."""
KIND, FORMAT = "hidden factors", 1
FOLLOWS = 0.1
"""Share of a course that a recorded variable explains, from which on it is said to follow it."""
_ARRAYS = ("courses", "scores", "p_values", "q", "signs", "cell_ids")


@dataclass(frozen=True)
class HiddenFactor:
    """What is known of one hidden factor.

    Parameters
    ----------
    name : str
    dimensions : int
        1, or 2 for one like a place.
    seconds : float
        Time scale: after which its autocorrelation is below 1/e.
    explained : float
        Mean share of the variance of its cells that it explains, beyond the other factors.
    tuned : bool
        Whether cells are tuned to it; else they rise or fall with it.
    goes_with : mapping of str to float
        Share of its course that each recorded variable explains in held-out time.
    follows : tuple of str
        Variables that explain it by more than chance, the first by most.
    suspicion : str
        What it may be if it is no state of the brain; empty if nothing hints at that.
    """

    name: str
    dimensions: int
    seconds: float
    explained: float
    tuned: bool
    goes_with: Mapping[str, float] = field(default_factory=dict)
    follows: tuple[str, ...] = ()
    suspicion: str = ""

    @property
    def may_follow(self) -> str:
        """Variable that explains much of it, if no more than chance may; else empty."""
        name = max(self.goes_with, key=lambda name: self.goes_with[name], default="")
        return name if not self.follows and name and self.goes_with[name] >= FOLLOWS else ""


@dataclass(frozen=True, eq=False)
class HiddenFactors:
    """What is in the cells that nobody recorded, as `discover` finds it.

    Parameters
    ----------
    factors : tuple of HiddenFactor
    courses : (frames, dimensions of all factors) float32
        Standardised; NaN at frames that are not used.
    scores : (factors, cells) float32
        Share of a cell's variance that a factor explains beyond the others, in held-out time and
        from a course that the cell took no part in; NaN for cells that were not used.
    p_values, q : (factors, cells) float32
        Of each cell having that factor, against the course shifted in time.
    signs : (factors, cells) float32
        1 where the cell rises with the (first dimension of the) factor, −1 where it falls.
    cell_ids : (cells,) int64
        Every ROI of the recording.
    baselines : mapping of str to (float, float)
        Mean share of the cells that as many components of each linear method explain, in the same
        way, and the mean |correlation| of these courses with its components. "discover" has the
        share of this method.
    given : tuple of str
        Variables that were removed from the traces first.
    notes : tuple of str
    seed : int
    source : str
    fingerprint : Fingerprint or None
    """

    factors: tuple[HiddenFactor, ...]
    courses: np.ndarray
    scores: np.ndarray
    p_values: np.ndarray
    q: np.ndarray
    signs: np.ndarray
    cell_ids: np.ndarray
    baselines: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    given: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    seed: int = 0
    source: str = ""
    fingerprint: Fingerprint | None = None

    def __len__(self) -> int:
        return len(self.factors)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the factors."""
        return tuple(each.name for each in self.factors)

    def course(self, name: str) -> np.ndarray:
        """Course of one factor: (frames, dimensions) float32."""
        number = self._number(name)
        first = sum(each.dimensions for each in self.factors[:number])
        return self.courses[:, first : first + self.factors[number].dimensions]

    def cells(self, name: str, limit: float = LEVEL) -> np.ndarray:
        """Ids of the cells that have a factor, with a q up to the limit: (n,) int64."""
        return self.cell_ids[self.q[self._number(name)] <= limit]

    def sentence(self, name: str) -> str:
        """What a factor is, in a line.

        >>> few = np.zeros((1, 2), np.float32)
        >>> one = HiddenFactor("hidden 1", 1, 40.0, 0.2, False)
        >>> HiddenFactors((one,), few.T, few, few, few, few, np.arange(2)).sentence("hidden 1")
        'hidden 1: slow (40 s), 2 cells, follows nothing recorded'
        >>> one = replace(one, goes_with={"velocity": 0.53})
        >>> HiddenFactors((one,), few.T, few, few, few, few, np.arange(2)).sentence("hidden 1")
        'hidden 1: slow (40 s), 2 cells, may follow velocity (R² 0.53, within chance)'
        """
        factor = self.factors[self._number(name)]
        pace = "slow" if factor.seconds >= SLOW else "fast" if factor.seconds < FAST else "moderate"
        told = [f"{pace} ({duration(factor.seconds)})", counted(len(self.cells(name)), "cell")]
        if factor.dimensions == 2:
            told.append("two dimensions, like a place or a direction")
        if factor.suspicion:
            told.append(factor.suspicion)
        if factor.follows:
            leading = [f"{each} (R² {factor.goes_with[each]:.2f})" for each in factor.follows[:2]]
            told.append(f"follows {' and '.join(leading)}")
        elif factor.may_follow:
            share = factor.goes_with[factor.may_follow]
            told.append(f"may follow {factor.may_follow} (R² {share:.2f}, within chance)")
        else:
            told.append("follows nothing recorded")
        return f"{factor.name}: {', '.join(told)}"

    def summary(self) -> str:
        """What was found, a line each."""
        beyond = f" beyond {', '.join(self.given)}" if self.given else ""
        if not self.factors:
            head = f"Nothing is shared by several cells{beyond}: no hidden factor was found."
        else:
            head = f"{counted(len(self), 'hidden factor')}{beyond}."
        lines = [head, *map(self.sentence, self.names), self.comparison(), *self.notes]
        return "\n".join(filter(None, lines))

    def comparison(self) -> str:
        """A sentence on the linear method that does as well, if one does."""
        own = self.baselines.get("discover", (0.0, 1.0))[0]
        others = {name: each for name, each in self.baselines.items() if name != "discover"}
        if not others or not self.factors:
            return ""
        name, (share, match) = max(others.items(), key=lambda each: each[1][1])
        if match >= SAME and share >= ENOUGH * own:
            return (
                f"{name} does as well here: its components are these courses (correlation "
                f"{match:.2f}) and explain as much of the cells ({share:.3f}, here {own:.3f})."
            )
        return (
            f"The closest linear method, {name}, explains {share:.3f} of a cell from the others, "
            f"these factors {own:.3f}; its components match the courses by {match:.2f}."
        )

    def table(self) -> pd.DataFrame:
        """One row a factor, then one for each linear method beside them.

        Columns: factor, dimensions, seconds, cells, explained, tuned, follows, suspicion,
        and R² with each recorded variable.
        """
        import pandas as pd

        rows: list[dict[str, Any]] = []
        for each in self.factors:
            row = asdict(each)
            goes_with = row.pop("goes_with")
            row["follows"] = ", ".join(each.follows)
            row["cells"] = len(self.cells(each.name))
            rows.append({"factor": row.pop("name"), **row})
            rows[-1] |= {f"R² {name}": value for name, value in goes_with.items()}
        rows += [
            {"factor": f"({name})", "explained_all": share, "match": match}
            for name, (share, match) in self.baselines.items()
        ]
        return pd.DataFrame(rows)

    def cell_table(self) -> pd.DataFrame:
        """One row a ROI and factor: factor, cell, score, p, q, sign."""
        import pandas as pd

        columns = {"score": self.scores, "p": self.p_values, "q": self.q, "sign": self.signs}
        tables = [
            pd.DataFrame(
                {"factor": name, "cell": self.cell_ids}
                | {column: values[number] for column, values in columns.items()}
            )
            for number, name in enumerate(self.names)
        ]
        empty = pd.DataFrame(columns=["factor", "cell", *columns])
        return pd.concat(tables, ignore_index=True) if tables else empty

    # ------------------------------------------------------------ using it

    def renamed(self, name: str, new: str) -> HiddenFactors:
        """Copy in which a factor has another name."""
        number, new = self._number(name), new.strip()
        if not new or new in set(self.names) - {name}:
            raise InputError(f"{new!r} is no name for {name!r}: a new one is needed.")
        factors = list(self.factors)
        factors[number] = replace(factors[number], name=new)
        return replace(self, factors=tuple(factors))

    def variables(self) -> tuple[Variable, ...]:
        """Each factor as a variable, for `Recording.with_behavior`."""
        return tuple(Variable(name, self.course(name)) for name in self.names)

    def attribution(self, recording: Recording | None = None) -> Attribution:
        """The scores as a map, to be painted and exported like others."""
        if not self.factors:
            raise InputError("No hidden factor was found: there is no map.")
        parts, start = [], 0
        for each in self.factors:
            stop = start + each.dimensions
            parts.append(Part(each.name, (), start, stop, "euclidean", 1.0))
            start = stop
        shortest = dict.fromkeys(self.names, 0.0)
        tested = Significance(self.names, self.p_values, self.q, len(self.courses), shortest)
        return Attribution(
            METHOD,
            "mean",
            tuple(parts),
            self.cell_ids,
            None,
            int(np.isfinite(self.courses[:, 0]).sum()),
            dict.fromkeys(self.names, "clear"),
            {name: f"{self.sentence(name)}." for name in self.names},
            factor_scores=self.scores,
            details={"sign": self.signs},
            significance=tested,
            seed=self.seed,
            notes=self.notes,
            source=self.source,
            fingerprint=self.fingerprint,
            recording=recording,
        )

    def _number(self, name: str) -> int:
        if name not in self.names:
            there = ", ".join(self.names) or "none"
            raise InputError(f"There is no hidden factor {name!r}; there are: {there}.")
        return self.names.index(name)

    # ------------------------------------------------------------ files

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write everything to one .npz file; `load` reads it."""
        with whole(path) as file:
            file.write_bytes(self._packed())
        return Path(path)

    def write(self, folder: str | os.PathLike[str], times: np.ndarray | None) -> list[Path]:
        """Write the file that `load` reads, and tables of factors, cells and courses.

        The table of courses can be opened as behaviour beside the recording.

        Parameters
        ----------
        times : (frames,) float64
            Seconds, as `Recording.times`.
        """
        import pandas as pd

        columns = {"time_s": np.asarray(times, np.float64)}
        for variable in self.variables():
            columns |= dict(zip(variable.column_names, variable.values.T, strict=True))
        tables = {
            "hidden.csv": self.table(),
            "hidden-cells.csv": self.cell_table(),
            "hidden-courses.csv": pd.DataFrame(columns),
        }
        written = [self.save(Path(folder) / "hidden.npz")]
        for name, table in tables.items():
            with whole(Path(folder) / name) as file:
                write_csv(table, file)
            written.append(Path(folder) / name)
        return written

    def _packed(self) -> bytes:
        about = {
            "kind": f"napari-xcebra {KIND}",
            "format": FORMAT,
            "factors": [asdict(each) for each in self.factors],
            "baselines": {name: list(each) for name, each in self.baselines.items()},
            "given": list(self.given),
            "notes": list(self.notes),
            "seed": self.seed,
            "source": self.source,
            "fingerprint": self.fingerprint and self.fingerprint.as_dict(),
        }
        arrays: dict[str, Any] = {name: getattr(self, name) for name in _ARRAYS}
        content = io.BytesIO()
        np.savez(content, about=np.array(json.dumps(about)), **arrays)
        return content.getvalue()

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], recording: Recording | None = None
    ) -> HiddenFactors:
        """Read what `save` wrote; refused if it is of another recording. No code is run."""
        try:
            content = read_bytes(path)
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise InputError(f"{path} cannot be read: {why}.") from error
        try:
            loaded = cls._unpacked(content, path)
        except InputError:
            raise
        # a damaged file fails in zipfile, zlib or numpy, each in its own way
        except Exception as error:
            raise InputError(
                f"{path} does not hold hidden factors ({type(error).__name__}: {error})."
            ) from error
        if recording is not None:
            check_same(loaded.fingerprint, recording, f"the hidden factors in {Path(path).name}")
        return loaded

    @classmethod
    def _unpacked(cls, content: bytes, path: str | os.PathLike[str]) -> HiddenFactors:
        with zipfile.ZipFile(io.BytesIO(content)) as file:
            if (damaged := file.testzip()) is not None:
                raise zipfile.BadZipFile(f"{damaged} is damaged")
        with np.load(io.BytesIO(content), allow_pickle=False) as stored:
            about = parsed_json(str(stored["about"]), path)
            check_description(about, path, KIND, FORMAT)
            arrays = {name: stored[name] for name in _ARRAYS}
        factors = tuple(
            HiddenFactor(**{**each, "follows": tuple(each["follows"])}) for each in about["factors"]
        )
        shape, frames = (len(factors), len(arrays["cell_ids"])), len(arrays["courses"])
        if any(arrays[name].shape != shape for name in ("scores", "p_values", "q", "signs")) or (
            arrays["courses"].shape != (frames, sum(each.dimensions for each in factors))
        ):
            raise ValueError("its arrays do not fit each other")
        return cls(
            factors,
            **arrays,
            baselines={name: tuple(each) for name, each in about["baselines"].items()},
            given=tuple(about["given"]),
            notes=tuple(about["notes"]),
            seed=about["seed"],
            source=about["source"],
            fingerprint=Fingerprint.from_dict(about["fingerprint"]),
        )


SLOW, FAST = 5.0, 0.5
"""Seconds from which on a factor is called slow, and below which it is called fast."""
SAME, ENOUGH = 0.95, 0.97
"""Correlation of courses, and share of what is explained, at which a linear method does as well."""
