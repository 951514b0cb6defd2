"""Opens a folder of animals as one project: which recordings and behaviour there are, and all runs.

Recordings come from a table with a row for each, or from a pattern of their paths:

    animal,day,condition,path,behaviour          data/*/plane0
    m1,1,saline,m1/day1/plane0,m1/day1/beh.csv   data/{animal}/day{day}/suite2p/plane0
    m2,1,drug,m2/day1/plane0,

Without a table, and where it names none, behaviour is looked for beside a recording. The runs are a
sweep of one member a recording: they resume, go to a cluster, and become a cohort.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from napari_xcebra.analysis_file import factors_typed
from napari_xcebra.batch.cohort_files import write_cohort
from napari_xcebra.batch.cohorts import cohort
from napari_xcebra.batch.finished_runs import natural
from napari_xcebra.batch.folder import SweepFolder
from napari_xcebra.batch.plan import Sweep
from napari_xcebra.batch.running import ComputePlace, sweep_to
from napari_xcebra.batch.sweep_report import GRID, write_sweep_report
from napari_xcebra.errors import InputError
from napari_xcebra.files import whole
from napari_xcebra.io.discovery import is_recording
from napari_xcebra.io.opening import ROLES, Opening
from napari_xcebra.io.settings import OpenSettings
from napari_xcebra.jobs.calls import current_report
from napari_xcebra.learn.data.factors import Factor, ticked_factors
from napari_xcebra.learn.settings import FitSettings
from napari_xcebra.recording import Recording
from napari_xcebra.settings import number_of, words_of
from napari_xcebra.spreadsheets import read_csv, write_csv
from napari_xcebra.text import counted, parse_number

if TYPE_CHECKING:
    import pandas as pd

    from napari_xcebra.attribution import Attribution

TABLE = "project.csv"
LABELS = ("animal", "day", "condition")
_NAMES = {
    "mouse": "animal", "subject": "animal", "session": "day", "date": "day", "group": "condition",
    "treatment": "condition", "recording": "path", "folder": "path", "behaviour": "behavior",
}  # fmt: skip
"""Other names of columns."""
_CHOICES = tuple(knob.name for knob in fields(OpenSettings))
_COLUMNS = (*LABELS, "path", *ROLES, "footprints", "kinds", "factors", *_CHOICES)
_TABLES = (".csv", ".tsv", ".txt", ".parquet", ".xlsx")
_TELLING = re.compile(
    r"behav|position|track|traject|locomot|speed|wheel|rotary|stimul|trial|licks?|dlc|sleap|pose"
    r"|pycontrol|bpod|(^|[_\W])(beh|pos|vr|run)([_\W]|$)",
    re.IGNORECASE,
)
"""In the name of a file of behaviour."""
_FORMATS = (*_TABLES, ".h5", ".npy", ".npz", ".mat", ".nwb")
_SAID = 6
"""Lines of a cohort's summary that are printed."""
_DEEPEST = 6
"""Folders below each other in which recordings are looked for."""


@dataclass(frozen=True, eq=False)
class Session:
    """A recording of a project.

    Parameters
    ----------
    animal, day, condition : str
        Empty where they are not known.
    opening : Opening
    factors : mapping of str to Factor
        As the table asks for; those that the window would tick if empty.
    note : str
        What was guessed: which file beside it is its behaviour.
    missing : str
        Why it cannot be run, in a sentence; empty if it can.
    """

    animal: str
    day: str
    condition: str
    opening: Opening
    factors: Mapping[str, Factor] = field(default_factory=dict)
    note: str = ""
    missing: str = ""

    @property
    def name(self) -> str:
        """Animal, day and condition, where they are known."""
        day = f"day {self.day}" if self.day[:1].isdecimal() else self.day
        return ", ".join(filter(None, [self.animal, day, self.condition]))


def find_sessions(where: str, *others: str) -> list[Session]:
    """Recordings of a table, a pattern, or below a folder; nothing of them is opened yet.

    Parameters
    ----------
    where : str
        A table (.csv, .tsv, .xlsx), a pattern with * or {animal}, {day}, {condition}, or a folder.
    *others : str
        Further recordings, as a shell makes them of a pattern without quotes.
    """
    path = Path(where)
    if others:
        paths = [Path(each).absolute() for each in (where, *others)]
        root = Path(os.path.commonpath(paths))
        tops = [root / each.relative_to(root).parts[0] for each in paths]
        found = [_beside(Session(*_labels_below(root, each), Opening(each)), top)
                 for each, top in zip(paths, tops, strict=True)]  # fmt: skip
    elif path.is_file() and path.suffix.lower() in _TABLES:
        found = _of_table(path)
    elif re.search(r"[*{]", where):
        found = _of_pattern(where)
    elif path.is_dir():
        found = [_beside(Session(*_labels_below(path, each), Opening(each)), path)
                 for each in _recordings_below(path)]  # fmt: skip
    else:
        raise InputError(
            f"{where} is neither a table of recordings (.csv, .tsv, .xlsx), nor a folder, nor a "
            "pattern such as 'data/*/plane0' or 'data/{animal}/day{day}'."
        )
    if not found:
        raise InputError(f"No recording was found: {where} leads to none.")
    return _named_apart(found)


