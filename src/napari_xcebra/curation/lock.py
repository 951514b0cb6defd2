"""A lock on an open file that ends with the process, however that ends."""

from __future__ import annotations

import errno
import os
import sys

_HELD = {errno.EACCES, errno.EAGAIN, errno.EWOULDBLOCK, errno.EDEADLK}
_FAR = 2**30
"""Byte to lock on Windows, where a locked byte cannot be read: beyond what a journal holds."""


def lock(file: int) -> bool:
    """Lock an open file for this opening of it; never waits.

    Parameters
    ----------
    file : int
        File descriptor. Closing it, or the end of the process, releases the lock.

    Returns
    -------
    bool
        False if another process, or another opening in this one, holds it.

    Raises
    ------
    OSError
        The drive knows no locks.
    """
    try:
        if sys.platform == "win32":
            import msvcrt

            os.lseek(file, _FAR, os.SEEK_SET)
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _HELD:
            return False
        raise
    return True
