"""Formats whose `sniff` never answers, or ends the program, for files that end in .scan."""

import sys
import time
from pathlib import Path
from types import SimpleNamespace


def _loop(path: Path) -> bool:
    while path.suffix == ".scan":
        pass
    return False


def _sleep(path: Path) -> bool:
    time.sleep(1000 * (path.suffix == ".scan"))
    return False


def _leave(path: Path) -> bool:
    if path.suffix == ".scan":
        sys.exit("no licence")
    return False


LOOPING, SLEEPING, LEAVING = (
    SimpleNamespace(NAME=f"a file ({sniff.__name__})", sniff=sniff, load=None)
    for sniff in (_loop, _sleep, _leave)
)
