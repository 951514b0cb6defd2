"""Gives memory that is no longer used back to the system."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import sys


def give_back_memory() -> None:
    """Collect what is left over, and return what is free: glibc would keep it in this process.

    Three windows of 0.3 GB each left 0.5 GB behind that nothing used.
    """
    gc.collect()
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):  # other C libraries have no such call
            ctypes.CDLL(None).malloc_trim(0)
