"""Takes folders, users and addresses out of a text, for logs, reports and bug reports.

When in doubt, more is taken out: a lost word does less harm than a published folder.
"""

from __future__ import annotations

import re
from pathlib import Path

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
