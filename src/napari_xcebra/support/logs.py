"""Logs what the program did, to attach to a bug report: without folders, users and addresses.

Only this package writes to it: what it was asked to do, how that ended, and errors with their
traceback. No data, and no folders of this computer: when in doubt, more is taken out, as a lost
word does less harm than a published folder.

Windows and commands share one file, their background processes another; each is rotated when it is
large, and a few old ones are kept.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Literal

LOGGER = logging.getLogger("napari_xcebra")
LOGGER.addHandler(logging.NullHandler())  # a script sees an error once, when it is raised
LEVEL = "NAPARI_XCEBRA_LOG_LEVEL"
"""Environment variable with the lowest level that is written; "off" for none."""
FOLDER = "NAPARI_XCEBRA_LOGS"
"""Environment variable that names a folder other than the user's."""
LEVELS = ("debug", "info", "warning", "error", "off")
LARGEST, KEPT = 2**20, 3
"""Bytes of a file, and how many older ones are kept."""

Role = Literal["window", "command", "background"]
_FORM = "%(asctime)s %(levelname)s %(process)d %(name)s: %(message)s"


def log_folder() -> Path:
    """Where the files are."""
    if told := os.environ.get(FOLDER):
        return Path(told)
    from platformdirs import user_log_path

    return user_log_path("napari-xcebra", appauthor=False)


def _log_file(role: Role = "window") -> Path:
    """File that a window, a command or a background process writes to."""
    return log_folder() / f"napari-xcebra{'-background' * (role == 'background')}.log"


def start_logging(role: Role, level: str = "") -> Path | None:
    """Write this package's log to its file from now on.

    Parameters
    ----------
    role : {"window", "command", "background"}
    level : {"debug", "info", "warning", "error", "off"}, optional
        The environment variable `LEVEL`, or "info", if not given.

    Returns
    -------
    Path or None
        The file; None if nothing is written, by choice or because it cannot be.
    """
    level = level or os.environ.get(LEVEL, "")
    level = level if level in LEVELS else "info"
    os.environ[LEVEL] = level  # background processes are told so
    stop_logging()
    if level == "off":
        return None
    file = _log_file(role)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        handler = _Handler(file, maxBytes=LARGEST, backupCount=KEPT, encoding="utf-8")
    except OSError:  # a log is nothing to fail for
        return None
    handler.setFormatter(_Formatter(_FORM))
    LOGGER.addHandler(handler)
    LOGGER.setLevel(level.upper())
    # to whoever listens to all loggers, napari's console among them, this says nothing new
    LOGGER.propagate = False
    return file


def stop_logging() -> None:
    """Close the file, if there is one."""
    for handler in [each for each in LOGGER.handlers if isinstance(each, _Handler)]:
        LOGGER.removeHandler(handler)
        handler.close()
        LOGGER.propagate = True


def last_error() -> str:
    """The last logged error with its traceback; empty if there is none."""
    found: list[tuple[str, str]] = []
    for role in ("window", "background"):
        with contextlib.suppress(OSError):
            found.append(_last_in(_log_file(role)))
    return max(found, default=("", ""))[1]


def _last_in(file: Path) -> tuple[str, str]:
    """Time and text of the last error in a file."""
    with file.open("rb") as opened:
        opened.seek(max(0, file.stat().st_size - 2**18))
        lines = opened.read().decode(errors="replace").splitlines()
    begins = [number for number, line in enumerate(lines) if _begins(line)]
    errors = [number for number in begins if lines[number].split()[2] == "ERROR"]
    if not errors:
        return "", ""
    end = next((number for number in begins if number > errors[-1]), len(lines))
    return " ".join(lines[errors[-1]].split()[:2]), "\n".join(lines[errors[-1] : end])


def _begins(line: str) -> bool:
    words = line.split(maxsplit=3)
    return len(words) == 4 and words[0][:2] == "20" and words[2].isupper()


class _Formatter(logging.Formatter):
    """Without the folders of this computer."""

    def format(self, record: logging.LogRecord) -> str:
        return traceback_without_folders(super().format(record))


class _Handler(RotatingFileHandler):
    """Never raises: several windows may write to a file, and a disk may be full."""

    def doRollover(self) -> None:
        """Rotate the file, unless another process has it open on a system that minds."""
        with contextlib.suppress(OSError):
            super().doRollover()

    def handleError(self, record: logging.LogRecord) -> None:
        """Ignore what could not be written."""


