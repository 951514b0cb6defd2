"""Tables on clocks of many kinds: behaviour is a function of the frame, so misplaced rows show."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from breaking.tally import Tally, Trial, World, judge_all
from napari_xcebra.recording import Recording

RATE, FRAMES = 10.0, 480
LATE = "2026-03-01 23:59:45"
Rng = np.random.Generator
Clock = Callable[[np.ndarray], tuple[str, Any]]
"""Gives the head of a column and its entries, from the seconds of the rows."""


def place_at(frame: np.ndarray) -> np.ndarray:
    """Where the animal is at a frame, from 0; never twice in the same place."""
    return 12.3 + 0.37 * np.asarray(frame, float)


def minutes(seconds: np.ndarray, form: str) -> list[str]:
    """As m:ss, mm:ss.s or h:mm:ss.sss."""
    made = []
    for each in np.round(seconds, 6):
        whole, rest = divmod(float(each), 60)
        if form == "m:ss":
            made.append(f"{int(whole)}:{int(rest):02d}")
        elif form == "mm:ss.s":
            made.append(f"{int(whole):02d}:{rest:06.3f}")
        else:
            made.append(f"{int(whole // 60)}:{int(whole % 60):02d}:{rest:06.3f}")
    return made


def dated(seconds: np.ndarray, form: str, start: str = "2026-03-02 14:59:30") -> list[str]:
    moments = pd.Timestamp(start) + pd.to_timedelta(seconds, unit="s")
    return [moment.strftime(form) for moment in moments]


CLOCKS: dict[str, Clock] = {
    "seconds": lambda t: ("time", t),
    "seconds, Time (s)": lambda t: ("Time (s)", t.round(4)),
    "milliseconds by name": lambda t: ("time_ms", (1000 * t).round(1)),
    "milliseconds without a unit": lambda t: ("time", (1000 * t).round()),
    "microseconds by name": lambda t: ("timestamp_us", (1e6 * t).round().astype("i8")),
    "nanoseconds without a unit": lambda t: ("timestamp", (1e9 * t).round().astype("i8")),
    "minutes by name": lambda t: ("time_min", t / 60),
    "minutes without a unit": lambda t: ("time", t / 60),
    "m:ss": lambda t: ("time", minutes(t, "m:ss")),
    "mm:ss.s": lambda t: ("time", minutes(t, "mm:ss.s")),
    "h:mm:ss.sss": lambda t: ("time", minutes(t, "h:mm:ss")),
    "mm:ss.s after an hour": lambda t: ("time", minutes(t + 3590, "mm:ss.s")),
    "clock of the day": lambda t: ("time", dated(t, "%H:%M:%S.%f")),
    "date and clock": lambda t: ("datetime", dated(t, "%Y-%m-%d %H:%M:%S.%f")),
    "date across midnight": lambda t: ("time", dated(t, "%Y-%m-%dT%H:%M:%S.%f", LATE)),
    "clock across midnight": lambda t: ("time", dated(t, "%H:%M:%S.%f", LATE)),
    "clock of twelve hours": lambda t: ("time", dated(t, "%I:%M:%S.%f %p", "2026-03-01 12:59:45")),
    "day before month": lambda t: ("time", dated(t, "%d/%m/%Y %H:%M:%S.%f")),
    "unix seconds": lambda t: ("timestamp", (1.7726e9 + t).round(3)),
    "unix milliseconds": lambda t: ("timestamp", (1.7726e12 + 1000 * t).round().astype("i8")),
    "days of a spreadsheet": lambda t: ("time", 46083.6 + t / 86400),
    "frames from 0": lambda t: ("frame", np.floor(RATE * t + 1e-6).astype(int)),
    "frames from 1": lambda t: ("frame", np.floor(RATE * t + 1e-6).astype(int) + 1),
    "Frame from 1": lambda t: ("Frame", np.floor(RATE * t + 1e-6).astype(int) + 1),
    "frame_number": lambda t: ("frame_number", np.floor(RATE * t + 1e-6).astype(int)),
    "FrameIdx": lambda t: ("FrameIdx", np.floor(RATE * t + 1e-6).astype(int)),
    "imaging_frame from 1": lambda t: ("imaging_frame", np.floor(RATE * t + 1e-6).astype(int) + 1),
    "frames as floats": lambda t: ("frame", np.floor(RATE * t + 1e-6)),
    "frames called time": lambda t: ("time", np.floor(RATE * t + 1e-6).astype(int)),
    "samples of 1 kHz called t": lambda t: ("t", (1000 * t).round().astype(int)),
    "samples of 25 kHz called sample": lambda t: ("sample", (25000 * t).round().astype(int)),
    "counter that wraps": lambda t: ("time_ms", (1000 * t).round().astype(int) % 2**15),
    "seconds that restart": lambda t: ("time", np.where(t < 20, t, t - 20)),
    "deciseconds called time": lambda t: ("time", 10 * t),
    "a tenth of the length": lambda t: ("time", t / 10),
}  # fmt: skip


@dataclass(frozen=True)
class Rows:
    """Which rows of a table there are, by seconds and order."""

    per_second: float = RATE
    pick: Callable[[np.ndarray, Rng], np.ndarray] = field(default=lambda t, rng: t)


ROWS: dict[str, Rows] = {
    "one a frame": Rows(),
    "25 a second": Rows(25.0),
    "4 a second": Rows(4.0),
    "reversed": Rows(pick=lambda t, rng: t[::-1]),
    "shuffled": Rows(pick=lambda t, rng: rng.permutation(t)),
    "from frame 50 on": Rows(pick=lambda t, rng: t[50:]),
    "up to frame 350": Rows(pick=lambda t, rng: t[:350]),
    "with a gap": Rows(pick=lambda t, rng: np.r_[t[:120], t[260:]]),
    "rows missing": Rows(pick=lambda t, rng: t[np.sort(rng.choice(len(t), 430, replace=False))]),
    "rows repeated": Rows(pick=lambda t, rng: np.sort(np.r_[t, rng.choice(t, 40, replace=False)])),
    "three times as long": Rows(pick=lambda t, rng: np.arange(3 * FRAMES) / RATE),
}  # fmt: skip


@dataclass(frozen=True)
class Form:
    """How a table is written."""

    name: str
    suffix: str = ".csv"
    separator: str = ","
    comma: bool = False

    def write(self, table: pd.DataFrame, folder: Path) -> Path:
        path = folder / f"behaviour{self.suffix}"
        if self.suffix == ".parquet":
            table.to_parquet(path)
        elif self.suffix == ".npz":
            np.savez(path, **{name: table[name].to_numpy() for name in table})
        else:
            table.to_csv(path, index=False, sep=self.separator, decimal="," if self.comma else ".")
        return path


FORMS = (Form("csv"), Form("tab", ".tsv", "\t"), Form("semicolon", separator=";"),
         Form("decimal comma", separator=";", comma=True),
         Form("tab, decimal comma", ".txt", "\t", True),
         Form("parquet", ".parquet"), Form("npz", ".npz"))  # fmt: skip


def judge_of(seconds: np.ndarray) -> Callable[[Recording], str]:
    """Says by how many frames behaviour is misplaced, or that it is gone without a word."""
    most = max(1.6, 1.1 * RATE * np.median(np.abs(np.diff(np.sort(seconds)))))

    def judge(recording: Recording) -> str:
        found = recording.behavior.get("x_cm")
        if found is None:
            return "x_cm is gone"
        values = found.values[:, 0]
        truth = np.arange(len(values))
        off = np.abs((values - place_at(np.array(0))) / 0.37 - truth)
        known = np.isfinite(off)
        if known.any() and np.nanmax(off) > most:
            wrong = int((off[known] > most).sum())
            return f"{wrong} of {known.sum()} frames off by up to {np.nanmax(off):.1f} frames"
        inside = np.zeros(len(values), bool)
        rows = np.round(RATE * seconds).astype(int)
        inside[rows[rows < len(values)]] = True
        lost = int((inside & ~known).sum())
        if lost > 0.1 * inside.sum() and not any("x_cm" in n or "%" in n for n in recording.notes):
            return f"{lost} of {inside.sum()} frames unknown without a word"
        return ""

    return judge


def trials(home: Path, rng: random.Random) -> Iterator[Trial]:
    """Each clock with each choice of rows, written in one of the forms; then what is no clock."""
    numbers = np.random.default_rng(rng.randrange(2**32))
    cases = [*product(CLOCKS, ROWS)]
    rng.shuffle(cases)
    for clock, chosen in cases:
        rows = ROWS[chosen]
        seconds = np.arange(int(FRAMES * rows.per_second / RATE)) / rows.per_second
        seconds = rows.pick(seconds, numbers)
        head, entries = CLOCKS[clock](seconds)
        form = rng.choice(FORMS)
        table = pd.DataFrame({head: entries, "x_cm": place_at(RATE * seconds)})
        if rng.random() < 0.3:  # clocks need not come first
            table = table[[*table.columns[::-1]]]
        folder = World.at(home).shared
        np.save(folder / "traces_time_x_cells.npy", numbers.random((FRAMES, 12), np.float32))
        options = {"rate": RATE, "behavior": form.write(table, folder)}
        yield Trial(f"{clock}, {chosen}, {form.name}", folder / "traces_time_x_cells.npy",
                    judge_of(seconds), options)  # fmt: skip
    yield from other_tables(home, numbers)


def other_tables(home: Path, rng: Rng) -> Iterator[Trial]:
    """Words that look like nothing, ids that look alike, three heads."""

    def of(
        case: str, content: str, judge: Callable[[Recording], str], name: str = "b.csv"
    ) -> Trial:
        folder = World.at(home).shared
        np.save(folder / "traces_time_x_cells.npy", rng.random((FRAMES, 12), np.float32))
        (folder / name).write_text(content)
        path = folder / "traces_time_x_cells.npy"
        return Trial(case, path, judge, {"rate": RATE, "behavior": folder / name})

    for missing in ("None", "NA", "null", "nan", "N/A", "none", "NULL", "NaN", "n/a", "<NA>", "-"):
        words = [("odour", missing, "air")[row // 20 % 3] for row in range(FRAMES)]
        text = "stimulus\n" + "\n".join(words) + "\n"

        def judged(recording: Recording, words: list[str] = words) -> str:
            found = recording.behavior.get("stimulus")
            if found is None:
                return "stimulus is gone"
            codes = found.values[:, 0]
            seen = [found.words[int(c)] if np.isfinite(c) else "?" for c in codes]
            return "" if seen == words else f"classes {sorted(set(seen))} of {sorted(set(words))}"

        yield of(f"a class called {missing}", text, judged)
    for first in (2**53, 2**60, 10**17):
        ids = [first + row // 60 for row in range(FRAMES)]

        def different(recording: Recording, ids: list[int] = ids) -> str:
            found = recording.behavior.get("trial_id")
            groups = 0 if found is None else len(np.unique(found.values))
            wanted = len(set(ids))
            if found is None and recording.trials is not None:
                return ""
            return "" if groups == wanted else f"{groups} ids of {wanted}"

        yield of(f"ids from {first} on", "trial_id\n" + "\n".join(map(str, ids)) + "\n", different)
    for heads, parts in ((3, ("scorer,net,net", "bodyparts,nose,nose", "coords,x,y")),
                         (2, ("animal,m1,m1", "quantity,x_cm,y_cm"))):  # fmt: skip
        place = place_at(np.arange(FRAMES))
        lines = [*parts, *(f"{row},{place[row]:.4f},{2 * place[row]:.4f}" for row in range(FRAMES))]

        def numbers_kept(recording: Recording) -> str:
            columns = [c for v in recording.behavior.values() for c in v.values.T]
            truth = place_at(np.arange(FRAMES))
            right = [c for c in columns if np.allclose(c, truth, atol=0.01)]
            words = [v.name for v in recording.behavior.values() if v.words]
            return "" if right and not words else f"{[*recording.behavior]} with words {words}"

        yield of(f"{heads} header rows", "\n".join(lines) + "\n", numbers_kept)
    both = place_at(np.arange(FRAMES))
    lines = ["x_cm;speed", *(f"{value:.3f};1,5".replace(".", ",") for value in both)]
    seconds = np.arange(FRAMES) / RATE
    yield of("decimal commas without a clock", "\n".join(lines) + "\n", judge_of(seconds))
    lines = [
        "time,x_cm",
        *(f'"{t:.2f}","{x:.3f}"'.replace(".", ",") for t, x in zip(seconds, both, strict=True)),
    ]
    yield of("quoted decimal commas", "\n".join(lines) + "\n", judge_of(seconds))
    lines = ["time;x_cm", *(f"{1000 * t:,.1f};{x:.3f}" for t, x in zip(seconds, both, strict=True))]
    yield of("thousands by comma in milliseconds", "\n".join(lines) + "\n", judge_of(seconds))


def family(home: Path, rng: random.Random, tally: Tally, everything: bool = True) -> None:
    """All clocks with all rows; until the time is over in small."""
    judge_all(trials(home, rng), tally, until_told=not everything)
