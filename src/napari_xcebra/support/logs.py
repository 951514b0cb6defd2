"""Logs what the program did, without the user's folders, to attach to a bug report.

Only this package writes to it: what it was asked to do, how that ended, and errors with their
traceback. No data, and no folders of this computer.

Windows and commands share one file, their background processes another; each is rotated when it is
large, and a few old ones are kept.
"""

from __future__ import annotations

import contextlib
import logging
import os
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Literal

from napari_xcebra.support.privacy import traceback_without_folders

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


def log_file(role: Role = "window") -> Path:
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
    file = log_file(role)
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
            found.append(_last_in(log_file(role)))
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