def _of_table(path: Path) -> list[Session]:
    import pandas as pd

    try:
        how = {"sep": None, "engine": "python", "encoding": "utf-8-sig"}
        excel = path.suffix.lower() == ".xlsx"
        table = pd.read_excel(path, dtype=str) if excel else read_csv(path, dtype=str, **how)
    except (OSError, ValueError, ImportError) as error:
        raise InputError(f"{path} cannot be read as a table: {error}.") from error
    names = [str(name).strip().lower().replace("-", "_") for name in table]
    table.columns = pd.Index([_NAMES.get(name, name) for name in names])
    if "path" not in table:
        raise InputError(
            f"{path} has the columns {', '.join(names)}: `path` is needed, and `animal`, `day`, "
            "`condition` and `behaviour` where they are known."
        )
    if unknown := [name for name in table if name not in _COLUMNS]:
        raise InputError(f"{path}: {unknown[0]} is not known; there are: {', '.join(_COLUMNS)}.")
    rows = table.dropna(how="all").fillna("").to_dict("records")
    return [_of_row({str(k): str(v).strip() for k, v in row.items()}, path) for row in rows]


def _of_row(row: Mapping[str, str], table: Path) -> Session:
    def files(name: str) -> tuple[Path, ...]:
        return tuple(table.parent / each.strip() for each in row.get(name, "").split(";") if each)

    chosen: dict[str, Any] = {name: _value(name, row[name]) for name in _CHOICES if row.get(name)}
    pairs = [each.partition("=") for each in row.get("kinds", "").split(";") if each.strip()]
    named: dict[str, Any] = {role: files(role) for role in ROLES}
    opening = Opening(
        table.parent / row["path"],
        kinds={name.strip(): kind.strip() for name, _, kind in pairs},  # type: ignore[misc]
        footprints=next(iter(files("footprints")), None),
        settings=OpenSettings(**chosen),
        **named,
    )
    factors = factors_typed([each for each in row.get("factors", "").split(";") if each.strip()])
    animal, day, condition = (row.get(name, "") for name in LABELS)
    first = Path(row["path"]).parts[0] if row["path"] else ""
    animal = animal or (opening.path.parent.name if Path(first).anchor else first)
    session = Session(animal, day, condition, opening, factors)
    gone = [str(each) for each in opening.files if not each.exists()]
    if gone:
        return replace(session, missing=f"{gone[0]} does not exist.")
    return session if any(named.values()) else _beside(session, table.parent)


def _value(name: str, text: str) -> object:
    if text in words_of(OpenSettings, name):
        return text
    if text.lower() in ("yes", "no", "true", "false"):
        return text.lower() in ("yes", "true")
    return text if number_of(OpenSettings, name) not in (int, float) else parse_number(text)


def _of_pattern(pattern: str) -> list[Session]:
    parts = [*Path(pattern).parts]
    first = next(i for i, part in enumerate(parts) if re.search(r"[*{]", part))
    root = Path(*parts[:first])
    below = "/".join(parts[first:])
    wild = re.split(r"(\{\w*\}|\*+)", below)
    named = [each[1:-1] for each in wild if each.startswith("{")]
    if wrong := [name for name in named if name not in LABELS]:
        raise InputError(f"The pattern has {{{wrong[0]}}}: use {{animal}}, {{day}}, {{condition}}.")
    free = [name for name in LABELS if name not in named]
    expression = ""
    for each in wild:
        if each.startswith("{"):
            expression += f"(?P<{each[1:-1]}>[^/]+?)"
        elif each == "**":
            expression += ".*"
        elif each.startswith("*"):  # the first is the animal, the second its day
            expression += f"(?P<{free.pop(0)}>[^/]*)" if free else "[^/]*"
        else:
            expression += re.escape(each)
    found = []
    for path in sorted(root.glob(re.sub(r"\{\w*\}", "*", below)), key=lambda p: natural(str(p))):
        known = re.fullmatch(expression, path.relative_to(root).as_posix())
        if known is None:
            continue
        animal, day, condition = (known.groupdict().get(name) or "" for name in LABELS)
        session = Session(animal, day, condition, Opening(path))
        top = root / path.relative_to(root).parts[0]
        found.append(_beside(session, top if top != path else root))
    return found