_FILES = (
    "avi|csv|h5|hdf5|isxd|jsonl?|log|mat|mp4|npy|npz|nwb|pickle|pkl|png|pdf|safetensors|svg|tiff?"
    "|toml|tsv|txt|xlsx?|ya?ml|zip"
)
_HOMES = ("home", "users", "documents and settings")
"""Folders of the folders of users."""

_START = (
    r"(?:[A-Za-z][A-Za-z0-9+.-]+://|(?<![\w.~/\\])"
    r"(?:(?:~(?:[A-Za-z_][\w.-]*)?|\.{1,2}|[A-Za-z]:)[\\/]+|/+|\\{2,})(?=[\\/]*[^\s\\/]))"
)
"""Beginning of a path: an address, a drive, a server, a home or the root; "m/s" has none."""
_PATH = re.compile(
    rf"{_START}(?:(?!:\s|;\s|\.(?:{_FILES}|py)(?:[\s:;,)\]'\"]|$)|\s(?:[\"'(\[]|--[a-z][\w-]*=)?{_START})[^\n\0])*"
)
"""A path and the words after it, up to where it must have ended: a folder may have spaces."""
_RELATIVE = re.compile(
    rf"(?<![\w.~/\\:])(?:[^\s\\/\"'=(\[\0]+[\\/]+)+(?=[^\s\\/]*\.(?:{_FILES})\b)", re.IGNORECASE
)
_WEB = re.compile(
    r"(https?://)([^\s/@\"'<>?]+(?:/[^\s\"'<>?@]*)?)(?![^\s\"'<>]*@)(?:\?[^\s\"'<>]*)?"
)
_ADDRESS = re.compile(r"\w[\w.+-]*(?::[^\s@/]*)?@\w[\w.-]*")
_INSTALLED = re.compile(
    rf"{_START}[^\"\n]*?[\\/](?:(?:site|dist)-packages[\\/]+|src[\\/]+(?=napari_xcebra\b))"
)
_COLON, _PACKAGE = "\0:", "\0"
"""Stand in for what is kept, until the rest is through."""


def without_folders(text: str, *paths: str | Path) -> str:
    """Text in which files are called by their names.

    Parameters
    ----------
    text : str
    *paths : path
        Paths known to be in it. Others are found, with spaces in their folders or without; only a
        folder that goes on after a colon or the ending of a file, as "mouse.nwb old" does, is not.

    Examples
    --------
    >>> without_folders("Opened /home/ann/my data/mouse.nwb as NWB: 3 m/s.")
    'Opened mouse.nwb as NWB: 3 m/s.'
    >>> without_folders("ann@lab.org cannot read smb://ann@server/mice/mouse.nwb")
    '(address) cannot read mouse.nwb'
    """
    for path in sorted((str(path) for path in paths if str(path)), key=len, reverse=True):
        text = text.replace(path, Path(path).name)
    if len(Path.home().parts) > 1:
        for home in (str(Path.home()), repr(str(Path.home()))[1:-1]):
            text = text.replace(home, "~")
    text = _WEB.sub(lambda found: found[0].split("?")[0].replace("://", _COLON), text)
    text = _ADDRESS.sub("(address)", _RELATIVE.sub("", _PATH.sub(_named, text)))
    return text.replace(_COLON, "://")


def traceback_without_folders(text: str) -> str:
    """Traceback in which modules are named from their package on, and other files without folder.

    >>> traceback_without_folders('File "/home/ann/env/lib/python3.11/site-packages/torch/x.py"')
    'File "torch/x.py"'
    """
    return without_folders(_INSTALLED.sub(_PACKAGE, text)).replace(_PACKAGE, "")


def _named(found: re.Match[str]) -> str:
    """A path and the words after it, without its folders; the folder of a user as ~."""
    path = re.sub(r"[\\/]+(?=\W*$|\s)", "", found[0])  # it may end as a folder does
    *folders, name = re.split(r"[\\/]+", path)
    if folders and folders[-1].casefold() in _HOMES:
        return re.sub(r"^[^\s\"',;)]+", "~", name)
    if not any(folders):  # a file at the root
        return found[0] if name.split()[:1] != ["root"] else name.replace("root", "~", 1)
    return name
