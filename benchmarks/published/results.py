"""Results that are kept as they come: a line of JSON each, in a file for each table.

A run that is killed loses the fit it was at, and goes on with the next one when it is started
again. Lines can be deleted by hand: what they held is measured again.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from napari_xcebra.learn import FitSettings

FOLDER = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Measurement:
    """One fit with all that is measured of it.

    Parameters
    ----------
    table : str
        Name of the file that its result is kept in.
    key : dict
        What it is a measurement of; plain values.
    measure : callable
        Takes the key by name, gives plain values.
    round : int
        Those of round 0, of all tables, come first, then those of round 1 …
    """

    table: str
    key: dict[str, Any]
    measure: Callable[..., dict[str, Any]]
    round: int = 0

    @property
    def name(self) -> str:
        return json.dumps(self.key, sort_keys=True)


def in_turn(measurements: Iterable[Measurement]) -> list[Measurement]:
    """Round by round, and within a round the tables side by side, from first to last entry."""
    groups: dict[tuple[int, str], list[Measurement]] = {}
    for each in measurements:
        groups.setdefault((each.round, each.table), []).append(each)
    place = [
        ((number, n / len(group)), each)
        for (number, _), group in groups.items()
        for n, each in enumerate(group)
    ]
    return [each for _, each in sorted(place, key=lambda pair: pair[0])]


class Results:
    """The files of a folder."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self.folder = folder

    def of(self, table: str) -> list[dict[str, Any]]:
        """Keys and results of a table, joined; the last one where something is there twice."""
        return [{**line["key"], **line} for line in self._lines(table).values()]

    def has(self, measurement: Measurement) -> bool:
        return measurement.name in self._lines(measurement.table)

    def keep(self, measurement: Measurement, result: dict[str, Any], seconds: float) -> None:
        """Append a line, and have it on the disk before anything else is begun."""
        line = {
            "key": measurement.key,
            "result": result,
            "seconds": round(seconds, 1),
            "settings": settings_digest(measurement.key.get("preset")),
            "commit": _commit(),
            "date": datetime.now(tz=UTC).date().isoformat(),
        }
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self._path(measurement.table)
        torn = path.exists() and path.stat().st_size and path.read_bytes()[-1:] != b"\n"
        with path.open("a") as file:
            file.write("\n" * bool(torn) + json.dumps(line) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def _path(self, table: str) -> Path:
        return self.folder / f"{table}.jsonl"

    def _lines(self, table: str) -> dict[str, dict[str, Any]]:
        path, found = self._path(table), {}
        for text in path.read_text().splitlines() if path.exists() else ():
            try:
                line = json.loads(text)
            except json.JSONDecodeError:
                continue  # cut short by a kill
            found[json.dumps(line["key"], sort_keys=True)] = line
        return found


def preset_settings(preset: str, regularised: bool = True, **changes: Any) -> FitSettings:
    """Settings of a column: as published, with λ 0.1, or the defaults, which find λ."""
    make = {"paper": FitSettings.paper, "default": FitSettings}[preset]
    lambda_: Any = (0.1 if preset == "paper" else "auto") if regularised else 0.0
    return make(**{"lambda_": lambda_, "device": "cpu", "threads": 1, **changes})


def settings_digest(preset: str | None) -> str:
    """Tells settings with which lines were measured from those of today."""
    values = preset_settings(preset).as_dict() if preset else {}
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:8]


def _commit() -> str:
    called = ["git", "describe", "--always", "--dirty"]
    folder = Path(__file__).parent
    done = subprocess.run(called, capture_output=True, text=True, cwd=folder, check=False)
    return done.stdout.strip() or "unknown"