def _recordings_below(folder: Path, depth: int = 0) -> list[Path]:
    if is_recording(folder):
        return [folder]
    found: list[Path] = []
    for each in sorted(folder.iterdir(), key=lambda p: natural(p.name)):
        if each.name.startswith(".") or each.is_symlink():
            continue
        if each.is_dir() and depth < _DEEPEST:
            found += _recordings_below(each, depth + 1)
        elif each.is_file() and is_recording(each):
            found.append(each)
    return found


def _labels_below(root: Path, path: Path) -> tuple[str, str, str]:
    """Animal and day from the first two folders below a root that recordings differ by."""
    parts = path.relative_to(root).parts or (path.name,)
    day = parts[1] if len(parts) > 2 else ""
    return parts[0], "" if re.fullmatch(r"suite2p|plane\d+|combined", day) else day, ""


def _beside(session: Session, top: Path) -> Session:
    """The session with its behaviour, of the nearest folder up to `top` that has some."""
    path = session.opening.path
    folder = path.parent if path.is_file() else path
    while True:
        files = [each for each in sorted(folder.iterdir()) if _may_be_behavior(each, path)]
        telling = [each for each in files if _TELLING.search(each.name)]
        tables = [each for each in files if each.suffix.lower() in _TABLES]
        found = telling or (tables if folder != path else [])
        if len(found) == 1:
            opening = replace(session.opening, behavior=(found[0],))
            return replace(session, opening=opening, note=f"{found[0].name}, found beside it")
        if found:
            names = ", ".join(each.name for each in found[:4])
            missing = f"Its behaviour may be any of {names}: name it in a table."
            return replace(session, missing=missing)
        if folder == top or not folder.is_relative_to(top) or folder.parent == folder:
            return session
        folder = folder.parent


def _may_be_behavior(file: Path, recording: Path) -> bool:
    if not file.is_file() or file == recording or file.suffix.lower() not in _FORMATS:
        return False
    if file.name.startswith(".") or file.stem.lower() in ("readme", "ops", "notes", "project"):
        return False
    # where several recordings share a folder, behaviour is named after its own
    alike = [each for each in recording.parent.iterdir() if each.suffix == recording.suffix]
    shared = recording.is_file() and file.parent == recording.parent and len(alike) > 1
    own = re.match(rf"{re.escape(recording.stem)}([_\W]|$)", file.stem, re.IGNORECASE) is not None
    if file.suffix.lower() not in _TABLES and not _TELLING.search(file.name):
        return False
    return own or not shared


def _named_apart(sessions: Sequence[Session]) -> list[Session]:
    """Sessions of which each has a name of its own: those without a day get their folder for it."""
    names = [each.name for each in sessions]
    return [
        replace(each, day=each.day or each.opening.path.parent.name or str(number))
        if names.count(each.name) > 1
        else each
        for number, each in enumerate(sessions, 1)
    ]


@dataclass(frozen=True, eq=False)
class Project:
    """Recordings of many animals and days, open, with what is asked of each.

    Parameters
    ----------
    sessions : list of Session
        All, also those that cannot be run.
    recordings : mapping of str to Recording
        Those that can, by the name of the session.
    factors : mapping of str to mapping of str to Factor
        By session.
    """

    sessions: list[Session]
    recordings: Mapping[str, Recording]
    factors: Mapping[str, Mapping[str, Factor]]

    @property
    def labels(self) -> pd.DataFrame:
        """A row a session that can be run: run (its name), animal, day, condition."""
        import pandas as pd

        rows = [
            {"run": each.name, "animal": each.animal, "day": each.day, "condition": each.condition}
            for each in self.sessions
            if each.name in self.recordings
        ]
        return pd.DataFrame(rows)

    def sweep(self, settings: FitSettings) -> Sweep:
        """One run a recording."""
        return Sweep(self.recordings, {}, settings, factors_by_recording=self.factors)


def open_project(
    sessions: Sequence[Session],
    settings: FitSettings,
    factors: Mapping[str, Factor] | None = None,
    on_progress: Callable[[int, int], object] | None = None,
) -> Project:
    """Open all recordings; what cannot be opened, or has no behaviour, says why and is left out.

    Parameters
    ----------
    sessions : sequence of Session
    settings : FitSettings
    factors : mapping of str to Factor, optional
        For all recordings that have their variables; without them, as each session asks for.
    on_progress : callable, optional
        Called with the number of recordings that were opened, and of all.
    """
    told: list[Session] = []
    recordings: dict[str, Recording] = {}
    chosen: dict[str, Mapping[str, Factor]] = {}
    for number, session in enumerate(sessions):
        if on_progress is not None:
            on_progress(number, len(sessions))
        if not session.missing:
            try:
                recording = session.opening.open()
                own = _factors_of(session, recording, settings, factors)
            except (InputError, OSError) as error:
                session = replace(session, missing=str(error))
            else:
                recordings[session.name], chosen[session.name] = recording, own
        told.append(session)
    if not recordings:
        why = "; ".join(f"{each.name}: {each.missing}" for each in told[:3])
        raise InputError(f"None of {counted(len(told), 'recording')} can be run. {why}")
    return Project(told, recordings, chosen)


