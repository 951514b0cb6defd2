"""What of a text may leave this computer: names of files, but not the folders they are in."""

from __future__ import annotations

import re
from pathlib import Path

_INSTALLED = re.compile(r"[^\s\"']*[\\/](?:site-packages|dist-packages|src)[\\/]")
_FOLDERS = re.compile(r"(?<![\w.~:/\\])(?:~|[A-Za-z]:)?[\\/](?:[^\\/\s\"']+[\\/])+(?=[^\\/\s])")


def without_folders(text: str, *paths: str | Path) -> str:
    """Text in which files are called by their names.

    Parameters
    ----------
    text : str
    *paths : path
        That are known to be in it. Those that are not known are found as long as none of their
        folders has a space in its name; of the user's own folder also then.

    Examples
    --------
    >>> without_folders("Opened /home/ann/data/mouse.nwb as NWB: 3 m/s.")
    'Opened mouse.nwb as NWB: 3 m/s.'
    """
    for path in sorted((str(path) for path in paths if str(path)), key=len, reverse=True):
        text = text.replace(path, Path(path).name)
    text = text.replace(str(Path.home()), "~") if len(Path.home().parts) > 1 else text
    return _FOLDERS.sub("", text)


def traceback_without_folders(text: str) -> str:
    """A traceback in which modules are found by their packages, and nothing else by its folder.

    >>> traceback_without_folders('File "/home/ann/env/lib/python3.11/site-packages/torch/x.py"')
    'File "torch/x.py"'
    """
    return without_folders(_INSTALLED.sub("\0", text)).replace("\0", "")
