"""Keeps a sweep on disk, and tabulates it: one row per member.

sweep.json              what was asked for, and its members
summary.csv             one row per member: what was varied, and the result
members/<id>/           a finished member: a run, as `Run.save` writes it, with
member.json         status, settings, goodness, verdicts, seconds; written last
attribution.csv     as `napari-xcebra run` writes it: both maps, p and q of every cell
members/<id>/failed.json    a failed member: why, in a sentence, and the details
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from napari_xcebra.attribution.shift_test.result import LEVEL
from napari_xcebra.batch.plan import Member, Shard, Sweep, plain
from napari_xcebra.checksums import differences, entry_of, listed_by, listed_in
from napari_xcebra.errors import InputError
from napari_xcebra.files import read_description, whole, write_description
from napari_xcebra.locks import locked
from napari_xcebra.runs import Run, missing_in, now
from napari_xcebra.spreadsheets import write_csv

if TYPE_CHECKING:
    import pandas as pd

    from napari_xcebra.attribution import Attribution
    from napari_xcebra.batch.running import MemberResult
    from napari_xcebra.recording import Recording


FORMAT = 1
MEMBER, FAILED = "member.json", "failed.json"
AGAIN = "run again, because its files were not whole"
_NEEDED = ("goodness", "strength", "auroc", "seconds", "steps")
STARTING = 60.0
"""Seconds that one of many shards waits for the others to write down the same plan."""
_IN_USE = "{holder} is running the sweep in {folder}: wait for it, or choose another folder."
Status = Literal["finished", "failed", "waiting"]


class SweepFolder:
    """Folder with the results of a sweep.

    Parameters
    ----------
    path : path
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def locked(self) -> AbstractContextManager[None]:
        """Keep other processes from using the folder meanwhile."""
        return locked(self.path, patience=0, told=_IN_USE)

    @contextlib.contextmanager
    def shared(self, sweep: Sweep, shard: Shard, command: str = "") -> Iterator[None]:
        """Run one shard while other programs run theirs; the first of them writes the plan."""
        with locked(self.path, STARTING, _IN_USE):
            try:
                planned = [member.id for member in self.members]
            except InputError:  # not yet
                planned = []
            if planned != [member.id for member in sweep.members]:
                self.plan(sweep, command)
        place = self.path / f".shard-{shard.number}-of-{shard.count}"
        told = f"{{holder}} is running shard {shard.number} of {shard.count} in {self.path}."
        with locked(place, patience=0, told=told):
            yield
        with contextlib.suppress(OSError):
            place.rmdir()

    def plan(self, sweep: Sweep, command: str = "") -> None:
        """Write what is asked for; earlier results stay.

        Parameters
        ----------
        command : str
            What to type to run it again, if it was typed.
        """
        about = {"kind": "napari-xcebra sweep", "format": FORMAT, "created": now()}
        about |= {"command": command, **sweep.as_dict()}
        write_description(self.path / "sweep.json", about, plain)

    @property
    def about(self) -> dict[str, Any]:
        """What `sweep.json` says."""
        return read_description(self.path / "sweep.json", "sweep", FORMAT)

    @property
    def members(self) -> tuple[Member, ...]:
        """Runs that were asked for, done or not."""
        about = self.about
        try:
            return tuple(Member.from_dict(each) for each in about["members"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(f"{self.path / 'sweep.json'} is damaged ({error}).") from error

    def home(self, member: str) -> Path:
        """Folder of a member, by its id."""
        return self.path / "members" / Path(member).name

    def status(self, member: str) -> Status:
        """Status of a member, by its id; one whose files are not all there is not finished."""
        return self._state(member)[0]

    def read(self, member: str) -> dict[str, Any]:
        """Description of a finished or failed member, by its id; else at most a `note`.

        A note says that it is, or was, run again because its files were not whole.
        """
        return self._state(member)[1]

    def _state(self, member: str) -> tuple[Status, dict[str, Any]]:
        home, about = self.home(member), {}
        if (home / MEMBER).exists():
            try:
                known = member_in(home)
                return "finished", {**known, "status": "finished"}
            except InputError as error:
                about = {"note": f"{AGAIN}: {error}"}
        if (home / FAILED).exists():
            with contextlib.suppress(InputError):
                known = read_description(home / FAILED, "failed member", FORMAT)
                return "failed", {**known, **about, "status": "failed"}
        return "waiting", about

    def keep(
        self,
        member: Member,
        result: MemberResult,
        truth: Mapping[str, np.ndarray] | None = None,
        note: str = "",
    ) -> None:
        """Write the result of a member; ``member.json`` comes last, and marks it as whole.

        Parameters
        ----------
        member : Member
        result : MemberResult
        truth : mapping of str to (cells,) bool, optional
            By factor: cells known to carry it.
        note : str
            Why it was run again, if it was.
        """
        folder = self.home(member.id)
        run = Run(member.title, now(), member.factors, result.fit)
        for attribution in (result.attribution, *result.others):
            run = run.with_attribution(attribution)
        run.save(folder)
        result.attribution.to_csv(folder / "attribution.csv", beside=result.others)
        goodness = result.fit.goodness
        names = ["run.json", "attribution.csv"]
        files = {name: entry_of(folder / name) for name in names}
        write_description(
            folder / MEMBER,
            {
                "kind": "napari-xcebra member",
                "format": FORMAT,
                "status": "finished",
                "finished": now(),
                "seconds": result.seconds,
                "host": result.host,
                "steps": result.fit.steps,
                "lambda": _known(result.fit.lambda_),
                "goodness": {name: each.as_dict() for name, each in goodness.items()},
                "strength": {name: each.strength for name, each in goodness.items()},
                "verdicts": {name: each.verdict for name, each in goodness.items()},
                "auroc": _aurocs(result, truth or {}),
                "found": _found(result.attribution),
                "note": note,
                **member.as_dict(),
                "files": {**listed_by(folder / "run.json"), **files},
            },
            plain,
        )
        (folder / FAILED).unlink(missing_ok=True)

    def keep_failure(self, member: Member, sentence: str, details: str = "") -> None:
        """Write why a member failed; it is run again at the next start."""
        about = {
            "kind": "napari-xcebra failed member",
            "format": FORMAT,
            "status": "failed",
            "failed": now(),
            "sentence": sentence,
            "details": details,
        }
        write_description(self.home(member.id) / FAILED, about | member.as_dict(), plain)

    def run(self, member: str, recording: Recording | None = None) -> Run:
        """A finished member as a run, by its id."""
        if self.status(member) != "finished":
            raise InputError(f"Member {member} of {self.path} is not finished.")
        return Run.load(self.home(member), recording)

    def summary(self, members: Sequence[Member] | None = None) -> pd.DataFrame:
        """One row per member, all of them if none are given: what was varied, and the result."""
        return _summary_of(self, self.members if members is None else members)

    def write_summary(self) -> Path:
        """Write the summary to ``summary.csv``."""
        table = self.summary()
        with whole(self.path / "summary.csv") as file:
            write_csv(table, file)
        return self.path / "summary.csv"


def member_in(home: Path) -> dict[str, Any]:
    """Description of a finished member, or a sentence if it or a file of it is not whole.

    Contents of larger files are not read; `napari-xcebra verify` does.
    """
    about = read_description(home / MEMBER, "member", FORMAT)
    files = listed_in(about, home / MEMBER)
    wrong = missing_in(home) if files is None else differences(home, files, contents=False)
    if files is not None:
        wrong += differences(home, {"run.json": files["run.json"]}) if "run.json" in files else []
    if wrong:
        raise InputError(f"{home}: {wrong[0]}.")
    if missing := [name for name in _NEEDED if name not in about]:
        raise InputError(f"{home / MEMBER} is damaged: it lacks {', '.join(missing)}.")
    return about


def _aurocs(result: MemberResult, truth: Mapping[str, np.ndarray]) -> dict[str, float]:
    from napari_xcebra.attribution.ranks import auroc

    found = {}
    for factor, carries in truth.items():
        if factor in result.attribution.factors and 0 < np.sum(carries) < len(carries):
            found[factor] = auroc(result.attribution.score(factor), carries)
    return found


def _found(attribution: Attribution) -> dict[str, list[int]]:
    """For each factor that was tested: cells at q ≤ 0.1, and cells tested."""
    if (tested := attribution.significance) is None:
        return {}
    q = {factor: tested.q(factor) for factor in attribution.factors}
    counts = {name: [int((v <= LEVEL).sum()), int((~np.isnan(v)).sum())] for name, v in q.items()}
    return {factor: count for factor, count in counts.items() if count[1]}


def _known(value: float) -> float | None:
    """JSON has no NaN."""
    return None if np.isnan(value) else value


DECODING = ("r2", "ridge_r2", "accuracy", "ridge_accuracy")


def _summary_of(folder: SweepFolder, members: Sequence[Member]) -> pd.DataFrame:
    """One row per member, in their order.

    Columns: id, recording, shift_s, what was varied, status, and for each factor its goodness in
    nats, p, held-out R² and that of a ridge regression (the accuracy as well if it is discrete),
    verdict in a word, cells found at q ≤ 0.1, cells tested, and auROC; then λ as given or found
    (the largest of the factors'), steps, seconds, why it failed, and why it is or was run again.
    """
    import pandas as pd  # which a window that only shows a table does without

    rows = [_row(folder, member) for member in members]
    table = pd.DataFrame(rows)
    return table.dropna(axis=1, how="all") if len(table) else table


def decoded_in(row: pd.Series, factor: str) -> str:
    """How well a factor is decoded in a row of the summary: "R² 0.76 (ridge 0.75)"."""
    what, own, ridge = decoding_in(row, factor)
    if np.isnan(own):
        return ""
    return f"{what} {own:.2f}" + ("" if np.isnan(ridge) else f" (ridge {ridge:.2f})")


def decoding_in(row: pd.Series, factor: str) -> tuple[str, float, float]:
    """The accuracy of a discrete factor or R² of another, and the same of a ridge regression."""
    r2, ridge_r2, accuracy, ridge_accuracy = (
        _float(row.get(f"{name} {factor}")) for name in DECODING
    )
    return ("R²", r2, ridge_r2) if np.isnan(accuracy) else ("accuracy", accuracy, ridge_accuracy)


def found_in(row: pd.Series, factor: str) -> str:
    """Cells found for a factor in a row of the summary: "12 of 44 cells"; empty if not tested."""
    found, tested = _float(row.get(f"cells {factor}")), _float(row.get(f"tested {factor}"))
    return "" if np.isnan(tested) else f"{found:.0f} of {tested:.0f} cells"


def _float(value: Any) -> float:
    return float("nan") if value is None else float(value)


def _row(folder: SweepFolder, member: Member) -> dict[str, Any]:
    known = folder.read(member.id)
    row: dict[str, Any] = {
        "id": member.id,
        "recording": member.recording,
        "shift_s": member.shift,
        **{
            name.rstrip("_"): value
            for name, value in member.varied.items()
            if name not in ("recording", "shift")
        },
        "status": known.get("status", "waiting"),
    }
    for factor, goodness in known.get("goodness", {}).items():
        row[f"goodness {factor}"] = goodness["goodness"]
        row[f"p {factor}"] = goodness["p"]
        # sweeps of earlier versions have no ridge regression
        row |= {f"{name} {factor}": goodness.get(name) for name in DECODING}
        row[f"verdict {factor}"] = known["strength"][factor]
        # nor has the test been made of every run
        found, tested = known.get("found", {}).get(factor, (None, None))
        row |= {f"cells {factor}": found, f"tested {factor}": tested}
        row[f"auroc {factor}"] = known["auroc"].get(factor)
    row["lambda found"] = known.get("lambda")
    row["steps"] = known.get("steps")
    row["seconds"] = known.get("seconds")
    row["failure"] = known.get("sentence")
    row["note"] = known.get("note") or None
    return row