def _factors_of(
    session: Session,
    recording: Recording,
    settings: FitSettings,
    factors: Mapping[str, Factor] | None,
) -> Mapping[str, Factor]:
    if asked := factors or session.factors:
        own = {n: f for n, f in asked.items() if set(f.variables) <= set(recording.behavior)}
        if not own:
            wanted = sorted({v for each in asked.values() for v in each.variables})
            there = ", ".join(recording.behavior) or "none"
            raise InputError(f"It lacks {', '.join(wanted)}; its variables are: {there}.")
        return own
    ticked, _ = ticked_factors(recording, settings.time_latents)
    if not ticked:
        raise InputError("No behaviour that can be trained on was found in it or beside it.")
    return ticked


def finish_project(project: Project, folder: Path) -> tuple[list[Path], list[str]]:
    """Write table, grid, cohort and report of what is finished; and what there is to say."""
    kept = SweepFolder(folder)
    written, said = [_write_table(project.sessions, folder / TABLE)], []
    written += _draw_grid(project, kept)
    try:
        found = cohort([folder], project.labels)
        written += write_cohort(found, folder)
        summary = found.summary().splitlines()
        said += summary[:_SAID]
        if len(summary) > _SAID:
            said.append(f"… and {len(summary) - _SAID} more comparisons, in cohort-tests.csv.")
    except InputError as error:
        said.append(f"No cohort: {error}")
    return [*written, write_sweep_report(folder)], said


def project_to(where: str, folder: Path, place: ComputePlace, settings: FitSettings) -> Path:
    """Run a project as `sweep_to` runs a sweep, and put its results together."""
    opened = open_project(find_sessions(where), settings)
    sweep_to(opened.sweep(settings), folder, place)
    if not current_report().stop():
        finish_project(opened, folder)
    return folder


def picture_of(folder: Path, member: str) -> Path:
    """Picture of the painted fields of one recording, by the id of its run."""
    return folder / "grid" / f"{Path(member).name}.png"


def _draw_grid(project: Project, kept: SweepFolder) -> list[Path]:
    """Draw the painted field of every finished recording: each by itself, and all in rows."""
    from napari_xcebra.report.figures.field import painted_grid

    rows: list[tuple[str, Recording, Attribution]] = []
    for member in kept.members:
        recording = project.recordings.get(member.recording)
        if recording is not None and kept.status(member.id) == "finished":
            run = kept.run(member.id)
            scores = run.attributions[member.method]
            rows.append((member.recording, recording, replace(scores, fit=run.fit)))
            picture = picture_of(kept.path, member.id)
            picture.parent.mkdir(exist_ok=True)
            painted_grid(rows[-1:], picture)
    if not rows:
        return []
    painted_grid(rows, kept.path / GRID)
    return [kept.path / GRID]


def _write_table(sessions: Sequence[Session], path: Path) -> Path:
    """Write sessions as a table that `find_sessions` reads, to be edited."""
    import pandas as pd

    def place(file: Path) -> str:
        return Path(os.path.relpath(file.absolute(), path.parent.absolute())).as_posix()

    rows = []
    for each in sessions:
        opening = each.opening
        usual = OpenSettings()
        row = {name: getattr(each, name) for name in LABELS} | {"path": place(opening.path)}
        row |= {role: "; ".join(map(place, getattr(opening, role))) for role in ROLES}
        row["footprints"] = place(opening.footprints) if opening.footprints else ""
        row["kinds"] = "; ".join(f"{name}={kind}" for name, kind in opening.kinds.items())
        row["factors"] = "; ".join(
            f"{n}={','.join(f.variables)}{f':{f.latents}' if f.latents else ''}"
            for n, f in each.factors.items()
        )
        row |= {name: str(value) for name in _CHOICES
                if (value := getattr(opening.settings, name)) != getattr(usual, name)}  # fmt: skip
        rows.append(row)
    table = pd.DataFrame(rows).fillna("")
    kept = [name for name in table if name in ("animal", "path") or (table[name] != "").any()]
    with whole(path) as file:
        write_csv(table[kept].rename(columns={"behavior": "behaviour"}), file)
    return path
