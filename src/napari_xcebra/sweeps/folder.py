"""A sweep on disk.

sweep.json              what was asked for, and its members
summary.csv             a row a member: what was varied, and what came of it
members/<id>/           one that is finished is a run, as `Run.save` writes it, with
    member.json         status, settings, goodness, verdicts, seconds; written last
    attribution.csv     score, z and selection of every cell for every factor
members/<id>/failed.json    one that failed: why, in a sentence, and the details
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from napari_xcebra.curation.lock import lock
from napari_xcebra.errors import InputError
from napari_xcebra.files import read_description, whole
from napari_xcebra.runs import Run, now
from napari_xcebra.sweeps.plan import Member, Sweep, plain

if TYPE_CHECKING:
    import pandas as pd

    from napari_xcebra.recording import Recording
    from napari_xcebra.sweeps.member import MemberResult

FORMAT = 1
Status = Literal["finished", "failed", "waiting"]


class SweepFolder:
    """Where a sweep keeps what came of it.

    Parameters
    ----------
    path : path
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from working on the same folder meanwhile."""
        self.path.mkdir(parents=True, exist_ok=True)
        with (self.path / ".lock").open("wb") as file:
            try:
                ours = lock(file.fileno())
            except OSError:  # the drive knows no locks
                ours = True
            if not ours:
                raise InputError(
                    f"Another program is running the sweep in {self.path}: wait for it, or give "
                    "another folder."
                )
            yield

    def plan(self, sweep: Sweep, command: str = "") -> None:
        """Write what is asked for; what came of earlier runs stays.

        Parameters
        ----------
        command : str
            What to type to run it again, if it was typed.
        """
        about = {"kind": "napari-xcebra sweep", "format": FORMAT, "created": now()}
        _write(self.path / "sweep.json", about | {"command": command} | sweep.as_dict())

    @property
    def about(self) -> dict[str, Any]:
        """What `sweep.json` says."""
        return read_description(self.path / "sweep.json", "sweep", FORMAT)

    @property
    def members(self) -> tuple[Member, ...]:
        """Runs that were asked for, done or not."""
        try:
            return tuple(Member.from_dict(each) for each in self.about["members"])
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"{self.path / 'sweep.json'} is damaged ({error}).") from error

    def home(self, member: str) -> Path:
        """Folder of a member, by its id."""
        return self.path / "members" / Path(member).name

    def status(self, member: str) -> Status:
        """How a member stands, by its id."""
        if (self.home(member) / "member.json").exists():
            return "finished"
        return "failed" if (self.home(member) / "failed.json").exists() else "waiting"

    def keep(
        self, member: Member, result: MemberResult, truth: Mapping[str, np.ndarray] | None = None
    ) -> None:
        """Write what came of a member; ``member.json`` comes last, so that it is whole."""
        folder = self.home(member.id)
        run = Run(member.title, now(), member.factors, result.fit)
        run.with_attribution(result.attribution).save(folder)
        result.attribution.to_csv(folder / "attribution.csv")
        goodness = result.fit.goodness
        _write(
            folder / "member.json",
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
                **member.as_dict(),
            },
        )
        (folder / "failed.json").unlink(missing_ok=True)

    def keep_failure(self, member: Member, sentence: str, details: str = "") -> None:
        """Write why a member came to nothing; it is run again at the next start."""
        about = {
            "kind": "napari-xcebra failed member",
            "format": FORMAT,
            "status": "failed",
            "failed": now(),
            "sentence": sentence,
            "details": details,
        }
        _write(self.home(member.id) / "failed.json", about | member.as_dict())

    def read(self, member: str) -> dict[str, Any]:
        """What is known of a member, by its id: of a finished or a failed one; else nothing."""
        status = self.status(member)
        if status == "waiting":
            return {}
        name, what = (
            ("member.json", "member") if status == "finished" else ("failed.json", "failed member")
        )
        return read_description(self.home(member) / name, what, FORMAT)

    def run(self, member: str, recording: Recording | None = None) -> Run:
        """A finished member as a run, by its id."""
        if self.status(member) != "finished":
            raise InputError(f"Member {member} of {self.path} is not finished.")
        return Run.load(self.home(member), recording)

    def summary(self) -> pd.DataFrame:
        """A row a member: what was varied, and what came of it."""
        from napari_xcebra.sweeps.summary import summary_of

        return summary_of(self)

    def write_summary(self) -> Path:
        """Write the summary to ``summary.csv``."""
        table = self.summary()
        with whole(self.path / "summary.csv") as file:
            table.to_csv(file, index=False)
        return self.path / "summary.csv"


def _aurocs(result: MemberResult, truth: Mapping[str, np.ndarray]) -> dict[str, float]:
    from napari_xcebra.attribution.evaluation import auroc

    found = {}
    for factor, carries in truth.items():
        if factor in result.attribution.factors and 0 < np.sum(carries) < len(carries):
            found[factor] = auroc(result.attribution.score(factor), carries)
    return found


def _known(value: float) -> float | None:
    """JSON has no NaN."""
    return None if np.isnan(value) else value


def _write(path: Path, about: Mapping[str, Any]) -> None:
    with whole(path) as file:
        file.write_text(json.dumps(about, indent=1, default=plain), encoding="utf-8")
